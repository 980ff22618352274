package moving

import (
	"slices"
	"testing"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// site is a cluster whose records a test writes.
type site struct {
	estate.Facts
	state      estate.State
	operations []operation.Operation // newest first
	groups     []model.Group
	plan       model.Plan
	driver     *Driver
	at         time.Time
}

// newSite has three nodes, and VMs on n1 which is drained.
func newSite(vms ...string) *site {
	s := &site{driver: NewDriver(), at: time.Unix(1000, 0)}
	s.plan = model.Plan{ID: "p", Kind: model.PlanDrain, State: model.PlanRunning, Cluster: model.DefaultCluster, Node: "n1", Parallel: 2}
	for _, id := range []string{"n1", "n2", "n3"} {
		s.state.Nodes = append(s.state.Nodes, model.Node{ID: id, Name: id, Cluster: model.DefaultCluster, Maintenance: id == "n1"})
	}
	for _, vm := range vms {
		s.state.VMs = append(s.state.VMs, model.VM{ID: vm, Name: vm, Holder: "n1"})
		s.plan.Moves = append(s.plan.Moves, model.Move{VM: vm, VMName: vm, Source: "n1", SourceName: "n1", Target: "n2", TargetName: "n2"})
	}
	s.Facts = estate.Indexed(&s.state)
	return s
}

func (s *site) vm(id string) *model.VM {
	return &s.state.VMs[slices.IndexFunc(s.state.VMs, func(vm model.VM) bool { return vm.ID == id })]
}

func (s *site) VM(id string) (model.VM, bool) { return s.state.VM(id) }
func (s *site) VMsOn(string) []model.VM       { return nil }
func (s *site) Operation(id string) (op operation.Operation, known bool) {
	at := slices.IndexFunc(s.operations, func(op operation.Operation) bool { return op.ID == id })
	if at < 0 {
		return op, false
	}
	return s.operations[at], true
}

func (s *site) LiveOperations() []operation.Operation {
	return slices.DeleteFunc(slices.Clone(s.operations), func(op operation.Operation) bool { return !op.Live() })
}

func (s *site) OperationsOfPlan(string) []operation.Operation { return s.operations }

// round plays one round, with this answer to each attempt, and returns the last step.
func (s *site) round(answer func(*Attempt) Answer) Step {
	step := s.driver.Look(Scene{
		Records: s, Plan: s.plan, At: s.at,
		Fleet: func() *balance.Fleet { return &balance.Fleet{Groups: s.groups} },
		Size:  func(vm *model.VM) (units.Bytes, int) { return vm.Spec.Memory, vm.Spec.VCPUs },
	})
	for step.Begin != nil {
		step = s.driver.Tell(answer(step.Begin))
	}
	return step
}

// begin notes that a VM is on its way to a node.
func (s *site) begin(vm, target string) Answer {
	op := operation.Operation{
		ID: vm + target, Kind: operation.Migrate, Phase: operation.Copying, VM: vm, VMName: vm, Source: "n1", Target: target,
		TargetName: target, CreatedAt: s.at,
	}
	s.operations = slices.Insert(s.operations, 0, op)
	return Answer{Began: &op}
}

// arrive ends the move of a VM.
func (s *site) arrive(vm string, result operation.Result) {
	at := slices.IndexFunc(s.operations, func(op operation.Operation) bool { return op.VM == vm })
	op := &s.operations[at]
	op.Phase, op.Result, op.EndedAt = operation.Ended, result, s.at
	if result == operation.Done {
		s.vm(vm).Holder = op.Target
	}
}

func noNode(*Attempt) Answer {
	return Answer{Refusal: &Refusal{Cause: NoNode, Why: "no node fits", Decision: &placement.Decision{Outcome: placement.Refused}}}
}

// A refusal counts three times, 5 and 15 seconds apart, and then the VM stays.
func TestAVMThatNoNodeTakesStaysAfterThreeRefusals(t *testing.T) {
	s, began := newSite("web"), time.Unix(1000, 0)
	var given int
	for rounds := 0; ; rounds++ {
		step := s.round(noNode)
		given += len(step.GivenUp)
		if step.Write != nil {
			plan := step.Write.Plan
			if s.at.Sub(began) != firstBackOff+secondBackOff || rounds != 2 || given != 1 {
				t.Errorf("after %s and %d rounds %d are given up", s.at.Sub(began), rounds, given)
			}
			if plan.State != model.PlanDone || plan.Moves[0].Result != model.MoveStays || plan.Message != "0 moved; 1 stays: web (no node fits)" {
				t.Errorf("%+v", plan)
			}
			return
		}
		if rounds == 5 {
			t.Fatal("it is never given up")
		}
		s.at = s.at.Add(step.Wait)
	}
}

// While another VM of the plan moves, refusals do not count: there may be room when it has gone.
func TestRefusalsDoNotCountWhileSomethingMoves(t *testing.T) {
	s := newSite("first", "second")
	answer := func(a *Attempt) Answer {
		if a.VM == "first" {
			return s.begin("first", "n2")
		}
		return noNode(a)
	}
	for range 10 {
		if step := s.round(answer); len(step.GivenUp) > 0 || step.Write != nil {
			t.Fatalf("it was given up while the other one moved: %+v", step)
		}
		s.at = s.at.Add(lookAgain)
	}
}

// A move that fails is tried on another node at first, and three times at most.
func TestAFailedMoveIsTriedThreeTimes(t *testing.T) {
	s := newSite("web")
	var excluded [][]string
	for range 20 {
		step := s.round(func(a *Attempt) Answer {
			excluded = append(excluded, a.Excluded)
			return s.begin(a.VM, []string{"n2", "n3", "n2"}[len(excluded)-1])
		})
		if step.Write != nil {
			if step.Write.Plan.State != model.PlanFailed || step.Write.Plan.Moves[0].Attempts != 3 {
				t.Errorf("%+v", step.Write.Plan)
			}
			break
		}
		if len(s.LiveOperations()) > 0 {
			s.arrive("web", operation.Failed)
		} else {
			s.at = s.at.Add(step.Wait)
		}
	}
	if len(excluded) != 3 || len(excluded[0]) != 0 || !slices.Equal(excluded[1], []string{"n2"}) ||
		!slices.Equal(excluded[2], []string{"n2", "n3"}) {
		t.Errorf("left out were %v", excluded)
	}
}

// What libvirt refuses because of a disk it would refuse on every node.
func TestAMoveThatIsCalledUnsafeIsTriedOnce(t *testing.T) {
	s := newSite("web")
	begun := 0
	for range 20 {
		step := s.round(func(a *Attempt) Answer {
			begun++
			return s.begin(a.VM, "n2")
		})
		if step.Write != nil {
			break
		}
		if len(s.LiveOperations()) > 0 {
			s.arrive("web", operation.Failed)
			s.operations[0].Code = operation.Unsafe
		} else {
			s.at = s.at.Add(step.Wait)
		}
	}
	if begun != 1 {
		t.Errorf("it was tried %d times", begun)
	}
}

// Two units each have a VM that went and one that cannot follow, because the room is kept free for the other unit: neither waits
// for the other for ever.
func TestVMsThatYieldToEachOtherAreGivenUpInTheEnd(t *testing.T) {
	s := newSite("a1", "a2", "b1", "b2")
	for _, unit := range [][]string{{"a1", "a2"}, {"b1", "b2"}} {
		s.groups = append(s.groups, model.Group{
			ID: unit[0], Name: unit[0], VMs: unit, VMsRule: model.Rule{Polarity: model.Positive, Enforcing: true},
		})
	}
	goes := map[string]string{"a1": "n2", "b1": "n3"}
	for range 100 {
		step := s.round(func(a *Attempt) Answer {
			if target := goes[a.VM]; target != "" {
				return s.begin(a.VM, target)
			}
			return noNode(a)
		})
		if step.Write != nil {
			if plan := step.Write.Plan; plan.State != model.PlanDone || plan.Message != "2 moved; 2 stay: a2 (no node fits), b2 (no node fits)" {
				t.Errorf("%+v", plan)
			}
			return
		}
		for _, op := range s.LiveOperations() {
			s.arrive(op.VM, operation.Done)
		}
		s.at = s.at.Add(step.Wait)
	}
	t.Error("the plan never ends")
}

// A VM whose node does not answer is waited for, for five minutes.
func TestASilentNodeIsWaitedFor(t *testing.T) {
	s := newSite("web")
	for waited := time.Duration(0); ; waited += lookAgain {
		step := s.round(func(*Attempt) Answer { return Answer{Refusal: &Refusal{Cause: Silent, Why: "n1 is suspect"}} })
		if step.Write != nil {
			if waited != silencePatience {
				t.Errorf("it was given up after %s", waited)
			}
			return
		}
		if waited > silencePatience {
			t.Fatal("it is waited for without an end")
		}
		s.at = s.at.Add(step.Wait)
	}
}
