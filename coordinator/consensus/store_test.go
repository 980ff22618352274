package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/state"
	"berth/shared/units"
)

// faulty is a disk that can fail or hang from a moment on.
type faulty struct {
	backend
	fail atomic.Pointer[error]
	hang chan struct{}
}

func (f *faulty) StoreLogs(logs []*raft.Log) error {
	if f.hang != nil {
		<-f.hang
	}
	if err := f.fail.Load(); err != nil {
		return *err
	}
	return f.backend.StoreLogs(logs)
}

func (f *faulty) StoreLog(log *raft.Log) error { return f.StoreLogs([]*raft.Log{log}) }

func TestAFullOrBrokenDiskEndsTheProcess(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		t.Run(cause.Error(), func(t *testing.T) {
			disk := &faulty{}
			all := newTeam(t, newAuthority(t, "c1"), 2)
			leader := all.leader()
			leader.kill()
			leader.cfg.seams.wrap = func(b backend) backend { disk.backend = b; return disk }
			leader.start()
			all.leader()
			broken := &os.PathError{Op: "write", Path: "log.db", Err: cause}
			failed := error(broken)
			disk.fail.Store(&failed)
			// Wherever the leadership is, the write reaches this disk; without it there is no quorum.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := all.persist(ctx, enrol("n1")); err == nil {
				t.Error("acknowledged by one disk of two")
			}
			eventually(t, "it is told", func() bool { return len(leader.died()) > 0 })
			died := leader.died()
			if len(died) != 1 || !errors.Is(died[0], cause) || !strings.Contains(died[0].Error(), leader.cfg.DataDir) ||
				!strings.Contains(died[0].Error(), "start the coordinator again") {
				t.Errorf("told %v", died)
			}
		})
	}
}

func TestAHangingDiskEndsTheProcess(t *testing.T) {
	told := make(chan error, 1)
	disk := &faulty{hang: make(chan struct{})}
	g := &guarded{backend: disk, limit: 10 * time.Millisecond, fatal: func(err error) {
		told <- err
		close(disk.hang)
	}}
	broken := errors.New("after all")
	disk.fail.Store(&broken)
	g.closed.Store(true) // so that only the hanging is told
	if err := g.StoreLogs(nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := <-told; !strings.Contains(err.Error(), "hangs") {
		t.Errorf("told %v", err)
	}
}

// A write that does not come back for storeLimit ends the process; one that takes nearly as long does not.
func TestADiskMayHangForTenSeconds(t *testing.T) {
	for hangs, ends := range map[time.Duration]bool{storeLimit - time.Millisecond: false, storeLimit + time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			began, disk := time.Now(), &faulty{hang: make(chan struct{})}
			broken := errors.New("after all")
			disk.fail.Store(&broken)
			var told atomic.Int64
			g := &guarded{backend: disk, limit: storeLimit, fatal: func(error) { told.Store(int64(time.Since(began))) }}
			g.closed.Store(true) // so that only the hanging is told
			time.AfterFunc(hangs, func() { close(disk.hang) })
			if err := g.StoreLogs(nil); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			if after := time.Duration(told.Load()); ends && after != storeLimit || !ends && after != 0 {
				t.Errorf("a disk that hung for %s was told of after %s", hangs, after)
			}
		})
	}
}

func TestWhatIsAbsentIsNoFault(t *testing.T) {
	bolt, err := openBolt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{backend: bolt, limit: time.Minute, fatal: func(err error) { t.Errorf("fatal: %v", err) }}
	defer g.Close()
	if err := g.GetLog(7, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an absent entry: %v", err)
	}
	if _, err := g.GetUint64([]byte("CurrentTerm")); err == nil || err.Error() != "not found" {
		t.Errorf("an absent term: %v; Raft knows it by its text", err)
	}
}

func TestTheStoreGivesBackWhatWasStored(t *testing.T) {
	bolt, err := openBolt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	logs := []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogNoop},
		{Index: 2, Term: 1, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("more")},
	}
	if err := bolt.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
	if first, last := indexes(t, bolt); first != 1 || last != 2 {
		t.Errorf("it has entries %d to %d", first, last)
	}
	if logs[1].Extensions[len(logs[1].Extensions)-1] != 'e' {
		t.Error("storing changed what Raft sends to the others")
	}
	for _, want := range logs {
		var got raft.Log
		if err := bolt.GetLog(want.Index, &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Data) != string(want.Data) || string(got.Extensions) != string(want.Extensions) || got.Term != want.Term {
			t.Errorf("got %+v, want %+v", got, *want)
		}
	}
	if err := bolt.SetUint64([]byte("CurrentTerm"), 7); err != nil {
		t.Fatal(err)
	}
	if term, err := bolt.GetUint64([]byte("CurrentTerm")); term != 7 || err != nil {
		t.Errorf("the term is %d, %v", term, err)
	}
}

func indexes(t *testing.T, logs raft.LogStore) (first, last uint64) {
	t.Helper()
	first, err := logs.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	if last, err = logs.LastIndex(); err != nil {
		t.Fatal(err)
	}
	return first, last
}

func TestTheStoreKnowsWhichEntriesItHas(t *testing.T) {
	dir := t.TempDir()
	var bolt backend
	reopen := func() {
		t.Helper()
		if bolt != nil {
			bolt.Close()
		}
		var err error
		if bolt, err = openBolt(dir); err != nil {
			t.Fatal(err)
		}
	}
	reopen()
	defer func() { bolt.Close() }()
	entries := func(from, to uint64) (logs []*raft.Log) {
		for i := from; i <= to; i++ {
			logs = append(logs, &raft.Log{Index: i, Term: 1})
		}
		return logs
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name        string
		do          func() error
		first, last uint64
	}{
		{"empty", func() error { return nil }, 0, 0},
		{"shortened when empty", func() error { return bolt.DeleteRange(1, 5) }, 0, 0},
		{"ten entries", func() error { return bolt.StoreLogs(entries(1, 10)) }, 1, 10},
		{"conflicting end cut off", func() error { return bolt.DeleteRange(8, 10) }, 1, 7},
		{"new end", func() error { return bolt.StoreLogs(entries(8, 12)) }, 1, 12},
		{"compacted", func() error { return bolt.DeleteRange(1, 5) }, 6, 12},
		{"after a gap", func() error { return bolt.StoreLogs(entries(20, 21)) }, 6, 21},
		{"all of it gone", func() error { return bolt.DeleteRange(6, 21) }, 0, 0},
		{"from another beginning", func() error { return bolt.StoreLogs(entries(30, 31)) }, 30, 31},
	} {
		must(step.do())
		reopen()
		if first, last := indexes(t, bolt); first != step.first || last != step.last {
			t.Errorf("%s: it has entries %d to %d, want %d to %d", step.name, first, last, step.first, step.last)
		}
	}
	if err := bolt.DeleteRange(30, 30); err != nil {
		t.Error(err)
	}
	must(bolt.StoreLogs(entries(32, 40)))
	if err := bolt.DeleteRange(34, 36); err == nil {
		t.Error("entries in the midst were deleted")
	}
	if err := bolt.GetLog(witnessIndex, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("Raft sees the witness: %v", err)
	}
	must(verifyLog(bolt, 30))

	// A crash after the witness of a cut, before the cut.
	inner := bolt.(*checked)
	must(inner.store([]*raft.Log{witness(31, 38, true)}))
	reopen()
	if first, last := indexes(t, bolt); first != 31 || last != 38 {
		t.Errorf("after a crash it has entries %d to %d, want 31 to 38", first, last)
	}
	if err := bolt.GetLog(39, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("the cut was not finished: %v", err)
	}

	// Entries that are promised and not there, and entries that are there and unknown.
	must(bolt.(*checked).backend.DeleteRange(38, 38))
	reopen()
	if err := verifyLog(bolt, 30); !errors.Is(err, ErrDamaged) {
		t.Errorf("the last entry vanished unnoticed: %v", err)
	}
	must(bolt.(*checked).store(append(entries(38, 39), witness(31, 37, false))))
	reopen()
	if err := verifyLog(bolt, 30); !errors.Is(err, ErrDamaged) {
		t.Errorf("an entry came from nowhere: %v", err)
	}
}

// Whatever page of the store is damaged: it opens with the same content, or it is refused. It never opens with another.
func TestADamagedStoreIsRefusedOrWhole(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.cfg.Logger = hclog.NewNullLogger()
	p.bootstrap()
	leader := team{p}.leader()
	for i := range 40 {
		leader.mustPropose(enrol(fmt.Sprintf("n%d", i)))
	}
	p.kill()
	path := filepath.Join(p.cfg.DataDir, storeFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content := func(dir string) (string, error) {
		bolt, err := openBolt(dir)
		if err != nil {
			return "", err
		}
		defer bolt.Close()
		var text strings.Builder
		err = protect(func() error {
			if err := verifyLog(bolt, 0); err != nil {
				return err
			}
			last, err := bolt.LastIndex()
			if err != nil {
				return err
			}
			for i := uint64(1); i <= last; i++ {
				var log raft.Log
				if err := bolt.GetLog(i, &log); err != nil {
					return err
				}
				fmt.Fprintln(&text, log.Index, log.Term, log.Type, string(log.Data))
			}
			term, err := bolt.GetUint64([]byte("CurrentTerm"))
			fmt.Fprintln(&text, term)
			return err
		})
		return text.String(), err
	}
	want, err := content(p.cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	refused, flipped, silent := 0, 0, 0
	for at := 0; at < len(good); at += page {
		if bytes.Equal(good[at:at+page], make([]byte, page)) {
			continue // never used
		}
		// The page's header, its first elements, its data.
		offsets := []int{0, 8, 10, 12, 16, 20, 24, 28, 33, 72, 700, 4000}
		for offset := 101; offset < page; offset += 120 {
			offsets = append(offsets, offset)
		}
		damages := map[string]func(page []byte){
			"all its elements are gone": func(page []byte) { clear(page[10:12]) },
		}
		for _, offset := range offsets {
			damages[fmt.Sprintf("a bit of byte %d is flipped", offset)] = func(page []byte) { page[offset] ^= 1 << (offset % 8) }
		}
		for what, damage := range damages {
			bad := bytes.Clone(good)
			damage(bad[at : at+page])
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, storeFile), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := content(dir)
			flipped++
			switch {
			case err != nil:
				refused++
			case got != want:
				silent++
				t.Errorf("page %d, %s: opened with another content", at/page, what)
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed: this test cannot fail")
	}
	t.Logf("%d pages, %d damages refused, the others were in free space", len(good)/page, refused)
	t.Logf("GOAL G11: %d damages of bits and heads in %d pages of the log, %d opened with another content | wanted 0 of 500 | %s",
		flipped, len(good)/page, silent, met(silent == 0 && flipped >= 500))
}

func TestOpenTellsAboutADamagedLog(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	team{p}.leader().mustPropose(enrol("precious"))
	p.kill()
	path := filepath.Join(p.cfg.DataDir, storeFile)
	logs, err := openBolt(p.cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	last, err := logs.LastIndex()
	var entry raft.Log
	if err = errors.Join(err, logs.GetLog(last, &entry)); err != nil || entry.Type != raft.LogCommand {
		t.Fatalf("%s, %v", entry.Type, err)
	}
	damaged := bytes.Clone(entry.Data)
	damaged[len(damaged)/2] ^= 1
	err = logs.Close()
	data, unread := os.ReadFile(path)
	whole := bytes.ReplaceAll(data, entry.Data, damaged)
	if err := errors.Join(err, unread, os.WriteFile(path, whole, 0o600)); err != nil || bytes.Equal(whole, data) {
		t.Fatalf("the entry is not in the file, or %v", err)
	}
	store := state.NewStore()
	_, err = Open(p.cfg, store)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "entry ") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestAClusterIsBootstrappedOnceAndOpenedOnce(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	if err := Bootstrap(p.cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("bootstrapped under a running member: %v", err)
	}
	p.kill()
	if err := Bootstrap(p.cfg); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("bootstrapped twice: %v", err)
	}
}

func TestAStateOfAnotherClusterIsNotOpened(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	eventually(t, "the cluster's ID", func() bool { return p.store.Snapshot().Meta(state.MetaClusterID) != "" })
	if err := snapshotNow(p); err != nil {
		t.Fatal(err)
	}
	p.kill()
	p.cfg.ClusterID = "c2"
	store := state.NewStore()
	if _, err := Open(p.cfg, store); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

func snapshotNow(p *peer) error { return p.raft.Load().Snapshot().Error() }

func TestAMemberThatIsFarBehindGetsASnapshot(t *testing.T) {
	ca := newAuthority(t, "c1")
	all := newTeam(t, ca, 1)
	leader := all.leader()
	for i := range 10 {
		leader.mustPropose(enrol(fmt.Sprintf("n%d", i)))
	}
	config := leader.raft.Load().ReloadableConfig()
	config.TrailingLogs = 1
	if err := leader.raft.Load().ReloadConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := snapshotNow(leader); err != nil {
		t.Fatal(err)
	}
	if leader.Stats().LastSnapshot == 0 {
		t.Error("the figures know of no snapshot")
	}
	late := newPeer(t, ca, "m2")
	late.start()
	all.join(late)
	append(all, late).agree()
	leader.kill()
	leader.start() // from the snapshot and the one entry after it
	append(all, late).agree()
}

func TestFreeSpace(t *testing.T) {
	for _, c := range []struct {
		name              string
		free, size, least units.Bytes
		low               bool
	}{
		{"enough", units.GiB, 100 * units.GiB, 512 * units.MiB, false},
		{"too little", 511 * units.MiB, 100 * units.GiB, 512 * units.MiB, true},
		{"a small file system with a sixteenth", 4 * units.MiB, 64 * units.MiB, 512 * units.MiB, false},
		{"a small file system, full", 0, 64 * units.MiB, 512 * units.MiB, true},
	} {
		if err := enough("/data", c.free, c.size, c.least); errors.Is(err, ErrDiskLow) != c.low {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := checkDisk(t.TempDir(), 1); err != nil {
		t.Errorf("a byte is free: %v", err)
	}
}
