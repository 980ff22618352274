package consensus

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// retained is how many snapshots are kept on disk.
const retained = 3

// snapshots are Raft's files, whose failing writes end the process like the log's.
type snapshots struct {
	raft.SnapshotStore
	fatal func(error)
}

func openSnapshots(dir string, logger hclog.Logger, fatal func(error)) (*snapshots, error) {
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, retained, logger)
	if err != nil {
		return nil, fmt.Errorf("open snapshots in %s: %w", dir, err)
	}
	return &snapshots{files, fatal}, nil
}

// newest is the index of the newest snapshot whose file is whole; 0 when there is none.
func (s *snapshots) newest() (uint64, error) {
	list, err := s.List()
	if err != nil {
		return 0, err
	}
	for _, meta := range list {
		_, file, err := s.Open(meta.ID)
		if err != nil {
			continue
		}
		return meta.Index, file.Close()
	}
	if len(list) > 0 {
		return 0, fmt.Errorf("%w: none of %d snapshots can be read", ErrDamaged, len(list))
	}
	return 0, nil
}

// Create implements raft.SnapshotStore.
func (s *snapshots) Create(
	version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64,
	transport raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		s.fatal(fmt.Errorf("cannot write a snapshot: %w", err))
		return nil, err
	}
	return &snapshotSink{sink, s.fatal}, nil
}

type snapshotSink struct {
	raft.SnapshotSink
	fatal func(error)
}

func (s *snapshotSink) Write(b []byte) (int, error) {
	n, err := s.SnapshotSink.Write(b)
	if err != nil {
		s.fatal(fmt.Errorf("cannot write a snapshot: %w", err))
	}
	return n, err
}

func (s *snapshotSink) Close() error {
	err := s.SnapshotSink.Close()
	if err != nil {
		s.fatal(fmt.Errorf("cannot write a snapshot: %w", err))
	}
	return err
}
