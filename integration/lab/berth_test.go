package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// The whole of it: three coordinators and three nodes that the command line can use, and that come back from the
// faults that later tests are built on.
func TestALabWithBerth(t *testing.T) {
	l := raise(t, Options{Hosts: 3, Coordinators: 3})
	ctx := t.Context()
	watch := l.Observe()
	defer watch.Stop()

	result, err := l.CLI(ctx, "vm", "show", "nobody")
	if err != nil || result.Code != 4 || !strings.Contains(result.Stderr, "nobody") {
		t.Errorf("an unknown VM: %+v, %v, want exit code 4", result, err)
	}
	start := starting("first", "128M")
	if _, err := l.Berth(ctx, start...); err != nil {
		t.Fatal(err)
	}
	source, err := l.HostOf("first")
	if err != nil {
		t.Fatal(err)
	}
	before, err := l.ReadTick(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	target := l.Hosts[0]
	if target.Name == source.Name {
		target = l.Hosts[1]
	}
	if _, err := l.Berth(ctx, "vm", "migrate", "first", "--to", target.Name); err != nil {
		t.Fatal(err)
	}
	after, err := target.ReadTick(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := after.After(before); err != nil {
		t.Error(err)
	}

	// An agent and a leader that die are replaced, and the lab says who leads.
	leader, err := l.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := target.KillAgent(); err != nil {
		t.Fatal(err)
	}
	err = await(ctx, "the next leader", 20*time.Second, func() (bool, error) {
		next, err := l.Leader(ctx)
		return err == nil && next != leader, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := target.StartAgent(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	// A node is up before its agent has said what became of every VM.
	err = await(ctx, "first to run on "+target.Name, 20*time.Second, func() (bool, error) {
		var answer berthv1.GetVMResponse
		if err := l.Ask(ctx, &answer, "vm", "show", "first"); err != nil {
			return false, err
		}
		if vm := answer.GetVm(); vm.GetNode() != target.Name || vm.GetState() != berthv1.VMState_VM_STATE_RUNNING {
			return false, fmt.Errorf("it is %v on %s", vm.GetState(), vm.GetNode())
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
	if faults := watch.Overlaps(); len(faults) > 0 || len(watch.Errors()) > 0 {
		t.Errorf("the observer saw %v %v", faults, watch.Errors())
	}
}
