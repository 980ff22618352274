package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/api/answer"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestNodesHaveLabelsAndFlags(t *testing.T) {
	d := newRack(t)
	set := func(request *berthv1.SetNodeRequest) (*berthv1.Node, error) {
		answer, err := d.client.SetNode(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetNode(), nil
	}
	node, err := set(&berthv1.SetNodeRequest{
		Node: "hv1", Labels: &berthv1.Names{Names: []string{"rack-2", "fast"}}, Management: new(true), Unbalanced: new(true),
	})
	if err != nil || !slices.Equal(node.GetLabels(), []string{"fast", "rack-2"}) || !node.GetManagement() || !node.GetUnbalanced() {
		t.Fatalf("set to %v, %v", node, err)
	}
	group := d.group(&berthv1.Group{Name: "g", Vms: []string{"web-1"}, HostLabels: []string{"fast"}, HostsRule: ruled(true, true)})
	if diff := cmp.Diff([]string{"hv1"}, group.GetMemberHosts()); diff != "" {
		t.Error(diff)
	}
	node, err = set(&berthv1.SetNodeRequest{Node: "hv1", Labels: &berthv1.Names{}, Management: new(false)})
	if err != nil || len(node.GetLabels()) != 0 || node.GetManagement() || !node.GetUnbalanced() {
		t.Errorf("set to %v, %v", node, err)
	}
	if !strings.Contains(d.history(), "node.set node/hv1 by operator/alice: labels: fast, rack-2, management true, unbalanced true") {
		t.Errorf("history:\n%s", d.history())
	}
	before := d.index()
	for _, labels := range [][]string{{"a b"}, {""}, {"x", "x"}, slices.Repeat([]string{"x"}, model.MaxLabels+1)} {
		_, err = set(&berthv1.SetNodeRequest{Node: "hv1", Labels: &berthv1.Names{Names: labels}})
		wantRefusal(t, err, rpc.Invalid, "node/hv1")
	}
	if d.index() != before {
		t.Error("something was written all the same")
	}
	d.group(&berthv1.Group{Name: "away", Vms: []string{"web-1"}, HostLabels: []string{"slow"}, HostsRule: ruled(false, true)})
	if _, err = set(&berthv1.SetNodeRequest{Node: "hv2", Labels: &berthv1.Names{Names: []string{"fast"}}}); err != nil {
		t.Fatal(err)
	}
	before = d.index()
	_, err = set(&berthv1.SetNodeRequest{Node: "hv2", Labels: &berthv1.Names{Names: []string{"fast", "slow"}}})
	wantRefusal(t, err, rpc.Invalid, "node/hv2")
	if !strings.Contains(err.Error(), "away") || d.index() != before {
		t.Errorf("a label that makes groups contradict each other: %v", err)
	}
}

func TestADrainingNodeIsNotTakenOutOfMaintenanceByTheWay(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	m.keepPlan(aDrain("p1", m.now()))
	shown, err := client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv1"}))
	if err != nil || shown.Msg.GetNode().GetPlanId() != "p1" {
		t.Errorf("shown %v, %v", shown, err)
	}
	other, err := client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv2"}))
	if err != nil || other.Msg.GetNode().GetPlanId() != "" {
		t.Errorf("shown %v, %v", other, err)
	}
	_, err = client.SetNodeMaintenance(ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv1"}))
	wantRefusal(t, err, rpc.Busy, "node/hv1")
	_, err = client.RemoveNode(ctx, connect.NewRequest(&berthv1.RemoveNodeRequest{Node: "hv1"}))
	wantRefusal(t, err, rpc.Busy, "node/hv1")
	if _, err = client.SetNodeMaintenance(
		ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv1", On: true, Reason: "fans"}),
	); err != nil {
		t.Error(err)
	}
}

func TestVMsHaveLabelsPreferencesAndAWordOnMigration(t *testing.T) {
	d := newRack(t)
	change := func(request *berthv1.ChangeVMRequest) (*berthv1.ChangeVMResponse, error) {
		answer, err := d.client.ChangeVM(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	names := func(all ...string) *berthv1.Names { return &berthv1.Names{Names: all} }

	t.Run("that change", func(t *testing.T) {
		answer, err := change(&berthv1.ChangeVMRequest{
			Vm: "idle", Change: &berthv1.VMChange{
				Labels: names("y", "x"), Preferred: names("hv2", "n1"), Migration: new("never"), Description: new("front"),
				RestartPriority: new("high"), Restart: new("never"),
				RestartAfter: names("z", "db"),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		vm := answer.GetVm()
		if diff := cmp.Diff(
			[][]string{{"x", "y"}, {"hv1", "hv2"}, {"db", "z"}}, [][]string{vm.GetLabels(), vm.GetPreferred(), vm.GetRestartAfter()},
		); diff != "" || vm.GetMigration() != "never" || vm.GetDescription() != "front" || vm.GetRestartPriority() != "high" ||
			vm.GetRestart() != "never" {
			t.Errorf("%v: %s", vm, diff)
		}
		if len(answer.GetChanges()) != 7 {
			t.Errorf("changes %v", answer.GetChanges())
		}
		answer, err = change(&berthv1.ChangeVMRequest{
			Vm: "idle", Change: &berthv1.VMChange{Labels: names(), Preferred: names(), Migration: new("automatic")},
		})
		if vm := answer.GetVm(); err != nil || len(vm.GetLabels())+len(vm.GetPreferred()) > 0 || vm.GetMigration() != "automatic" {
			t.Errorf("back to %v, %v", vm, err)
		}
	})

	for name, refused := range map[string]struct {
		request *berthv1.ChangeVMRequest
		named   string
	}{
		"a label of signs":         {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Labels: names("a b")}}, "a b"},
		"a label twice":            {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Labels: names("x", "x")}}, "x"},
		"a node that is not there": {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Preferred: names("hv8")}}, "hv8"},
		"a node twice":             {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Preferred: names("hv1", "n1")}}, "hv1"},
		"another word":             {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Migration: new("sometimes")}}, "sometimes"},
		"a text of two lines":      {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Description: new("a\nb")}}, "one line"},
		"another time":             {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Restart: new("later")}}, "later"},
		"another priority":         {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{RestartPriority: new("first")}}, "first"},
		"no word":                  {&berthv1.ChangeVMRequest{Change: &berthv1.VMChange{Migration: new("")}}, "migration"},
	} {
		t.Run("but not to "+name, func(t *testing.T) {
			before := d.index()
			refused.request.Vm = "idle"
			_, err := change(refused.request)
			wantRefusal(t, err, rpc.Invalid, "vm/idle")
			if !strings.Contains(err.Error(), refused.named) || d.index() != before {
				t.Errorf("refused: %v", err)
			}
		})
	}

	t.Run("and groups look at them", func(t *testing.T) {
		d.group(&berthv1.Group{Name: "here", VmLabels: []string{"here"}, Hosts: []string{"hv1"}, HostsRule: ruled(true, true)})
		d.group(&berthv1.Group{Name: "away", VmLabels: []string{"away"}, Hosts: []string{"hv1"}, HostsRule: ruled(false, true)})
		answer, err := change(&berthv1.ChangeVMRequest{Vm: "idle", Change: &berthv1.VMChange{Labels: names("here")}})
		if err != nil || !slices.Equal(answer.GetVm().GetGroups(), []string{"here"}) {
			t.Fatalf("changed to %v, %v", answer, err)
		}
		before := d.index()
		_, err = change(&berthv1.ChangeVMRequest{Vm: "idle", Change: &berthv1.VMChange{Labels: names("here", "away")}})
		wantRefusal(t, err, rpc.Invalid, "vm/idle")
		if !strings.Contains(err.Error(), "away") || d.index() != before {
			t.Errorf("labels that contradict each other: %v", err)
		}
		d.group(&berthv1.Group{Name: "listed", Vms: []string{"idle"}})
		_, err = change(&berthv1.ChangeVMRequest{Vm: "idle", Change: &berthv1.VMChange{Vdc: new("out")}})
		wantRefusal(t, err, rpc.Invalid, "vm/idle")
		if !strings.Contains(err.Error(), "listed") {
			t.Errorf("a member that goes to another cluster: %v", err)
		}
	})

	t.Run("from the beginning", func(t *testing.T) {
		var asked lifecycle.StartVM
		d.m.control.start = func(request lifecycle.StartVM) (lifecycle.Started, error) {
			asked = request
			return lifecycle.Started{}, nil
		}
		d.m.control.add = func(request lifecycle.AddVM) (lifecycle.Added, error) {
			asked = lifecycle.StartVM(request)
			return lifecycle.Added{}, nil
		}
		spec := &berthv1.VMSpec{MemoryBytes: 1 << 30, Vcpus: 1}
		want := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			wanted := model.VM{
				Labels: []string{"x", "y"}, Preferred: []string{"n2"}, Migration: model.MigrateManual, Description: "front",
				RestartPriority: model.RestartHigh, Restart: model.RestartAlways, RestartAfter: []string{"db"},
			}
			for i := range schema.VM {
				if f := &schema.VM[i]; !f.Spec && !f.Same(&wanted, asked.VM) {
					t.Errorf("%s is %q, want %q", f.Name, f.Text(asked.VM, nil), f.Text(&wanted, nil))
				}
			}
			asked = lifecycle.StartVM{}
		}
		_, err := d.client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{
			Name: "new",
			Vm: &berthv1.NewVM{
				Spec: spec, Labels: []string{"y", "x"}, Preferred: []string{"hv2"}, Migration: "manual", Description: "front",
				RestartPriority: "high", Restart: "always", RestartAfter: []string{"db"},
			},
		}))
		want(err)
		_, err = d.client.AddVM(t.Context(), connect.NewRequest(&berthv1.AddVMRequest{
			Name: "new",
			Vm: &berthv1.NewVM{
				Spec: spec, Labels: []string{"y", "x"}, Preferred: []string{"hv2"}, Migration: "manual", Description: "front",
				RestartPriority: "high", Restart: "always", RestartAfter: []string{"db"},
			},
		}))
		want(err)
		for _, wanted := range []*berthv1.NewVM{
			{Migration: "sometimes"},
			{Description: "a\tb"},
			{Labels: []string{"a b"}},
			{Preferred: []string{"hv8"}},
			{Labels: []string{"here", "away"}},
		} {
			wanted.Spec = spec
			_, err := d.client.AddVM(t.Context(), connect.NewRequest(&berthv1.AddVMRequest{Name: "new", Vm: wanted}))
			wantRefusal(t, err, rpc.Invalid, "vm/new")
			if asked.Name != "" {
				t.Error("control was asked all the same")
			}
		}
		labelled := &berthv1.StartVMRequest{Name: "idle", Vm: &berthv1.NewVM{Labels: []string{"x"}}}
		_, err = d.client.StartVM(t.Context(), connect.NewRequest(labelled))
		wantRefusal(t, err, rpc.Invalid, "vm/idle")
	})
}

func TestStatusTellsOfGroupsAndPlans(t *testing.T) {
	d := newRack(t)
	d.group(&berthv1.Group{Name: "apart", Vms: []string{"web-1", "web-2"}, VmsRule: ruled(false, true)})
	d.group(&berthv1.Group{Name: "wish", Vms: []string{"web-1", "web-2"}, Hosts: []string{"hv3"}, HostsRule: ruled(true, false)})
	record, _ := d.m.store.Snapshot().ResourceByName(model.KindGroup, "apart")
	record.BrokenSince = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(record)}, Resources: []model.Resource{record}})
	d.m.keepPlan(aDrain("p1", d.m.now()))
	d.m.keepPlan(model.Plan{
		ID: "p2", Kind: model.PlanBalance, State: model.PlanProposed, Cluster: "default", Reason: "hv1 has 14 VMs, hv2 3",
		CreatedAt: d.m.now(), UpdatedAt: d.m.now(), Moves: make([]model.Move, 3),
	})
	d.m.keepPlan(model.Plan{ID: "p3", Kind: model.PlanDrain, State: model.PlanDone, Cluster: "default", NodeName: "hv9", CreatedAt: d.m.now()})
	status, err := d.client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	problems := status.Msg.GetProblems()
	for _, want := range []string{
		"group apart does not hold since 2026-03-01T12:00:00Z: ",
		"node hv1 is being drained: ",
		"a balance plan of 3 moves for cluster default waits: hv1 has 14 VMs, hv2 3; 'berth plan show p2', then apply or discard it",
	} {
		if !slices.ContainsFunc(problems, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("the problems lack %q:\n%s", want, strings.Join(problems, "\n"))
		}
	}
	for _, line := range problems {
		if strings.Contains(line, "wish") || strings.Contains(line, "p3") || strings.Contains(line, "hv9 is being") {
			t.Errorf("told without need: %s", line)
		}
	}
}

func TestStatusTellsOfWantOfHeadroom(t *testing.T) {
	d := newRack(t)
	d.m.guard("yes") // which is told of otherwise
	record := model.DefaultClusterRecord()
	record.Settings = map[string]string{model.SettingSpareNodes: "1"}
	d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(record)}, Resources: []model.Resource{record}})
	told := func() string {
		t.Helper()
		status, err := d.client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range status.Msg.GetProblems() {
			if strings.HasPrefix(line, "cluster ") {
				return line
			}
		}
		return ""
	}
	if line := told(); line != "" {
		t.Errorf("told without need: %s", line)
	}
	vm, _ := d.m.store.Snapshot().VMByName("web-1")
	vm.HA = true
	d.m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}, VMs: []model.VM{vm},
	})
	// No node has told of its memory.
	want := "cluster default keeps 1 node in spare, and has not enough free: if hv1 failed, 1 VM with ha (1 GiB) could not be restarted: web-1"
	if line := told(); !strings.HasPrefix(line, want) {
		t.Errorf("told is %q, want %q", line, want)
	}
}
