package simagent

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// twoNodes are a fleet without coordinators.
func twoNodes() (source, target *jobs) {
	fleet := &Fleet{}
	add := func(name string) *jobs {
		n := newNode(Identity{NodeID: name, Name: name, HostUUID: uuidOf(name)}, Size{Memory: 8 * units.GiB, CPUs: 4})
		orders := newJobs(n, fleet)
		fleet.add(n, orders)
		return orders
	}
	return add("source"), add("target")
}

const vm = "6c0e8bd2-6f4f-4c55-8b3e-0f6a5f0a1c01"

func start(operation string, term, epoch uint64) *berthv1.Command {
	return &berthv1.Command{
		OperationId: operation, Step: 1, Term: term, Epoch: epoch, VmId: vm, VmName: "web",
		Action: &berthv1.Command_Start{Start: &berthv1.StartCommand{Spec: &berthv1.VMSpec{MemoryBytes: 1 << 30, Vcpus: 2}}},
	}
}

func (j *jobs) do(command *berthv1.Command) *berthv1.CommandResult {
	j.Do(context.Background(), command)
	return <-j.results
}

func TestAStartIsDoneAtOnceAndCarriesItsEpoch(t *testing.T) {
	node, _ := twoNodes()
	result := node.do(start("op1", 3, 7))
	if result.GetOutcome() != done {
		t.Fatalf("outcome %v: %s", result.GetOutcome(), result.GetError())
	}
	want := []hypervisor.Domain{{
		UUID: vm, Name: "web", State: hypervisor.Running, Reason: "booted", MemoryBytes: 1 << 30, VCPUs: 2, Managed: true,
		Epoch: 7, OperationID: "op1",
	}}
	if diff := cmp.Diff(want, node.node.list()); diff != "" {
		t.Error(diff)
	}
	if got := result.GetDomain(); got.GetState() != berthv1.DomainState_DOMAIN_STATE_RUNNING || got.GetEpoch() != 7 {
		t.Errorf("the answer shows %v", got)
	}
}

func TestARepeatedOrderGetsItsFirstAnswer(t *testing.T) {
	node, _ := twoNodes()
	node.do(start("op1", 3, 7))
	again := node.do(start("op1", 4, 7))
	if again.GetOutcome() != done || !again.GetRepeated() {
		t.Errorf("outcome %v, repeated %v", again.GetOutcome(), again.GetRepeated())
	}
}

// A coordinator that starts a VM twice must not find a node that helps it hide that.
func TestASecondStartAndAnOldOneAreNotDone(t *testing.T) {
	node, _ := twoNodes()
	node.do(start("op1", 3, 7))
	for _, c := range []struct {
		command *berthv1.Command
		code    string
	}{{start("op2", 3, 8), "exists"}, {start("op3", 3, 6), "stale_epoch"}, {start("op4", 2, 9), "stale_term"}} {
		if result := node.do(c.command); result.GetErrorCode() != c.code {
			t.Errorf("%s: code %q, want %q", c.command.GetOperationId(), result.GetErrorCode(), c.code)
		}
	}
}

func TestAMigrationLeavesThePausedDomainOnTheTarget(t *testing.T) {
	source, target := twoNodes()
	source.do(start("op1", 3, 7))
	migrate := &berthv1.Command{OperationId: "op2", Step: 1, Term: 3, Epoch: 7, VmId: vm, Action: &berthv1.Command_Migrate{
		Migrate: &berthv1.MigrateCommand{TargetUri: migrationURI("target"), TargetEpoch: 8},
	}}
	if result := source.do(migrate); result.GetDomain().GetState() != berthv1.DomainState_DOMAIN_STATE_ABSENT {
		t.Errorf("the source shows %v", result.GetDomain())
	}
	if moved, _ := target.node.find(vm); moved.State != hypervisor.Paused || moved.Epoch != 8 {
		t.Errorf("the target shows %+v", moved)
	}
	resume := &berthv1.Command{
		OperationId: "op2", Step: 2, Term: 3, Epoch: 8, VmId: vm, Action: &berthv1.Command_Resume{Resume: &berthv1.ResumeCommand{}},
	}
	if result := target.do(resume); result.GetDomain().GetState() != berthv1.DomainState_DOMAIN_STATE_RUNNING {
		t.Errorf("after the resume the target shows %v", result.GetDomain())
	}
}

// A held migration is cancelled where it is, or done when the fleet lets it go.
func TestAHeldMigrationWaits(t *testing.T) {
	source, target := twoNodes()
	source.do(start("op1", 3, 7))
	source.fleet.Hold(true)
	migrate := func(operation string) *berthv1.Command {
		return &berthv1.Command{OperationId: operation, Step: 1, Term: 3, Epoch: 7, VmId: vm, Action: &berthv1.Command_Migrate{
			Migrate: &berthv1.MigrateCommand{TargetUri: migrationURI("target"), TargetEpoch: 8},
		}}
	}
	source.Do(t.Context(), migrate("op2"))
	if running := source.Running(); len(running) != 1 || running[0] != "op2" || len(source.results) != 0 {
		t.Fatalf("%v run, and %d are answered", running, len(source.results))
	}
	source.Cancel("op2", 1)
	cancelled := <-source.results
	if _, there := source.node.find(vm); !there || cancelled.GetOutcome() != berthv1.CommandOutcome_COMMAND_OUTCOME_CANCELLED {
		t.Errorf("cancelled: %v, and the domain is there: %t", cancelled, there)
	}
	source.Do(t.Context(), migrate("op3"))
	source.fleet.Hold(false)
	if released := <-source.results; released.GetOutcome() != done || len(source.Running()) != 0 {
		t.Errorf("released: %v", released)
	}
	if _, there := target.node.find(vm); !there {
		t.Error("the target does not have the domain")
	}
}

func TestReportsAddUpTheDomains(t *testing.T) {
	node, _ := twoNodes()
	node.do(start("op1", 3, 7))
	sample := node.node.Sample(context.Background())
	if got := sample.GetMemoryAvailableBytes(); got != int64(7*units.GiB) {
		t.Errorf("available %d", got)
	}
	if sample.GetAllocatedVcpus() != 2 || sample.GetRunningDomains() != 1 || len(sample.GetDomains()) != 1 {
		t.Errorf("sample %v", sample)
	}
	if inventory := node.node.Inventory(context.Background()); len(inventory.GetDomains()) != 1 || inventory.GetDomainsUnknown() {
		t.Errorf("inventory %v", inventory)
	}
}

// What is stopped when the node has let it go is refused as an order of an older epoch, and the domain is gone.
func TestADomainThatWasLetGoIsGone(t *testing.T) {
	node, _ := twoNodes()
	node.do(start("op1", 3, 7))
	node.fleet.LetGo(true)
	stopped := node.do(&berthv1.Command{
		OperationId: "op2", Step: 1, Term: 3, Epoch: 7, VmId: vm, VmName: "web", Action: &berthv1.Command_Stop{Stop: &berthv1.StopCommand{}},
	})
	if stopped.GetCode() != staleEpoch || stopped.GetDomain().GetState() != berthv1.DomainState_DOMAIN_STATE_ABSENT {
		t.Errorf("the answer is %v", stopped)
	}
}
