package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/config"
	"berth/shared/pause"
)

// rememberEvery is how often a member looks whether somebody was revoked.
const rememberEvery = time.Second

func (p place) revokedFile() string { return p.file("revoked.json") }

// revoked are the identities that this member has seen revoked, also when its store cannot be read any more. The error is ErrDamaged.
func (p place) revoked() ([]model.Identity, error) {
	data, err := os.ReadFile(p.revokedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read who was revoked: %w", err)
	}
	var all []model.Identity
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%w: %s: %w: move it away if a backup is to be restored without knowing who was revoked since",
			ErrDamaged, p.revokedFile(), err)
	}
	return all, nil
}

func (p place) saveRevoked(x *state.Snapshot) error {
	all := []model.Identity{}
	for _, identity := range x.Identities() {
		if !identity.Live() {
			all = append(all, identity)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return config.WriteFile(p.revokedFile(), append(data, '\n'), 0o600)
}

// rememberRevoked keeps a file of who was revoked next to the store, for the day when only a backup is left.
func (d *daemon) rememberRevoked(ctx context.Context) {
	var kept *state.Snapshot
	for {
		x := d.store.Snapshot()
		if x.Index() > 0 && (kept == nil || !x.SameIdentities(kept.Access)) {
			if err := d.home.saveRevoked(x); err != nil {
				d.log.Warn("who was revoked could not be kept beside the store", "error", err)
			} else {
				kept = x
			}
		}
		if !pause.For(ctx, rememberEvery) {
			return
		}
	}
}
