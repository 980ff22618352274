package control

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// added makes a stopped VM of so many GiB and returns its ID.
func (w *world) added(name string, gib int) string {
	w.Helper()
	added, err := w.AddVM(w.Context(), lifecycle.AddVM{
		Name: name, RequestID: "add " + name, Caller: "operator/test",
		VM: &model.VM{Spec: model.VMSpec{
			Memory: units.Bytes(gib) * units.GiB, VCPUs: 1, Kernel: "/vmlinuz",
		}},
	})
	if err != nil {
		w.Fatal(err)
	}
	return added.VM.ID
}

// group is the record of an affinity group of the default cluster.
func group(name string, settings map[string]string, vms []string, nodes ...string) model.Resource {
	slices.Sort(vms)
	return model.Resource{
		ID: "group-" + name, Kind: model.KindGroup, Name: name, Settings: settings,
		Members: map[string][]string{model.MembersVMs: vms, model.MembersNodes: nodes},
	}
}

// Rules of a group, as its settings.
func rules(rules ...string) map[string]string {
	settings := map[string]string{}
	for _, rule := range rules {
		which, polarity, _ := strings.Cut(strings.TrimSuffix(rule, "!"), " ")
		settings[which+"_rule"] = polarity
		if strings.HasSuffix(rule, "!") {
			settings[which+"_enforcing"] = "true"
		}
	}
	return settings
}

func TestSeveralVMsAreStartedOneRefusedOrNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		request := lifecycle.StartVMs{
			VMs: []string{
				w.added("web2", 1), w.added("huge", 64), w.added("web1", 1), w.running("busy").ID, "nothing",
			}, RequestID: "all", Caller: "operator/test",
		}
		dry := request
		dry.DryRun = true
		before := w.Store.Snapshot().Index()
		if tried, err := w.StartVMs(t.Context(), dry); err != nil || tried[0].Decision.Winner == "" || tried[0].Operation.ID != "" {
			t.Errorf("tried out: %+v, %v", tried, err)
		}
		if after := w.Store.Snapshot().Index(); after != before {
			t.Errorf("a dry run wrote %d entries", after-before)
		}
		started, err := w.StartVMs(t.Context(), request)
		if err != nil || len(started) != 5 {
			t.Fatalf("%d started, %v", len(started), err)
		}
		for i, want := range []struct {
			name string
			code lead.Code
		}{{"web2", ""}, {"huge", lead.NoNodeFits}, {"web1", ""}, {"busy", lead.Exists}, {"nothing", lead.NotFound}} {
			one := started[i]
			if one.VMName != want.name || want.code == "" && (one.Err != nil || one.Operation.ID == "") || want.code != "" &&
				!isCode(one.Err, want.code) {
				t.Errorf("%s: %s, %v", one.VMName, one.Operation.ID, one.Err)
			}
		}
		synctest.Wait()
		again, err := w.StartVMs(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 2} {
			if again[i].Operation.ID != started[i].Operation.ID || w.vm(again[i].VMName).Holder == "" {
				t.Errorf("%s was started again: %+v", again[i].VMName, again[i])
			}
		}
		if orders := w.agents.ordered(operation.ActStart); len(orders) != 3 {
			t.Errorf("%d start orders", len(orders))
		}
	})
}

// A caller that goes away while its command is under way does not see the operation begin: it is taken up all the same.
func TestWhatNobodySawBeginIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		web1 := w.added("web1", 1)
		w.log.unknown = 1
		gone, cancel := context.WithCancel(t.Context())
		w.log.before = func(command state.Command) {
			if command.Kind == "start vm" {
				cancel()
			}
		}
		if _, err := w.StartVMs(gone, lifecycle.StartVMs{VMs: []string{web1}}); err == nil {
			t.Fatal("the caller got an answer")
		}
		time.Sleep(takeUpEvery)
		synctest.Wait()
		if vm := w.vm("web1"); vm.Holder == "" || vm.Operation != "" {
			t.Errorf("vm %+v", vm)
		}
	})
}

// The node that the largest gets has room for all that hard rules tie to it.
func TestVMsThatBelongTogetherStartOnOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.on("n1", "other1", 5) // leaves 1 GiB less than the unit takes
		w.on("n3", "other3", 5)
		small, large := w.added("small", 1), w.added("large", 2)
		big1, big2 := w.added("big1", 4), w.added("big2", 4)
		w.put(group("app", rules("vms positive!"), []string{small, large}))
		w.put(group("too-big", rules("vms positive!"), []string{big1, big2}))
		for _, dry := range []bool{true, false} {
			started, err := w.StartVMs(
				t.Context(), lifecycle.StartVMs{VMs: []string{small, big1, large, big2}, DryRun: dry, RequestID: "all", Caller: "operator/test"},
			)
			if err != nil {
				t.Fatal(err)
			}
			for i, other := range map[int]string{0: "large", 2: "small"} {
				if one := started[i]; one.Err != nil || one.Decision.WinnerName != "node2" || !slices.Equal(one.Unit, []string{other}) {
					t.Errorf("dry %t: %s goes to %q with %v: %v", dry, one.VMName, one.Decision.WinnerName, one.Unit, one.Err)
				}
			}
			for _, i := range []int{1, 3} {
				if one := started[i]; !isCode(one.Err, lead.NoNodeFits) {
					t.Errorf("dry %t: %s, which fits nowhere with its other half: %v", dry, one.VMName, one.Err)
				}
			}
		}
		synctest.Wait()
		for _, name := range []string{"small", "large"} {
			if w.vm(name).Holder != "n2" {
				t.Errorf("%s is on %q", name, w.vm(name).Holder)
			}
		}
	})
}
