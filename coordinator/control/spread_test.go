package control

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// spacious is a world of two pods with two clusters of two nodes each, in one zone, and a customer whose VDC names the zone.
func spacious(t *testing.T, script func(operation.Order) *operation.Answer) *world {
	w := newWorld(t, script)
	w.put(
		model.Resource{ID: "z", Kind: model.KindZone, Name: "z"},
		model.Resource{ID: "east", Kind: model.KindPod, Name: "east", Links: map[string]string{"zone": "z"}},
		model.Resource{ID: "west", Kind: model.KindPod, Name: "west", Links: map[string]string{"zone": "z"}},
		model.Resource{
			ID: "o", Kind: model.KindOffer, Name: "apart", Settings: map[string]string{"for": "vm", model.SettingPlanner: "user-dispersing"},
		},
		model.Resource{ID: "c-acme", Kind: model.KindCustomer, Name: "acme"},
		model.Resource{ID: "v", Kind: model.KindVDC, Name: "acme", Links: map[string]string{"customer": "c-acme", "zone": "z"}},
	)
	for i := 1; i <= 4; i++ {
		pod := "east"
		if i > 2 {
			pod = "west"
		}
		name := fmt.Sprintf("c%d", i)
		w.put(model.Resource{ID: name, Kind: model.KindCluster, Name: name, Links: map[string]string{"pod": pod}})
	}
	template := w.facts.Facts("n1", time.Now())
	for i := 1; i <= 8; i++ {
		id, in := fmt.Sprintf("n%d", i), fmt.Sprintf("c%d", (i+1)/2)
		available := 8 * units.GiB
		facts := template
		facts.Available = &available
		w.facts.change(id, func(f *model.NodeFacts) { *f = facts })
		if i <= 3 {
			w.node(id, func(node *model.Node) { node.Cluster = in })
			continue
		}
		w.store(
			state.Command{Nodes: []model.Node{{ID: id, Name: fmt.Sprintf("node%d", i), Cluster: in}}},
			state.Expectation{Table: state.Nodes, ID: id},
		)
	}
	return w
}

func small(name string) lifecycle.StartVM {
	return lifecycle.StartVM{
		Name: name, RequestID: "start " + name,
		VM: &model.VM{
			Spec: model.VMSpec{Memory: 256 * units.MiB, VCPUs: 1, Kernel: "/vmlinuz"}, VDC: "v", Offer: "o",
		},
	}
}

// Nobody answers here: VMs that are on their way count.
func TestTwentyStartsAtOnceSpreadEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spacious(t, func(operation.Order) *operation.Answer { return nil })
		defer w.lose()
		var starts sync.WaitGroup
		for i := range 20 {
			starts.Go(func() {
				if _, err := w.StartVM(t.Context(), small(fmt.Sprintf("web%d", i))); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
		spread, err := w.Spread("acme")
		if err != nil {
			t.Fatal(err)
		}
		want := plans.Spread{
			VMs:   20,
			Zones: plans.SpreadLevel{Used: 1, Total: 1, Most: 20, Least: 20}, Pods: plans.SpreadLevel{Used: 2, Total: 2, Most: 10, Least: 10},
			Clusters: plans.SpreadLevel{Used: 4, Total: 4, Most: 5, Least: 5}, Nodes: plans.SpreadLevel{Used: 8, Total: 8, Most: 3, Least: 2},
		}
		if spread != want {
			t.Errorf("spread %+v\nwant   %+v", spread, want)
		}
	})
}

func TestAVMComesBackToItsLastNodeUnlessThatCannotTakeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spacious(t, obedient)
		defer w.lose()
		w.must(small("web1"))
		synctest.Wait()
		last := w.vm("web1").Holder
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: w.vm("web1").ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i := range 8 { // everywhere else is better
			if request := small(fmt.Sprintf("pad%d", i)); w.must(request).Operation.Target == "" {
				t.Fatal("not placed")
			}
		}
		synctest.Wait()
		again := w.must(lifecycle.StartVM{Name: "web1", DryRun: true})
		if again.Decision.Winner != last {
			t.Errorf("started on %s, ran on %s last", again.Decision.Winner, last)
		}
		w.node(last, func(node *model.Node) { node.Maintenance = true })
		if again := w.must(lifecycle.StartVM{Name: "web1"}); again.Operation.Target == last || again.Operation.Target == "" {
			t.Errorf("started on %q, which is in maintenance", again.Operation.Target)
		}
	})
}

func TestANodeThatIsNamedBindsToItsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spacious(t, obedient)
		defer w.lose()
		request := small("web1")
		request.Node = "n7"
		started := w.must(request)
		if started.Operation.Target != "n7" || started.Decision.Request.Cluster != "c4" || len(started.Decision.Tried) > 0 {
			t.Errorf("on %s of %s, tried %+v", started.Operation.Target, started.Decision.Request.Cluster, started.Decision.Tried)
		}
	})
}

func TestAStartFailsOverToAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spacious(t, func(order operation.Order) *operation.Answer {
			if order.Node == "n1" || order.Node == "n2" {
				return answers(operation.ActStart, operation.OutcomeFailed, model.DomainAbsent)(order)
			}
			return obedient(order)
		})
		defer w.lose()
		for _, name := range []string{"c2", "c3", "c4"} { // then c1 comes first
			request := small("pad-" + name)
			request.VM.Within = name
			w.must(request)
		}
		synctest.Wait()
		started := w.must(small("web1"))
		if started.Decision.Request.Cluster != "c1" {
			t.Fatalf("first in %s", started.Decision.Request.Cluster)
		}
		synctest.Wait()
		vm := w.vm("web1")
		op := w.operation(started.Operation.ID)
		if op.Result != operation.Done || vm.Holder == "n1" || vm.Holder == "n2" || op.Attempt != 3 {
			t.Errorf("on %q after %+v", vm.Holder, op)
		}
	})
}

// What a search has read must be as it was when its decision is committed.
func TestADecisionIsMadeAnewWhenWhatItComparedChanges(t *testing.T) {
	for _, id := range []string{"z", "east", "c4", "v"} {
		synctest.Test(t, func(t *testing.T) {
			w := spacious(t, obedient)
			defer w.lose()
			proposals := 0
			w.log.before = func(command state.Command) {
				if command.Kind != "start vm" {
					return
				}
				if proposals++; proposals == 1 {
					record, _ := w.Store.Snapshot().Resource(id)
					w.put(record)
				}
			}
			w.must(small("web1"))
			if proposals != 2 {
				t.Errorf("%s changed: %d proposals", id, proposals)
			}
		})
	}
}

func TestSpreadTellsOfNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := spacious(t, obedient)
		defer w.lose()
		_, err := w.Spread("nobody")
		refusedAs(t, "nobody", err, lead.NotFound, "no customer")
		if spread, err := w.Spread("c-acme"); err != nil || spread.VMs != 0 || spread.Nodes != (plans.SpreadLevel{Total: 8}) {
			t.Errorf("%+v, %v", spread, err)
		}
		w.node("n8", func(node *model.Node) { node.Maintenance = true })
		w.put(model.Resource{ID: "v2", Kind: model.KindVDC, Name: "other", Links: map[string]string{"customer": "c-acme", "cluster": "c1"}})
		if spread, _ := w.Spread("acme"); spread.Nodes.Total != 7 || spread.Clusters.Total != 4 {
			t.Errorf("%+v", spread)
		}
	})
}

type noStream struct{ io.ReadWriteCloser }

func TestAConsoleIsOfAVMThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		refusedAs(t, "none", w.Console(t.Context(), "nope", false, noStream{}), lead.NotFound, "no VM")
		if err := w.Console(t.Context(), vm.ID, true, noStream{}); err != nil {
			t.Fatal(err)
		}
		if one := w.agents.tasks[0]; one.node != vm.Holder || one.task.Console.VM != vm.ID || one.task.Console.Epoch != vm.Epoch ||
			!one.task.Console.Force {
			t.Errorf("%s does %+v", one.node, one.task.Console)
		}
		w.agents.task = func(string, lead.Task) error {
			return &lead.TaskError{Code: "busy", Message: "somebody else has the console"}
		}
		err := w.Console(t.Context(), vm.ID, false, noStream{})
		refusedAs(t, "taken", err, lead.Busy, "somebody else has the console")
		var refused *lead.Error
		if errors.As(err, &refused); !strings.Contains(refused.NextStep, "--force") {
			t.Errorf("next: %s", refused.NextStep)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		refusedAs(t, "stopped", w.Console(t.Context(), vm.ID, false, noStream{}), lead.Conflict, "does not run")
	})
}
