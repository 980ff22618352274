package term_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func sized(name string, state berthv1.VMState, gib int64) *berthv1.VM {
	return &berthv1.VM{Name: name, State: state, Spec: &berthv1.VMSpec{MemoryBytes: gib << 30, Vcpus: 1}}
}

const (
	isRunning = berthv1.VMState_VM_STATE_RUNNING
	isStopped = berthv1.VMState_VM_STATE_STOPPED
)

// The coordinator narrows the list, so the flags go there whole, and a list that was not narrowed is refused.
func TestTheCoordinatorNarrowsLists(t *testing.T) {
	f := clitest.Steady()
	heeds := true
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{SchemaVersion: "1", Filtered: heeds}, nil
	}
	w, _ := clitest.NewSite(t, f)
	line := strings.Fields("vm list --node node/n1,n2 --state running --customer customer/acme --group g --label a --label b")
	said := w.Run(line...)
	if said.Exit != term.Done || said.ErrOut != "no VM is like that\n" {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	want := &berthv1.Filter{
		Nodes: []string{"n1", "n2"}, States: []string{"running"}, Customers: []string{"acme"}, Groups: []string{"g"}, Labels: []string{"a", "b"},
	}
	if got := clitest.Asked[berthv1.ListVMsRequest](f)[0].GetFilter(); !proto.Equal(got, want) {
		t.Errorf("asked by %v", got)
	}
	heeds = false
	if said := w.Run(line...); said.Exit != term.Failed || !strings.Contains(said.ErrOut, "of an older release and does not know filters") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if said := w.Run("vm", "list"); said.Exit != term.Done {
		t.Errorf("without a filter: exit %d, %s", said.Exit, said.ErrOut)
	}
}

// Ages count from now, and a list that has them asks all its pages by the same times.
func TestHistoryIsAskedForByTime(t *testing.T) {
	f := clitest.Steady()
	f.OnListOps = func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error) {
		return &berthv1.ListOperationsResponse{SchemaVersion: "1", Filtered: true}, nil
	}
	heeds := true
	f.OnEvents = func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
		return send(&berthv1.WatchEventsResponse{Filtered: heeds})
	}
	w, _ := clitest.NewSite(t, f)
	now := clitest.Ago(0).AsTime()
	for text, want := range map[string]time.Time{
		"45s": now.Add(-45 * time.Second), "2h": now.Add(-2 * time.Hour), "3d": now.AddDate(0, 0, -3), "1d4h": now.Add(-28 * time.Hour),
		"2w": now.AddDate(0, 0, -14), "2026-01-31T15:04:05+01:00": time.Date(2026, time.January, 31, 14, 4, 5, 0, time.UTC),
	} {
		said := w.Run("operation", "list", "--vm", "vm/web1", "--kind", "start,stop", "--by", "alice", "--since", text, "--until", "1s")
		if said.Exit != term.Done || said.ErrOut != "no operation is like that\n" {
			t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
		}
		asked := clitest.Asked[berthv1.ListOperationsRequest](f)
		filter := &berthv1.Filter{
			Vms: []string{"web1"}, Kinds: []string{"start", "stop"}, Callers: []string{"alice"},
			Since: timestamppb.New(want), Until: timestamppb.New(now.Add(-time.Second)),
		}
		if got := asked[len(asked)-1].GetFilter(); !proto.Equal(got, filter) {
			t.Errorf("%s: asked by %v, want %v", text, got, filter)
		}
	}
	if said := w.Run("events", "--since", "2h", "--node", "node/n1"); said.Exit != term.Done || said.ErrOut != "no event is like that\n" {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if asked := clitest.Asked[berthv1.WatchEventsRequest](f)[0]; asked.GetBacklog() != 10000 || asked.GetFilter().GetNodes()[0] != "n1" {
		t.Errorf("events asked by %v", asked)
	}
	heeds = false
	if said := w.Run("events", "--vm", "web1"); said.Exit != term.Failed ||
		!strings.Contains(said.ErrOut, "of an older release and does not know filters") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

func TestListsAreSorted(t *testing.T) {
	f := clitest.Steady()
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{SchemaVersion: "1", Vms: []*berthv1.VM{
			sized("a", isStopped, 2), sized("b", isRunning, 9), sized("c", isStopped, 10), sized("d", isRunning, 2),
		}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for word, want := range map[string]string{
		"": "vm/a vm/b vm/c vm/d", "memory": "vm/c vm/b vm/a vm/d", "state": "vm/b vm/d vm/a vm/c", "name": "vm/a vm/b vm/c vm/d",
	} {
		said := w.Run("vm", "list", "-o", "name", "--sort", word)
		if got := strings.Join(strings.Fields(said.Out), " "); got != want {
			t.Errorf("by %q: %s, want %s; %s", word, got, want, said.ErrOut)
		}
	}
	for _, noun := range []string{"vm", "node", "operation", "decision"} {
		said := w.Run(noun, "list", "--sort", "colour")
		if said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, "--sort colour: use name, ") {
			t.Errorf("%s: exit %d, %s", noun, said.Exit, said.ErrOut)
		}
	}
}

// Where there is no terminal a watched list is printed once, and then a row for each change and nothing else, until the interrupt.
func TestAWatchedListPrintsChanges(t *testing.T) {
	f := clitest.Steady()
	usage := 0.1
	looks := 0
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		vms := []*berthv1.VM{sized("a", isRunning, 1), sized("b", isRunning, 1), sized("c", isStopped, 1)}
		looks++
		usage *= 2
		vms[0].Telemetry = &berthv1.DomainTelemetry{CpuRatio: &usage} // moves all the time, and is no change
		switch {
		case looks == 2:
			vms[1].State = isStopped
		case looks == 3:
			return nil, rpc.Errorf(14, &berthv1.ErrorDetail{Code: rpc.NoLeader}, "the coordinators have no leader")
		case looks > 3:
			vms = append(vms[:1:1], sized("b", isStopped, 1), sized("d", isRunning, 1))
		}
		return &berthv1.ListVMsResponse{SchemaVersion: "1", Vms: vms}, nil
	}
	w, _ := clitest.NewSite(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errOut := clitest.Until{Word: "gone", Then: cancel}, bytes.Buffer{}
	if exit := w.RunTo(ctx, &out, &errOut, "vm", "list", "--watch", "--interval", "100ms"); exit != term.Done {
		t.Errorf("exit %d, %s", exit, errOut.String())
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line)[:2], " "))
	}
	if got, want := strings.Join(rows, ", "), "NAME STATE, a running, b running, c stopped, b stopped, d running, vm/c is"; got != want {
		t.Errorf("printed %s\nwant    %s", got, want)
	}
}

func TestWhatCannotBeWatched(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for want, line := range map[string][]string{
		"--watch prints tables and names": {"--watch", "-o", "json"}, "--interval 1ms: want at least 100ms": {"-w", "--interval", "1ms"},
		"--interval is for --watch": {"--interval", "3s"},
	} {
		if said := w.Run(append([]string{"vm", "list"}, line...)...); said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, want) {
			t.Errorf("%v: exit %d, %s", line, said.Exit, said.ErrOut)
		}
	}
}
