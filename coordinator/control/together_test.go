package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/consensus"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// grouping is a log that counts what comes together.
type grouping struct {
	*log
	groups []int // how many commands came at once
}

func (g *grouping) ProposeTogether(ctx context.Context, commands []state.Command) []consensus.Answer {
	g.groups = append(g.groups, len(commands))
	return g.log.ProposeTogether(ctx, commands)
}

// silent agents say nothing: what is decided stays in flight.
func silent(operation.Order) *operation.Answer { return nil }

// crowd makes a world in which starts can be asked for together.
func crowd(t *testing.T, script func(operation.Order) *operation.Answer) (*world, *grouping) {
	w := newWorld(t, script)
	together := &grouping{log: w.log}
	w.Proposer = together
	return w, together
}

// answered is what a start came to.
type answered struct {
	started lifecycle.Started
	err     error
}

// ask asks for starts at the same time, in this order, while the turnstile is shut; it opens when all wait.
func (w *world) ask(requests ...lifecycle.StartVM) []answered {
	outcomes, done := make([]answered, len(requests)), make(chan struct{})
	w.Placing.Lock()
	for i, request := range requests {
		go func() {
			outcomes[i].started, outcomes[i].err = w.StartVM(w.Context(), request)
			done <- struct{}{}
		}()
		synctest.Wait() // it waits now, behind the ones before it
	}
	w.Placing.Unlock()
	for range requests {
		<-done
	}
	return outcomes
}

func wanted(name string, memory units.Bytes) lifecycle.StartVM {
	return lifecycle.StartVM{
		Name: name, RequestID: "start " + name, Caller: "operator/test",
		VM: &model.VM{Spec: model.VMSpec{Memory: memory, VCPUs: 1, Kernel: "/vmlinuz"}},
	}
}

// What is decided together is what would have been decided one by one: same seeds, same figures, same winners, same refusals.
func TestStartsThatAreDecidedTogetherAreDecidedAsOneByOne(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		var requests []lifecycle.StartVM
		for i := range 1 + random.IntN(40) {
			request := wanted(fmt.Sprintf("vm%d", i), units.Bytes(1+random.IntN(3))*units.GiB/2)
			switch random.IntN(5) {
			case 0:
				request.Node = fmt.Sprintf("n%d", 1+random.IntN(3))
			case 1:
				request.VM.Labels = []string{"apart"}
			case 2:
				request.VM.Keys = []model.Key{{Class: model.CustomerKey, Name: "Group", Value: 1, Weight: 50}}
			}
			requests = append(requests, request)
		}
		grouped := random.IntN(2) == 0
		decide := func(do func(w *world) []answered) (decisions []string) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := crowd(t, silent)
				defer w.lose()
				w.Random = apart(w.Random)
				w.facts.change("n2", func(f *model.NodeFacts) { f.Memory = 4 * units.GiB })
				if grouped {
					one := group("apart", rules("vms negative"), nil)
					one.Lists = map[string][]string{model.ListVMLabels: {"apart"}}
					w.put(one)
				}
				for _, one := range do(w) {
					decisions = append(decisions, told(t, one))
				}
			})
			return decisions
		}
		single := decide(func(w *world) (all []answered) {
			for _, request := range requests {
				started, err := w.StartVM(w.Context(), request)
				all = append(all, answered{started, err})
			}
			return all
		})
		together := decide(func(w *world) []answered { return w.ask(requests...) })
		for i := range single {
			if single[i] != together[i] {
				t.Fatalf("seed %d, start %d of %d:\none by one %s\ntogether   %s", seed, i+1, len(requests), single[i], together[i])
			}
			compared++
			if strings.Contains(single[i], string(lead.NoNodeFits)) {
				break // it was looked at twice, so that those after it got other seeds
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d decisions were compared", compared)
	}
}

// apart gives runners numbers of their own: when they draw is not what is compared.
func apart(random func() uint64) func() uint64 {
	var runners atomic.Uint64
	return func() uint64 {
		var callers [32]uintptr
		frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
		for frame, more := frames.Next(); more; frame, more = frames.Next() {
			if strings.HasSuffix(frame.Function, "(*runner).run") {
				return runners.Add(1)
			}
		}
		return random()
	}
}

// told is a start's answer without what only says which one it was and when.
func told(t *testing.T, one answered) string {
	decision, code := one.started.Decision, lead.Code("")
	var refused *lead.Error
	if errors.As(one.err, &refused) && refused.Decision != nil {
		decision, code = *refused.Decision, refused.Code
		decision.Seed = 0 // it was looked at twice
	}
	decision.ID, decision.Operation, decision.Request.VM = "", "", ""
	text, err := json.Marshal(decision)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s on %q by %s (%v %s)", one.started.VM.Name, one.started.Operation.TargetName, text, one.err, code)
}

func TestStartsThatWaitAreCommittedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log := crowd(t, obedient)
		defer w.lose()
		var requests []lifecycle.StartVM
		for i := range 12 {
			requests = append(requests, wanted(fmt.Sprintf("vm%d", i), units.GiB))
		}
		before := w.Store.Snapshot().Index()
		on := map[string]int{}
		for i, one := range w.ask(requests...) {
			if one.err != nil || one.started.VM.Name != requests[i].Name {
				t.Fatalf("start %d: %+v", i+1, one)
			}
			on[one.started.Operation.Target]++
		}
		if fmt.Sprint(log.groups) != "[12]" {
			t.Errorf("they were committed as %v", log.groups)
		}
		if on["n1"] != 4 || on["n2"] != 4 || on["n3"] != 4 {
			t.Errorf("they went to %v: not each on what the ones before it take", on)
		}
		synctest.Wait()
		for i := range requests {
			if vm := w.vm(requests[i].Name); vm.Holder == "" || vm.Operation != "" {
				t.Errorf("%s does not run: %+v", requests[i].Name, vm)
			}
		}
		var kinds []string
		for _, event := range w.Store.Snapshot().EventsAfter(before) {
			kinds = append(kinds, event.Kind)
		}
		if history := strings.Join(kinds, " "); strings.Count(history, "vm.start ") != 12 || strings.Count(history, "vm.started") != 12 {
			t.Errorf("the history is %s", history)
		}
	})
}

// The same request is answered as the first time, also when both wait; another request for the same VM is refused for what
// has been committed, and a request that cannot be met spoils nothing for its neighbours.
func TestEachOfThoseThatWaitHasItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log := crowd(t, silent)
		defer w.lose()
		again, twin := wanted("web1", units.GiB), wanted("web1", units.GiB)
		twin.RequestID = "another"
		got := w.ask(wanted("web1", units.GiB), again, wanted("huge", 64*units.GiB), twin, wanted("web2", units.GiB))
		if got[0].err != nil || got[1].err != nil || got[0].started.Operation.ID != got[1].started.Operation.ID ||
			got[1].started.Operation.Revision != got[0].started.Operation.Revision {
			t.Errorf("the same request twice: %+v and %+v", got[0], got[1])
		}
		var refused *lead.Error
		if !errors.As(got[2].err, &refused) || refused.Code != lead.NoNodeFits || refused.Decision == nil {
			t.Errorf("what fits nowhere: %+v", got[2])
		} else if _, kept := w.Store.Snapshot().Decision(refused.Decision.ID); !kept {
			t.Error("the refusal was not kept")
		}
		if !errors.As(got[3].err, &refused) || refused.Code != lead.Busy {
			t.Errorf("another request for the same VM: %v", got[3].err)
		}
		if got[4].err != nil || len(log.groups) != 0 { // the huge one was in between
			t.Errorf("the last one: %v, in groups %v", got[4].err, log.groups)
		}
		if _, err := w.StartVM(t.Context(), wanted("later", units.GiB)); err != nil || len(log.groups) != 0 {
			t.Errorf("somebody was still waiting: %v, in groups %v", err, log.groups)
		}
	})
}

// Two that name one file are not decided together, and the second one is told who has it.
func TestOfTwoThatNameOneDiskOneIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowd(t, silent)
		defer w.lose()
		named := func(vm, path string) lifecycle.StartVM {
			start := wanted(vm, units.GiB)
			start.VM.Spec.Disks = []model.Disk{{Path: path, Format: "qcow2", Bus: "virtio"}}
			return start
		}
		got := w.ask(named("web1", "/srv/db.qcow2"), named("web2", "/srv/x/../db.qcow2"), named("web3", "/srv/other.qcow2"))
		if got[0].err != nil || got[2].err != nil {
			t.Fatalf("those with a disk of their own: %v, %v", got[0].err, got[2].err)
		}
		got = append(got, w.ask(named("web4", "/srv/db.qcow2"))...)
		for _, i := range []int{1, 3} {
			var refused *lead.Error
			if !errors.As(got[i].err, &refused) || refused.Code != lead.Conflict ||
				!strings.Contains(refused.Message, `VM "web1", which starts on `) || !strings.Contains(refused.NextStep, "berth vm stop web1") {
				t.Errorf("%d: beside a start with its disk: %v", i, got[i].err)
			}
		}
	})
}

// What moves on between decision and commit makes one start decide again, and not the others.
func TestAStaleStartIsDecidedAgainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowd(t, silent)
		defer w.lose()
		moved := false
		w.log.before = func(command state.Command) {
			if command.Kind != "start vm" || command.VMs[0].Name != "web2" || moved {
				return
			}
			moved = true
			node, _ := w.Store.Snapshot().Node(command.Operations[0].Target)
			node.Maintenance = true
			w.store(state.Command{Nodes: []model.Node{node}}, state.Expectation{Table: state.Nodes, ID: node.ID, Revision: node.Revision})
		}
		var requests []lifecycle.StartVM
		for i := range 6 {
			requests = append(requests, wanted(fmt.Sprintf("web%d", i), units.GiB))
		}
		for i, one := range w.ask(requests...) {
			node, _ := w.Store.Snapshot().Node(one.started.Operation.Target)
			switch {
			case one.err != nil:
				t.Errorf("start %d: %v", i, one.err)
			case i >= 2 && node.Maintenance:
				t.Errorf("start %d went to a node that was taken out before it was committed", i)
			}
		}
	})
}

// Whoever has gone before it was decided is not decided; whoever goes later does not know, and its VM starts all the same.
func TestWhoeverGoesIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log := crowd(t, obedient)
		defer w.lose()
		before, goBefore := context.WithCancel(t.Context())
		during, goDuring := context.WithCancel(t.Context())
		log.before = func(command state.Command) {
			if command.Kind == "start vm" {
				goDuring()
				time.Sleep(time.Second)
			}
		}
		errs := make(chan error, 2)
		w.Placing.Lock()
		go func() { _, err := w.StartVM(before, wanted("before", units.GiB)); errs <- err }()
		synctest.Wait()
		goBefore()
		if err := <-errs; !errors.Is(err, context.Canceled) || errors.Is(err, consensus.ErrUnknown) {
			t.Errorf("gone before its turn: %v", err)
		}
		go func() { _, _ = w.StartVM(t.Context(), wanted("other", units.GiB)) }()
		synctest.Wait()
		go func() { _, err := w.StartVM(during, wanted("during", units.GiB)); errs <- err }()
		synctest.Wait()
		w.Placing.Unlock()
		if err := <-errs; err != nil && (!errors.Is(err, context.Canceled) || !errors.Is(err, consensus.ErrUnknown)) {
			t.Errorf("gone in its turn: %v", err)
		}
		time.Sleep(5 * time.Second)
		if _, there := w.Store.Snapshot().VMByName("before"); there {
			t.Error("a VM was started for nobody")
		}
		for _, name := range []string{"other", "during"} {
			if vm := w.vm(name); vm.Holder == "" {
				t.Errorf("%s does not run", name)
			}
		}
	})
}

func TestThoseThatWaitAreToldWhenTheLeadershipEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowd(t, silent)
		w.Placing.Lock()
		errs := make(chan error, 3)
		for i := range 3 {
			go func() { _, err := w.start(fmt.Sprint("web", i)); errs <- err }()
		}
		synctest.Wait()
		w.lose()
		w.Placing.Unlock()
		for range 3 {
			var refused *lead.Error
			if err := <-errs; !errors.As(err, &refused) || refused.Code != lead.NoLeader {
				t.Errorf("got %v", err)
			}
		}
	})
}

// The node that had a VM last may take half a second to say that it does not have it any more. Others are placed meanwhile.
func TestAStartIsDecidedWhileAnotherAsksItsLastNode(t *testing.T) {
	for name, state := range map[string]model.DomainState{"it has ended": model.DomainShutoff, "it runs": model.DomainRunning} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm := w.running("web1")
				w.record(vm.ID, func(vm *model.VM) { vm.Holder, vm.Desired = "", model.Stopped })
				w.agents.refusing = 400 * time.Millisecond
				first := make(chan error, 1)
				go func() {
					_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
					first <- err
				}()
				time.Sleep(100 * time.Millisecond)
				w.edit(vm.LastNode, vm, func(d *model.Domain) { d.State = state }) // what its next report says
				asked := time.Now()
				if _, err := w.start("web2"); err != nil || time.Since(asked) != 0 {
					t.Errorf("another start was decided after %s: %v", time.Since(asked), err)
				}
				select {
				case err := <-first:
					t.Errorf("the first start did not wait for its node: %v", err)
				default:
				}
				err := <-first
				if state == model.DomainShutoff && err != nil || state == model.DomainRunning && !isCode(err, lead.Conflict) {
					t.Errorf("the first start: %v", err)
				}
				refusals := w.agents.performed(func(task lead.Task) bool { return task.Refuse != nil })
				if len(refusals) != 1 || refusals[0].node != vm.LastNode || refusals[0].task.Refuse.Epoch != vm.Epoch {
					t.Errorf("asked to refuse: %+v", refusals)
				}
			})
		})
	}
}
