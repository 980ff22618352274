package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"berth/coordinator/state"
	"berth/shared/units"
)

// What is here works on the store of a member that does not run. The lock of the log's file keeps the two apart.

// Inspection is what a store holds.
type Inspection struct {
	First, Last uint64 // entries of the log; 0: there are none
	Term        uint64
	LogSize     units.Bytes
	Snapshots   []uint64 // their indexes, newest first
	Commands    int      // in the log
	Members     []Server // by the newest configuration, committed or not
	// State is what comes of the newest snapshot and the whole log after it. The last entries may not have been committed.
	State *state.Snapshot
}

// Inspect reads the store in dir as a whole: every page, entry, value and snapshot with its sum; that each command can be
// decoded and applied; and that the state has the hashes that other members had. The error is ErrNoStore, ErrInUse or
// ErrDamaged and says what is wrong.
func Inspect(dir string, logger hclog.Logger) (Inspection, error) {
	store, err := openStored(dir, logger)
	if err != nil {
		return Inspection{}, err
	}
	defer store.logs.Close()
	return store.inspect()
}

// stored is the store of a member that does not run.
type stored struct {
	dir   string
	logs  backend
	files *snapshots
}

func openStored(dir string, logger hclog.Logger) (*stored, error) {
	if _, err := os.Stat(filepath.Join(dir, storeFile)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoStore, dir)
	}
	logs, err := openBolt(dir)
	if err != nil {
		return nil, err
	}
	files, err := openSnapshots(dir, logger, func(error) {}) // what fails is returned as well
	if err != nil {
		return nil, errors.Join(err, logs.Close())
	}
	return &stored{dir, logs, files}, nil
}

func (s *stored) inspect() (found Inspection, err error) {
	if info, err := os.Stat(filepath.Join(s.dir, storeFile)); err == nil {
		found.LogSize = units.Bytes(info.Size())
	}
	base, err := s.loadSnapshots(&found)
	if err != nil {
		return found, err
	}
	newest := uint64(0)
	if len(found.Snapshots) > 0 {
		newest = found.Snapshots[0]
	}
	if err := protect(func() error { return verifyLog(s.logs, newest) }); err != nil {
		return found, damaged(filepath.Join(s.dir, storeFile), err)
	}
	if err := s.readValues(&found); err != nil {
		return found, damaged(filepath.Join(s.dir, storeFile), err)
	}
	if err := s.replay(&found, base, newest); err != nil {
		return found, err
	}
	found.State = base.Snapshot()
	return found, nil
}

// loadSnapshots reads all of them, and restores the newest.
func (s *stored) loadSnapshots(found *Inspection) (*state.Store, error) {
	list, err := s.files.List()
	if err != nil {
		return nil, err
	}
	var newest *state.Store
	for _, meta := range list {
		at := filepath.Join(s.dir, "snapshots", meta.ID)
		opened, file, err := s.files.Open(meta.ID)
		if err != nil {
			return nil, damaged(at, err)
		}
		loaded, err := state.Load(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, damaged(at, err)
		}
		found.Snapshots = append(found.Snapshots, meta.Index)
		if newest == nil {
			newest, found.Members = loaded, serversOf(opened.Configuration)
		}
	}
	if newest == nil {
		return state.NewStore(), nil
	}
	return newest, nil
}

// readValues reads what Raft keeps outside the log.
func (s *stored) readValues(found *Inspection) (err error) {
	if found.First, err = s.logs.FirstIndex(); err != nil {
		return err
	}
	if found.Last, err = s.logs.LastIndex(); err != nil {
		return err
	}
	if found.Term, err = s.logs.GetUint64([]byte(currentTerm)); err != nil && !absent(err) {
		return err
	}
	for _, key := range []string{"LastVoteTerm", "LastVoteCand"} {
		if _, err := s.logs.Get([]byte(key)); err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// replay decodes every entry, and applies those that the snapshot does not have.
func (s *stored) replay(found *Inspection, onto *state.Store, snapshot uint64) error {
	fsm := onto.FSM()
	for index := found.First; index <= found.Last && index > 0; index++ {
		var entry raft.Log
		err := s.logs.GetLog(index, &entry)
		if errors.Is(err, raft.ErrLogNotFound) && index <= snapshot {
			continue // where a backup was restored
		}
		if err != nil {
			return damaged(filepath.Join(s.dir, storeFile), err)
		}
		switch entry.Type {
		case raft.LogConfiguration:
			if index > snapshot {
				found.Members = serversOf(raft.DecodeConfiguration(entry.Data))
			}
		case raft.LogCommand:
			commands, err := state.DecodeEntry(entry.Data)
			if err != nil {
				return fmt.Errorf("entry %d of the log cannot be read: %w; run the release that wrote it", index, err)
			}
			found.Commands += len(commands)
			if index <= snapshot {
				continue
			}
			if err := apply(fsm, &entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply makes an error of what would end a running member.
func apply(fsm raft.FSM, entry *raft.Log) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, reason)
		}
	}()
	fsm.Apply(entry)
	return nil
}

func serversOf(configuration raft.Configuration) []Server {
	var servers []Server
	for _, server := range configuration.Servers {
		servers = append(servers, Server{
			ID: string(server.ID), Address: string(server.Address), Voter: server.Suffrage == raft.Voter,
		})
	}
	return servers
}

// compactBatch is how much of the log one transaction copies.
const compactBatch = 1 << 20

// Compact writes the log into a new file without the room of entries that are gone, and puts it in the place of the old
// one, whole or not at all. It returns the size before and after. The error is ErrNoStore, ErrInUse or ErrDamaged.
func Compact(dir string) (before, after units.Bytes, err error) {
	path := filepath.Join(dir, storeFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return 0, 0, fmt.Errorf("%w: %s", ErrNoStore, dir)
	}
	if err := checkFile(path); err != nil {
		return 0, 0, opened(path, err)
	}
	old, err := bbolt.Open(path, 0o600, boltOptions())
	if err != nil {
		return 0, 0, opened(path, err)
	}
	defer old.Close()
	fresh := path + ".compact"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) { // of a try that was broken off
		return 0, 0, err
	}
	if err := copyLog(old, fresh); err != nil {
		return 0, 0, errors.Join(fmt.Errorf("compact %s: %w", path, err), os.Remove(fresh))
	}
	if before, after, err = sizes(path, fresh); err != nil {
		return 0, 0, err
	}
	if err := errors.Join(os.Rename(fresh, path), syncDir(dir)); err != nil {
		return 0, 0, fmt.Errorf("put the compacted log into its place: %w", err)
	}
	// A coordinator that was started meanwhile may wait for the lock of the file that is gone. It must not get it.
	time.Sleep(2 * lockTimeout)
	return before, after, nil
}

// copyLog writes a whole new file, or leaves one to be removed.
func copyLog(from *bbolt.DB, path string) error {
	to, err := bbolt.Open(path, 0o600, boltOptions())
	if err != nil {
		return err
	}
	if err := errors.Join(bbolt.Compact(to, from, compactBatch), to.Sync(), to.Close()); err != nil {
		return err
	}
	return checkFile(path)
}

func sizes(before, after string) (units.Bytes, units.Bytes, error) {
	old, err := os.Stat(before)
	if err != nil {
		return 0, 0, err
	}
	fresh, err := os.Stat(after)
	if err != nil {
		return 0, 0, err
	}
	return units.Bytes(old.Size()), units.Bytes(fresh.Size()), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// currentTerm is the key of Raft's term in its store. A member that goes on alone adds termJump to it: more elections than
// the members which it leaves behind will ever hold.
const (
	currentTerm = "CurrentTerm"
	termJump    = 1 << 20
)

// Recover makes this member the only one of its cluster, for when a majority of the others is gone for good. What the
// others had decided without this one is lost. The state is quarantined as that of a backup is; the other members are
// forgotten and have to join again, with empty data directories. Its terms are above all that the others can come to: if they
// are started again all the same, and elect a leader, the agents that have seen this one do not obey it. Nothing is changed
// unless the whole store can be read.
// The error is ErrNoStore, ErrInUse, ErrForeign or ErrDamaged.
func Recover(cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	store, err := openStored(cfg.DataDir, cfg.Logger)
	if err != nil {
		return err
	}
	defer store.logs.Close()
	found, err := store.inspect()
	if err != nil {
		return err
	}
	if owner := found.State.Meta(state.MetaClusterID); owner != cfg.ClusterID {
		return fmt.Errorf("%w: the store has the state of cluster %q, this coordinator belongs to %q", ErrForeign, owner, cfg.ClusterID)
	}
	scratch := state.NewStore()
	if err := store.logs.SetUint64([]byte(currentTerm), found.Term+termJump); err != nil {
		return fmt.Errorf("recover %s: %w", cfg.DataDir, err)
	}
	_, nowhere := raft.NewInmemTransport(raft.ServerAddress(cfg.Advertise))
	defer nowhere.Close()
	fsm := &lonely{FSM: scratch.FSM(), store: scratch, member: cfg.MemberID, caller: "coordinator/" + cfg.Name}
	if err := raft.RecoverCluster(cfg.raft(nil), fsm, store.logs, store.logs, store.files, nowhere, cfg.alone()); err != nil {
		return fmt.Errorf("recover %s: %w", cfg.DataDir, err)
	}
	return nil
}

// lonely is the state of a member that goes on alone: it is quarantined before it is written.
type lonely struct {
	raft.FSM
	store  *state.Store
	member string
	caller string
}

func (l *lonely) Snapshot() (raft.FSMSnapshot, error) {
	l.store.QuarantineAlone(l.member, l.store.Snapshot().Identities(), time.Now().UTC(), l.caller)
	return l.FSM.Snapshot()
}
