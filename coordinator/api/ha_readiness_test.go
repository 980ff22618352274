package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Whoever sets ha hears what it lacks, and the status goes on saying it.
func TestHighAvailabilityThatWouldNotWorkIsTold(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	for id, name := range map[string]string{"n1": "hv1", "n2": "hv2", "n3": "hv3", "n4": "hv4"} {
		m.addNode(id, name)
	}
	fenced := func(id string, device model.FenceDevice) {
		node, _ := m.store.Snapshot().Node(id)
		node.Fence = device
		m.propose(state.Command{
			Kind: "test", Expect: []state.Expectation{{Table: state.Nodes, ID: id, Revision: node.Revision}}, Nodes: []model.Node{node},
		})
	}
	fenced("n3", model.FenceDevice{Method: model.FenceCommand, Program: "fence_x"})
	fenced("n4", model.FenceDevice{Method: model.FenceManual})
	spec := model.VMSpec{Memory: units.GiB, VCPUs: 1}
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1, Spec: spec})
	for id, holder := range map[string]string{"v2": "n2", "v3": "n3", "v4": "n4"} {
		m.addVM(model.VM{ID: id, Name: "of-" + holder, Desired: model.Running, Holder: holder, Epoch: 1, HA: true, Spec: spec})
	}
	m.control.unprovable = map[string]string{"hv1": "nothing can", "hv2": "nothing can", "hv3": "no answer", "hv4": "only a word"}
	m.control.nowhere = map[string]string{"web": "no node has room"}

	set, err := client.ChangeVM(t.Context(), connect.NewRequest(&berthv1.ChangeVMRequest{Vm: "web", Change: &berthv1.VMChange{Ha: new(true)}}))
	if err != nil {
		t.Fatal(err)
	}
	const want = "if hv1 fell silent: nothing can; do that\nwithout hv1: no node has room"
	if got := strings.Join(set.Msg.GetHaGaps(), "\n"); got != want {
		t.Errorf("the change says\n%s", got)
	}
	show, err := client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
	if got := strings.Join(show.Msg.GetHaGaps(), "\n"); err != nil || got != want {
		t.Errorf("it is shown with %q, %v", got, err)
	}
	m.control.found = map[string]string{"v1": "no node has room", "v2": "its disk is on hv2 alone", "gone": "deleted since"}
	status, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(status.Msg.GetProblems(), "\n")
	for _, want := range []string{
		"VMs with ha (of-n2, web) would be started again nowhere if their nodes were lost; of-n2: its disk is on hv2 alone; " +
			"next step: 'berth vm show of-n2'",
		"node hv3 runs VMs with ha (of-n3), which would wait for somebody's word if it fell silent: no answer; do that",
		"VMs with ha (of-n2, web) would wait for somebody's word if their nodes fell silent: nothing can prove that hv1, hv2 is off; " +
			"'berth node set hv1 --fence METHOD' names a device that proves it",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems lack %q:\n%s", want, problems)
		}
	}
	if strings.Contains(problems, "of-n4") {
		t.Errorf("somebody's word is what they have chosen:\n%s", problems)
	}
	const never = "it is never started again by itself: 'berth vm set web --restart ha' changes that"
	for _, c := range []struct {
		cluster, vm string
		told        bool
	}{{"ha", "never", true}, {"ha", "cluster", false}, {"always", "ha", false}} {
		cluster, known := m.store.Snapshot().Resource(model.DefaultCluster)
		if !known {
			cluster = model.DefaultClusterRecord()
		}
		cluster.Settings = map[string]string{model.SettingRestart: c.cluster}
		m.propose(state.Command{
			Kind: "test", Expect: []state.Expectation{{Table: state.Resources, ID: cluster.ID, Revision: cluster.Revision}},
			Resources: []model.Resource{cluster},
		})
		set, err := client.ChangeVM(t.Context(), connect.NewRequest(&berthv1.ChangeVMRequest{
			Vm: "web", Change: &berthv1.VMChange{Restart: new(c.vm)},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if status, err = client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{})); err != nil {
			t.Fatal(err)
		}
		gaps, problems := strings.Join(set.Msg.GetHaGaps(), "\n"), strings.Join(status.Msg.GetProblems(), "\n")
		shown, err := client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web"}))
		if err != nil || strings.Contains(strings.Join(shown.Msg.GetHaGaps(), "\n"), never) != c.told {
			t.Errorf("restart %s in a cluster that says %q: it is shown with %v, %v", c.vm, c.cluster, shown, err)
		}
		if c.told && !strings.Contains(gaps, never) || strings.Contains(problems, "web) are never started again by themselves") != c.told {
			t.Errorf("restart %s in a cluster that says %q: %s\n%s", c.vm, c.cluster, gaps, problems)
		}
	}
	if show, err = client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "of-n4"})); err != nil ||
		len(show.Msg.GetHaGaps()) != 1 {
		t.Errorf("whoever looks at such a VM is told: %v, %v", show, err)
	}
}
