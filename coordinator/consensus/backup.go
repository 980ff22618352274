package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/seal"
	"berth/coordinator/state"
)

// SaveSnapshot writes a backup of the state to w, with a seal: everything that was committed before the call. The error is ErrNotLeader,
// seal.ErrNoKey, ctx's own or that of w.
func (c *Consensus) SaveSnapshot(ctx context.Context, w io.Writer) error {
	if err := c.VerifyRead(ctx); err != nil {
		return err
	}
	keys, err := c.cfg.sealKeys()
	if err != nil {
		return err
	}
	return SaveSealed(c.store.Snapshot(), w, keys)
}

// SaveSealed writes a state with a seal.
func SaveSealed(x *state.Snapshot, to io.Writer, keys seal.Keys) error {
	sealed, err := seal.NewWriter(to, keys)
	if err != nil {
		return err
	}
	if err := x.Save(sealed); err != nil {
		return err
	}
	return sealed.Close()
}

func (cfg *Config) sealKeys() (seal.Keys, error) {
	if cfg.Seals == nil {
		return nil, seal.ErrNoKey
	}
	return cfg.Seals()
}

// RestoreSnapshot replaces the state of the whole cluster by a backup. The backup is read and checked to its last byte
// before anything changes; one that is changed, damaged or foreign changes nothing. Unproved, one without a seal is taken too, or with that
// of a key which is not here. The restored state is quarantined, see
// state.Store.Quarantine, and the leadership begins anew, see Leadership. Proposals in flight end in ErrUnknown. The error is
// state.ErrSnapshot, that of seal.NewReader, ErrForeign, ErrNotLeader, ErrUnknown or ctx's own.
func (c *Consensus) RestoreSnapshot(ctx context.Context, from io.Reader, unproved bool) error {
	backup, err := c.cfg.loadBackup(from, unproved)
	if err != nil {
		return err
	}
	if err := c.VerifyRead(ctx); err != nil {
		return err
	}
	backup.Quarantine(c.store.Snapshot(), time.Now().UTC(), c.caller())
	var data bytes.Buffer
	if err := backup.Snapshot().Save(&data); err != nil {
		return err
	}
	r := c.raft.Load()
	// Raft puts it one above this index, or above its own where that is higher.
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: backup.Snapshot().Index() - 1, Size: int64(data.Len())}
	err = c.await(ctx, func() error {
		defer func() {
			select {
			case c.replaced <- struct{}{}:
			default: // it was not taken note of yet that an earlier one has
			}
		}()
		return r.Restore(meta, &data, 0)
	})
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		// Either before the restore, or after it when its first entry was to be committed.
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return fmt.Errorf("restore the backup: %w", err)
	}
	c.logger.Warn("the state was restored from a backup", "index", backup.Snapshot().Index())
	return nil
}

// loadBackup reads a backup of the cluster to its last byte. The error is that of seal.NewReader, state.ErrSnapshot or ErrForeign.
func (cfg *Config) loadBackup(from io.Reader, unproved bool) (*state.Store, error) {
	keys, err := cfg.sealKeys()
	if err != nil {
		return nil, err
	}
	content, proved, err := seal.Open(from, keys, unproved)
	if err != nil {
		return nil, err
	}
	backup, err := state.Load(content)
	if err != nil {
		return nil, err
	}
	if owner := backup.Snapshot().Meta(state.MetaClusterID); owner != cfg.ClusterID {
		return nil, fmt.Errorf("the backup: %w (%q, this is %q)", ErrForeign, owner, cfg.ClusterID)
	}
	if !proved {
		cfg.Logger.Warn("the backup is taken without proof of who wrote it, because the operator said so")
	}
	return backup, nil
}
