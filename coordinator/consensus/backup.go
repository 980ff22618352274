package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/state"
)

// SaveSnapshot writes a backup of the state to w: everything that was committed before the call. The form is that of
// state.Snapshot.Save. The error is ErrNotLeader, ctx's own or that of w.
func (c *Consensus) SaveSnapshot(ctx context.Context, w io.Writer) error {
	if err := c.VerifyRead(ctx); err != nil {
		return err
	}
	return c.store.Snapshot().Save(w)
}

// RestoreSnapshot replaces the state of the whole cluster by a backup. The backup is read and checked to its last byte
// before anything changes; a damaged or foreign one changes nothing. The restored state is quarantined, see
// state.Store.Quarantine, and the leadership begins anew, see Leadership. Proposals in flight end in ErrUnknown. The error is
// state.ErrSnapshot, ErrForeign, ErrNotLeader, ErrUnknown or ctx's own.
func (c *Consensus) RestoreSnapshot(ctx context.Context, from io.Reader) error {
	backup, err := loadBackup(from, c.cfg.ClusterID)
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

// loadBackup reads a backup of the cluster to its last byte. The error is state.ErrSnapshot or ErrForeign.
func loadBackup(from io.Reader, clusterID string) (*state.Store, error) {
	backup, err := state.Load(from)
	if err != nil {
		return nil, err
	}
	if owner := backup.Snapshot().Meta(state.MetaClusterID); owner != clusterID {
		return nil, fmt.Errorf("the backup: %w (%q, this is %q)", ErrForeign, owner, clusterID)
	}
	return backup, nil
}
