package consensus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// These tests run a member as a process of its own, on a real file, which kills itself at a chosen moment of a script and
// is started again. The process is this test's binary.

// Where a process ends.
const (
	beforeSync = "before fsync"
	afterSync  = "after fsync"
	afterApply = "after apply"
	inSnapshot = "in a snapshot"
	inRestore  = "in a restore"
	diskFull   = "disk full"
	syncFails  = "fsync fails"
)

const (
	scriptLength = 400
	diedOfFault  = 3 // exit code
)

// script is the i-th command: half of them make nodes, the others change the one that was made before.
func script(i int, snapshot *state.Snapshot) state.Command {
	name := fmt.Sprintf("n%d", (i-1)/2)
	command := state.Command{
		Key: fmt.Sprintf("script-%d", i), Kind: "script", Caller: "operator/admin",
		At:    time.Date(2026, 11, 21, 12, 0, i, 0, time.UTC),
		Nodes: []model.Node{{ID: name, Name: name, Cluster: model.DefaultCluster}},
	}
	before, _ := snapshot.Node(name)
	if i%2 == 0 {
		command.Nodes[0].Name = name + "-renamed"
	}
	command.Expect = []state.Expectation{{Table: state.Nodes, ID: name, Revision: before.Revision}}
	return command
}

func killed() {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(err)
	}
	select {}
}

// mortal is the process's disk. It counts writes from when it is armed.
type mortal struct {
	backend
	moment string
	at     uint64 // number of a command of the script, or of a write
	armed  bool
	writes uint64
}

// meant tells whether an entry is the command at which the process ends.
func (m *mortal) meant(entry *raft.Log) bool {
	if entry.Type != raft.LogCommand {
		return false
	}
	commands, err := state.DecodeEntry(entry.Data)
	return err == nil && commands[0].Key == fmt.Sprintf("script-%d", m.at)
}

func (m *mortal) write(logs []*raft.Log, do func() error) error {
	if !m.armed {
		return do()
	}
	m.writes++
	if m.writes == m.at && m.moment == diskFull {
		return &os.PathError{Op: "write", Path: storeFile, Err: syscall.ENOSPC}
	}
	hit := false
	for _, log := range logs {
		hit = hit || m.meant(log)
	}
	if hit && m.moment == beforeSync {
		killed()
	}
	if err := do(); err != nil {
		return err
	}
	if hit && m.moment == afterSync {
		killed()
	}
	if m.writes == m.at && m.moment == syncFails { // what is on the disk then is anybody's guess
		return &os.PathError{Op: "fsync", Path: storeFile, Err: syscall.EIO}
	}
	return nil
}

func (m *mortal) StoreLog(log *raft.Log) error { return m.StoreLogs([]*raft.Log{log}) }

func (m *mortal) StoreLogs(logs []*raft.Log) error {
	return m.write(logs, func() error { return m.backend.StoreLogs(logs) })
}

func (m *mortal) DeleteRange(from, to uint64) error {
	return m.write(nil, func() error { return m.backend.DeleteRange(from, to) })
}

func (m *mortal) Set(key, value []byte) error {
	return m.write(nil, func() error { return m.backend.Set(key, value) })
}

func (m *mortal) SetUint64(key []byte, value uint64) error {
	return m.write(nil, func() error { return m.backend.SetUint64(key, value) })
}

// mortalFSM is the process's state machine.
type mortalFSM struct {
	raft.FSM
	disk *mortal
}

func (f mortalFSM) Apply(entry *raft.Log) any {
	answer := f.FSM.Apply(entry)
	if f.disk.moment == afterApply && f.disk.meant(entry) {
		killed()
	}
	return answer
}

func (f mortalFSM) Snapshot() (raft.FSMSnapshot, error) {
	taken, err := f.FSM.Snapshot()
	return mortalSnapshot{taken, f.disk}, err
}

func (f mortalFSM) Restore(from io.ReadCloser) error {
	if f.disk.moment != inRestore {
		return f.FSM.Restore(from)
	}
	if f.disk.at%2 == 0 {
		killed()
	}
	if err := f.FSM.Restore(from); err != nil {
		return err
	}
	killed()
	return nil
}

type mortalSnapshot struct {
	raft.FSMSnapshot
	disk *mortal
}

func (s mortalSnapshot) Persist(sink raft.SnapshotSink) error {
	if s.disk.moment == inSnapshot {
		sink = mortalSink{sink}
	}
	return s.FSMSnapshot.Persist(sink)
}

type mortalSink struct{ raft.SnapshotSink }

func (s mortalSink) Write(b []byte) (int, error) {
	if _, err := s.SnapshotSink.Write(b[:len(b)/2]); err != nil {
		return 0, err
	}
	killed()
	return 0, nil
}

// runMember is what the process does: commands from on to the end of the script, told line by line.
func runMember(dir, moment string, at uint64, from int) error {
	disk := &mortal{moment: moment, at: at}
	network := newWire(1)
	cfg := Config{
		DataDir: dir, MemberID: "m1", ClusterID: "c1", Advertise: "m1", MinFree: 1, Logger: hclog.NewNullLogger(),
		Fatal: func(error) { os.Exit(diedOfFault) },
		seams: seams{
			wrap: func(b backend) backend { disk.backend = b; return disk },
			link: func(members admission) (link, error) { return network.open("m1", members), nil },
			fsm:  func(below raft.FSM) raft.FSM { return mortalFSM{below, disk} },
			tune: func(c *raft.Config) {
				c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
			},
		},
	}
	if err := Bootstrap(cfg); err != nil && !errors.Is(err, ErrNotEmpty) {
		return err
	}
	disk.armed = true
	store := state.NewStore()
	c, err := Open(cfg, store)
	if err != nil {
		return err
	}
	go func() {
		for range c.Leadership() { // somebody has to listen
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for c.VerifyRead(ctx) != nil || store.Snapshot().Meta(state.MetaClusterID) == "" {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(5 * time.Millisecond)
	}
	snapped := false
	for i := from; i <= scriptLength; i++ {
		result, err := c.Propose(ctx, script(i, store.Snapshot()))
		if err != nil {
			return err
		}
		// What was stored before a crash is stale now, or answered by its key as it was then.
		if result.Refusal != nil {
			return fmt.Errorf("command %d was refused: %w", i, result.Refusal)
		}
		fmt.Println("ack", i, result.Index)
		if (moment == inSnapshot || moment == inRestore+" to be") && uint64(i) >= at && !snapped {
			snapped = true
			if err := c.raft.Load().Snapshot().Error(); err != nil {
				return err
			}
			if moment != inSnapshot {
				killed()
			}
		}
	}
	fmt.Println("done", store.Snapshot().Index(), store.Hash())
	return nil
}

// asMember is in TestMain: this process is a member, if its environment says so.
func asMember() {
	dir := os.Getenv("BERTH_TEST_MEMBER")
	if dir == "" {
		return
	}
	at, _ := strconv.ParseUint(os.Getenv("BERTH_TEST_AT"), 10, 64)
	from, _ := strconv.Atoi(os.Getenv("BERTH_TEST_FROM"))
	if err := runMember(dir, os.Getenv("BERTH_TEST_MOMENT"), at, from); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// mortalMember is one member over its processes, as its clients see it.
type mortalMember struct {
	dir      string
	acked    map[int]uint64
	last     int
	done     string // index and hash
	restarts int
}

// run starts a process and waits for its end.
func (m *mortalMember) run(moment string, at uint64) (ended *os.ProcessState, err error) {
	m.restarts++
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "BERTH_TEST_MEMBER="+m.dir, "BERTH_TEST_MOMENT="+moment,
		fmt.Sprint("BERTH_TEST_AT=", at), fmt.Sprint("BERTH_TEST_FROM=", m.last+1))
	var told, errs bytes.Buffer
	command.Stdout, command.Stderr = &told, &errs
	failed := command.Run()
	for lines := bufio.NewScanner(&told); lines.Scan(); {
		var i int
		var index uint64
		if _, err := fmt.Sscanf(lines.Text(), "ack %d %d", &i, &index); err == nil {
			m.acked[i], m.last = index, i
		} else if text, found := strings.CutPrefix(lines.Text(), "done "); found {
			m.done = text
		}
	}
	if code := command.ProcessState.ExitCode(); failed != nil && code != -1 && code != diedOfFault {
		return command.ProcessState, fmt.Errorf("%w: %s", failed, errs.String())
	}
	return command.ProcessState, nil
}

// compare applies the member's log to a state that never crashed.
func (m *mortalMember) compare() error {
	logs, err := openBolt(m.dir)
	if err != nil {
		return err
	}
	defer logs.Close()
	reference := state.NewStore()
	machine := reference.FSM()
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	for index := uint64(1); index <= last; index++ {
		var entry raft.Log
		if err := logs.GetLog(index, &entry); err != nil {
			return err
		}
		if entry.Type == raft.LogCommand {
			machine.Apply(&entry)
		}
	}
	if want := fmt.Sprint(reference.Snapshot().Index(), " ", reference.Hash()); m.done != want {
		return fmt.Errorf("it ended with %s, its log gives %s", m.done, want)
	}
	for i := 1; i <= scriptLength; i++ {
		if _, acked := m.acked[i]; !acked || !reference.Snapshot().Answered(fmt.Sprintf("script-%d", i), "script") {
			return fmt.Errorf("command %d is not there", i)
		}
	}
	if nodes := len(reference.Snapshot().Nodes()); nodes != scriptLength/2 {
		return fmt.Errorf("it has %d nodes", nodes)
	}
	return nil
}

// endAt plays the script with an end at one moment.
func endAt(dir, moment string, at uint64) (restarts int, err error) {
	m := &mortalMember{dir: dir, acked: make(map[int]uint64)}
	first := moment
	if moment == inRestore {
		first += " to be"
	}
	ended, err := m.run(first, at)
	if err == nil && moment == inRestore {
		ended, err = m.run(inRestore, at)
	}
	if err != nil {
		return 0, err
	}
	status, _ := ended.Sys().(syscall.WaitStatus)
	if want := moment == diskFull || moment == syncFails; want && ended.ExitCode() != diedOfFault || !want && !status.Signaled() {
		return 0, fmt.Errorf("it did not end %s at %d: %s", moment, at, ended)
	}
	if _, err := m.run("", 0); err != nil {
		return 0, err
	}
	return m.restarts, m.compare()
}

// scratch is a directory in memory where there is one: what a killed process has written stays, synced or not.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "berth-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// endEverywhere plays the script once for each moment and each place, and counts what went wrong.
func endEverywhere(t *testing.T, moments []string, places []uint64) (ends, restarts, wrong int) {
	type end struct {
		moment string
		at     uint64
	}
	work := make(chan end)
	base := scratch(t)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for e := range work {
				dir := filepath.Join(base, fmt.Sprintf("%s-%d", strings.ReplaceAll(e.moment, " ", "-"), e.at))
				n, err := endAt(dir, e.moment, e.at)
				mu.Lock()
				ends, restarts = ends+1, restarts+n
				if err != nil {
					wrong++
					t.Errorf("%s, at %d: %v", e.moment, e.at, err)
				}
				mu.Unlock()
				os.RemoveAll(dir)
			}
		})
	}
	for _, moment := range moments {
		for _, at := range places {
			work <- end{moment, at}
		}
	}
	close(work)
	workers.Wait()
	return ends, restarts, wrong
}

// spread takes n places from first to last.
func spread(first, last, n int) (places []uint64) {
	n = min(max(n, 1), last-first+1)
	for i := range n {
		places = append(places, uint64(first+i*(last-first)/max(n-1, 1)))
	}
	return places
}

func met(good bool) string {
	if good {
		return "met"
	}
	return "not met"
}

// KILLS says at how many places a member is killed, of scriptLength times five.
func TestAKilledMemberComesBackAsIfNothingHadBeen(t *testing.T) {
	kills := number(t, "KILLS", 200)
	if testing.Short() || raceDetected {
		kills = number(t, "KILLS", 10)
	}
	moments := []string{beforeSync, afterSync, afterApply, inSnapshot, inRestore}
	ends, restarts, wrong := endEverywhere(t, moments, spread(1, scriptLength, kills/len(moments)))
	t.Logf("GOAL G4: %d kills at %d moments of %d commands, %d processes, "+
		"%d with another state than one that never crashed | wanted 0 of %d | %s",
		ends, len(moments), scriptLength, restarts, wrong, kills, met(wrong == 0 && ends >= kills))
}

// FAULTS says at how many writes a disk is full and an fsync fails.
func TestAMemberWhoseDiskFailsEndsAndComesBackWhole(t *testing.T) {
	faults := number(t, "FAULTS", 40)
	if testing.Short() || raceDetected {
		faults = number(t, "FAULTS", 4)
	}
	ends, _, wrong := endEverywhere(t, []string{diskFull, syncFails}, spread(1, scriptLength, faults/2))
	t.Logf("GOAL G11: %d writes refused or not synced, %d members that went on or came back with another state | wanted 0 | %s",
		ends, wrong, met(wrong == 0 && ends > 0))
}
