package consensus

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Rebuild makes this member the only one of its cluster, with the state of a backup, for when no store can be read any more.
// What was decided since the backup is lost; the rest is as after Recover. The old store, if there is one, is kept next to the
// new one and never looked at again: aside is its path, empty when there was none. The member's terms begin at the time of
// day in milliseconds, which is above all that elections come to, so that agents obey it. The backup is read and checked to
// its last byte before anything changes, see RestoreSnapshot. The error is state.ErrSnapshot, that of seal.NewReader, ErrForeign or
// ErrInUse.
func Rebuild(cfg Config, from io.Reader, unproved bool) (aside string, err error) {
	if err := cfg.complete(); err != nil {
		return "", err
	}
	backup, err := cfg.loadBackup(from, unproved)
	if err != nil {
		return "", err
	}
	now := time.Now().UTC()
	backup.QuarantineAlone(cfg.MemberID, knownIdentities(cfg), now, "coordinator/"+cfg.Name)
	fresh := cfg.DataDir + ".rebuilt"
	if err := os.RemoveAll(fresh); err != nil { // of a try that was broken off
		return "", err
	}
	if err := build(fresh, cfg, backup.Snapshot(), uint64(now.UnixMilli())); err != nil {
		return "", errors.Join(fmt.Errorf("write a new store into %s: %w", fresh, err), os.RemoveAll(fresh))
	}
	release, err := hold(filepath.Join(cfg.DataDir, storeFile))
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(fresh))
	}
	defer release()
	if _, err := os.Stat(cfg.DataDir); err == nil {
		aside = fmt.Sprintf("%s.before-%s", cfg.DataDir, now.Format("20060102T150405Z"))
		if err := os.Rename(cfg.DataDir, aside); err != nil {
			return "", errors.Join(err, os.RemoveAll(fresh))
		}
	}
	return aside, errors.Join(os.Rename(fresh, cfg.DataDir), syncDir(filepath.Dir(cfg.DataDir)))
}

// knownIdentities are those of the old store, if it can be read, and those that its member remembers to be revoked.
func knownIdentities(cfg Config) []model.Identity {
	var known []model.Identity
	if found, err := Inspect(cfg.DataDir, hclog.NewNullLogger()); err == nil && found.State.Meta(state.MetaClusterID) == cfg.ClusterID {
		known = found.State.Identities()
	}
	for _, revoked := range cfg.Revoked {
		at := slices.IndexFunc(known, func(i model.Identity) bool { return i.ID == revoked.ID })
		if at < 0 {
			known = append(known, revoked)
		} else if known[at].Live() {
			known[at] = revoked
		}
	}
	return known
}

// build writes a store that holds one snapshot.
func build(dir string, cfg Config, x *state.Snapshot, term uint64) (err error) {
	logs, err := openBolt(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	if err := logs.SetUint64([]byte(currentTerm), term); err != nil {
		return err
	}
	files, err := openSnapshots(dir, hclog.NewNullLogger(), func(error) {}) // what fails is returned as well
	if err != nil {
		return err
	}
	_, nowhere := raft.NewInmemTransport(raft.ServerAddress(cfg.Advertise))
	defer nowhere.Close()
	sink, err := files.Create(raft.SnapshotVersionMax, x.Index(), term, cfg.alone(), x.Index(), nowhere)
	if err != nil {
		return err
	}
	if err := x.Save(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return errors.Join(sink.Close(), syncDir(dir))
}

// alone is the configuration of a cluster that has this member only.
func (cfg *Config) alone() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(cfg.MemberID), Address: raft.ServerAddress(cfg.Advertise),
	}}}
}

// hold keeps the log's file from being opened by a coordinator until it is released. One that cannot be read can be held.
func hold(path string) (release func(), err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrInUse, path), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
