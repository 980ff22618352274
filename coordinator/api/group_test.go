package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/api/answer"
	"berth/coordinator/control/plans"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// newRack is a site with the nodes hv1 to hv3, the VMs web-1 and web-2 on hv1, db on hv2, and idle, which is stopped. The cluster
// west has the node hv9 and, by the VDC out, the VM far.
func newRack(t *testing.T) *declarer {
	t.Helper()
	d := newDeclarer(t)
	for i := range 3 {
		d.m.addNode(fmt.Sprintf("n%d", i+1), fmt.Sprintf("hv%d", i+1))
	}
	for name, holder := range map[string]string{"web-1": "n1", "web-2": "n1", "db": "n2", "idle": ""} {
		vm := model.VM{ID: "id-" + name, Name: name, Holder: holder, Desired: model.Running}
		if holder == "" {
			vm.Desired = model.Stopped
		}
		vm.Spec = model.VMSpec{Memory: 1 << 30, VCPUs: 1}
		if name == "db" {
			vm.Labels = []string{"back"}
		}
		d.m.addVM(vm)
	}
	d.add("cluster", "west", nil, nil)
	d.add("customer", "acme", nil, nil)
	out := d.add("vdc", "out", map[string]string{"customer": "acme", "cluster": "west"}, nil)
	d.m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Nodes, ID: "n9"}, {Table: state.VMs, ID: "id-far"}},
		Nodes: []model.Node{{ID: "n9", Name: "hv9", Cluster: "west", HostUUID: "uuid-of-n9", EnrolledAt: d.m.now()}},
		VMs: []model.VM{{
			ID: "id-far", Name: "far", VDC: out.GetId(), Desired: model.Stopped, Spec: model.VMSpec{Memory: 1 << 30, VCPUs: 1},
		}},
	})
	return d
}

func (d *declarer) tryGroup(request *berthv1.CreateGroupRequest) (*berthv1.CreateGroupResponse, error) {
	answer, err := d.client.CreateGroup(d.t.Context(), connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// group makes a group.
func (d *declarer) group(group *berthv1.Group) *berthv1.Group {
	d.t.Helper()
	made, err := d.tryGroup(&berthv1.CreateGroupRequest{Group: group})
	if err != nil {
		d.t.Fatal(err)
	}
	return made.GetGroup()
}

func (d *declarer) showGroup(ref string) *berthv1.Group {
	d.t.Helper()
	answer, err := d.client.GetGroup(d.t.Context(), connect.NewRequest(&berthv1.GetGroupRequest{Group: ref}))
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.Msg.GetGroup()
}

func (d *declarer) changeGroup(request *berthv1.ChangeGroupRequest) (*berthv1.ChangeGroupResponse, error) {
	answer, err := d.client.ChangeGroup(d.t.Context(), connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// ruled is a rule as people set it.
func ruled(positive, enforcing bool) *berthv1.AffinityRule {
	return &berthv1.AffinityRule{Positive: &positive, Enforcing: &enforcing}
}

// A group that was never seen broken holds since it was made, and one that was mended since then.
func TestAGroupTellsSinceWhenItHolds(t *testing.T) {
	d := newRack(t)
	d.group(&berthv1.Group{Name: "calm", Vms: []string{"db"}, VmsRule: ruled(false, true)})
	record, _ := d.m.store.Snapshot().ResourceByName(model.KindGroup, "calm")
	if status := d.showGroup("calm").GetStatus(); !status.GetHolds() || !status.GetHeldSince().AsTime().Equal(record.CreatedAt) {
		t.Errorf("never broken: %v, made %s", status, record.CreatedAt)
	}
	record.HeldSince = record.CreatedAt.Add(time.Hour)
	d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(record)}, Resources: []model.Resource{record}})
	if status := d.showGroup("calm").GetStatus(); !status.GetHeldSince().AsTime().Equal(record.HeldSince) {
		t.Errorf("mended: %v, at %s", status, record.HeldSince)
	}
}

func TestGroups(t *testing.T) {
	d := newRack(t)

	t.Run("are made and shown", func(t *testing.T) {
		made := d.group(&berthv1.Group{
			Name: "apart", Vms: []string{"web-2", "id-web-1"}, VmLabels: []string{"back"}, Hosts: []string{"hv1", "n2"},
			VmsRule: ruled(false, true), HostsRule: ruled(true, false), Priority: new(2.5), Unbalanced: true,
		})
		shown := d.showGroup("apart")
		if made.GetId() == "" || made.GetRevision() == 0 || made.GetCreatedAt() == nil || shown.GetId() != made.GetId() {
			t.Errorf("made %v", made)
		}
		if diff := cmp.Diff([][]string{{"web-1", "web-2"}, {"hv1", "hv2"}, {"db", "web-1", "web-2"}, {"hv1", "hv2"}},
			[][]string{shown.GetVms(), shown.GetHosts(), shown.GetMemberVms(), shown.GetMemberHosts()}); diff != "" {
			t.Error(diff)
		}
		if r := shown.GetVmsRule(); r.GetPositive() || !r.GetEnforcing() || !r.GetEnabled() || shown.GetPriority() != 2.5 ||
			!shown.GetUnbalanced() {
			t.Errorf("shown %v", shown)
		}
		if byID := d.showGroup(made.GetId()); byID.GetName() != "apart" || byID.GetCluster() != "default" {
			t.Errorf("by ID %v", byID)
		}
		vm, err := d.client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "db"}))
		if err != nil || !slices.Equal(vm.Msg.GetVm().GetGroups(), []string{"apart"}) {
			t.Errorf("db is in %v, %v", vm, err)
		}
	})

	t.Run("tell what breaks them, since when, and why it was not repaired", func(t *testing.T) {
		status := d.showGroup("apart").GetStatus()
		if status.GetHolds() || len(status.GetBreaches()) != 1 || status.BrokenSince != nil || status.LookedAt != nil {
			t.Fatalf("before any pass: %v", status)
		}
		breach := status.GetBreaches()[0]
		if breach.GetScope() != "vms" || !breach.GetHard() || !slices.Equal(
			breach.GetVms(), []string{"web-1", "web-2"},
		) || !slices.Equal(breach.GetHosts(), []string{"hv1"}) {
			t.Errorf("broken by %v", breach)
		}
		record, _ := d.m.store.Snapshot().ResourceByName(model.KindGroup, "apart")
		since := d.m.now().Add(-time.Hour).Truncate(time.Second)
		record.BrokenSince = since
		d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(record)}, Resources: []model.Resource{record}})
		at := d.m.now()
		d.m.control.passes = map[string]plans.LastPass{"default": {
			At: at, Unrepaired: map[string]string{record.ID: "no other node has room for web-1"},
		}}
		status = d.showGroup("apart").GetStatus()
		if !status.GetBrokenSince().AsTime().Equal(since) || status.GetUnrepaired() != "no other node has room for web-1" ||
			!status.GetLookedAt().AsTime().Equal(at) {
			t.Errorf("after a pass: %v", status)
		}
	})

	t.Run("look at where a VM is on its way to", func(t *testing.T) {
		d.group(&berthv1.Group{Name: "pair", Vms: []string{"web-1", "db"}, VmsRule: ruled(true, false)})
		if d.showGroup("pair").GetStatus().GetHolds() {
			t.Error("two nodes count as one")
		}
		moving, _ := d.m.store.Snapshot().VM("id-db")
		moving.Operation = "o1"
		d.m.propose(state.Command{
			Kind: "test", Expect: []state.Expectation{answer.ExpectVM(moving), {Table: state.Operations, ID: "o1"}}, VMs: []model.VM{moving},
			Operations: []operation.Operation{{
				ID: "o1", Kind: operation.Migrate, VM: moving.ID, VMName: "db", Source: "n2", Target: "n1", Phase: operation.Copying,
				CreatedAt: d.m.now(),
			}},
		})
		if status := d.showGroup("pair").GetStatus(); !status.GetHolds() {
			t.Error("where it goes does not count")
		}
		// One that was broken holds since the move that mends it, as soon as somebody asks.
		record, _ := d.m.store.Snapshot().ResourceByName(model.KindGroup, "pair")
		record.BrokenSince = d.m.now().Add(-time.Hour)
		d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(record)}, Resources: []model.Resource{record}})
		op, _ := d.m.store.Snapshot().Operation("o1")
		if status := d.showGroup("pair").GetStatus(); !status.GetHeldSince().AsTime().Equal(op.CreatedAt) {
			t.Errorf("while it is mended it holds since %v, the move began %s", status.GetHeldSince(), op.CreatedAt)
		}
	})

	t.Run("are listed by cluster and name", func(t *testing.T) {
		d.group(&berthv1.Group{Name: "abroad", Cluster: "west", Vms: []string{"far"}, Hosts: []string{"hv9"}, HostsRule: ruled(true, false)})
		list := func(request *berthv1.ListGroupsRequest) string {
			t.Helper()
			answer, err := d.client.ListGroups(t.Context(), connect.NewRequest(request))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, group := range answer.Msg.GetGroups() {
				names = append(names, group.GetCluster()+"/"+group.GetName())
			}
			return strings.Join(names, " ")
		}
		for want, request := range map[string]*berthv1.ListGroupsRequest{
			"default/apart default/pair west/abroad": {}, "west/abroad": {Cluster: "west"}, "default/apart": {BrokenOnly: true},
		} {
			if got := list(request); got != want {
				t.Errorf("%v: %s, want %s", request, got, want)
			}
		}
		_, err := d.client.ListGroups(t.Context(), connect.NewRequest(&berthv1.ListGroupsRequest{Cluster: "nowhere"}))
		wantRefusal(t, err, rpc.NotFound, "cluster/nowhere")
	})

	t.Run("have calls of their own", func(t *testing.T) {
		_, err := d.try("group", "x", nil, nil)
		wantRefusal(t, err, rpc.Invalid, "")
		list, err := d.client.ListResources(t.Context(), connect.NewRequest(&berthv1.ListResourcesRequest{}))
		if err != nil || slices.ContainsFunc(list.Msg.GetResources(), func(r *berthv1.Resource) bool { return r.GetKind() == "group" }) {
			t.Errorf("resources %v, %v", list, err)
		}
	})
}

func TestGroupsThatMayNotBe(t *testing.T) {
	d := newRack(t)
	d.group(&berthv1.Group{Name: "here", Vms: []string{"web-1"}, Hosts: []string{"hv1"}, HostsRule: ruled(true, true)})
	for name, refused := range map[string]struct {
		group         *berthv1.Group
		code, subject string
		named         []string // what the message has to name
	}{
		"no name":            {&berthv1.Group{}, rpc.Invalid, "group/", nil},
		"a name for IDs":     {&berthv1.Group{Name: "6c8d5f52-1111-4222-8333-444455556666"}, rpc.Invalid, "", nil},
		"a name of signs":    {&berthv1.Group{Name: "a b"}, rpc.Invalid, "group/a b", nil},
		"a name twice":       {&berthv1.Group{Name: "here", Cluster: "west"}, rpc.Exists, "group/here", []string{"default"}},
		"no such cluster":    {&berthv1.Group{Name: "x", Cluster: "nowhere"}, rpc.Invalid, "group/x", []string{"nowhere"}},
		"no such VM":         {&berthv1.Group{Name: "x", Vms: []string{"ghost"}}, rpc.Invalid, "group/x", []string{"ghost"}},
		"no such node":       {&berthv1.Group{Name: "x", Hosts: []string{"hv8"}}, rpc.Invalid, "group/x", []string{"hv8"}},
		"a VM twice":         {&berthv1.Group{Name: "x", Vms: []string{"db", "id-db"}}, rpc.Invalid, "group/x", []string{"db"}},
		"a VM elsewhere":     {&berthv1.Group{Name: "x", Vms: []string{"far"}}, rpc.Invalid, "group/x", []string{"far", "west", "default"}},
		"a node elsewhere":   {&berthv1.Group{Name: "x", Hosts: []string{"hv9"}}, rpc.Invalid, "group/x", []string{"hv9", "west", "default"}},
		"a label of signs":   {&berthv1.Group{Name: "x", VmLabels: []string{"a b"}}, rpc.Invalid, "group/x", []string{"a b"}},
		"a priority below 0": {&berthv1.Group{Name: "x", Priority: new(-1.0)}, rpc.Invalid, "group/x", []string{"priority"}},
		"an absurd priority": {&berthv1.Group{Name: "x", Priority: new(1e9)}, rpc.Invalid, "group/x", []string{"priority"}},
		"a contradiction": {
			&berthv1.Group{Name: "away", Vms: []string{"web-1"}, Hosts: []string{"hv1"}, HostsRule: ruled(false, true)}, rpc.Invalid, "",
			[]string{"away", "here", "web-1", "hv1"},
		},
		"a name of a space": {&berthv1.Group{Name: " "}, rpc.Invalid, "group/ ", nil},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %t", name, dry), func(t *testing.T) {
				before := d.index()
				_, err := d.tryGroup(&berthv1.CreateGroupRequest{Group: refused.group, DryRun: dry})
				wantRefusal(t, err, refused.code, refused.subject)
				for _, thing := range refused.named {
					if !strings.Contains(err.Error(), thing) {
						t.Errorf("%q is not named: %v", thing, err)
					}
				}
				if d.index() != before {
					t.Error("something was written all the same")
				}
			})
		}
	}
	_, err := d.tryGroup(&berthv1.CreateGroupRequest{})
	wantRefusal(t, err, rpc.Invalid, "group/")
	_, err = d.client.GetGroup(t.Context(), connect.NewRequest(&berthv1.GetGroupRequest{Group: "ghost"}))
	wantRefusal(t, err, rpc.NotFound, "group/ghost")
}

func TestGroupsAreSavedWithWarnings(t *testing.T) {
	d := newRack(t)
	d.group(&berthv1.Group{Name: "here", Vms: []string{"web-1"}, Hosts: []string{"hv1", "hv2"}, HostsRule: ruled(true, true)})
	request := &berthv1.CreateGroupRequest{
		Group: &berthv1.Group{Name: "there", Vms: []string{"web-1"}, Hosts: []string{"hv1", "hv3"}, HostsRule: ruled(true, true)}, DryRun: true,
	}
	want := func(warnings []*berthv1.Conflict) {
		t.Helper()
		at := slices.IndexFunc(warnings, func(c *berthv1.Conflict) bool { return c.GetKind() == "different-nodes" })
		if at < 0 {
			t.Fatalf("warnings %v", warnings)
		}
		w := warnings[at]
		if diff := cmp.Diff(
			[][]string{{"here", "there"}, {"web-1"}, {"hv2", "hv3"}}, [][]string{w.GetGroups(), w.GetVms(), w.GetHosts()},
		); diff != "" ||
			w.GetSeverity() != "warning" || w.GetNextStep() == "" {
			t.Errorf("warning %v: %s", w, diff)
		}
	}
	tried, err := d.tryGroup(request)
	if err != nil {
		t.Fatal(err)
	}
	want(tried.GetWarnings())
	if _, known := d.m.store.Snapshot().ResourceByName(model.KindGroup, "there"); known || tried.GetGroup().GetRevision() != 0 {
		t.Errorf("a dry run made %v", tried.GetGroup())
	}
	if diff := cmp.Diff([]string{"hv1", "hv3"}, tried.GetGroup().GetMemberHosts()); diff != "" {
		t.Error(diff)
	}
	request.DryRun = false
	made, err := d.tryGroup(request)
	if err != nil {
		t.Fatal(err)
	}
	want(made.GetWarnings())
	want(d.showGroup("there").GetStatus().GetConflicts())
	check, err := d.client.CheckGroups(t.Context(), connect.NewRequest(&berthv1.CheckGroupsRequest{}))
	if err != nil || check.Msg.GetGroups() != 2 {
		t.Fatalf("check: %v, %v", check, err)
	}
	want(check.Msg.GetConflicts())
	check, err = d.client.CheckGroups(t.Context(), connect.NewRequest(&berthv1.CheckGroupsRequest{Cluster: "west"}))
	if err != nil || check.Msg.GetGroups() != 0 || len(check.Msg.GetConflicts()) != 0 {
		t.Errorf("check of west: %v, %v", check, err)
	}
}

func TestGroupsChange(t *testing.T) {
	d := newRack(t)
	d.group(&berthv1.Group{Name: "g", Vms: []string{"web-1"}, VmLabels: []string{"x"}, VmsRule: ruled(false, true)})
	type change = berthv1.ChangeGroupRequest
	for _, step := range []struct {
		name    string
		request *change
		want    func(*berthv1.Group) []string // have, want, have, want
		changes string
	}{
		{"members come", &change{AddVms: []string{"db", "web-1"}, AddHosts: []string{"hv3"}}, func(g *berthv1.Group) []string {
			return []string{strings.Join(g.GetVms(), " "), "db web-1", strings.Join(g.GetHosts(), " "), "hv3"}
		}, `vms "web-1" "db, web-1"; nodes "" "hv3"`},
		{"members go", &change{RemoveVms: []string{"id-web-1"}}, func(g *berthv1.Group) []string {
			return []string{strings.Join(g.GetVms(), " "), "db"}
		}, `vms "db, web-1" "db"`},
		{"lists are replaced", &change{
			Vms: &berthv1.Names{Names: []string{"web-1", "web-2"}}, VmLabels: &berthv1.Names{}, Hosts: &berthv1.Names{},
		}, func(g *berthv1.Group) []string {
			return []string{strings.Join(g.GetVms(), " "), "web-1 web-2", strings.Join(append(g.GetVmLabels(), g.GetHosts()...), " "), ""}
		}, `vms "db" "web-1, web-2"; nodes "hv3" ""; vm_labels "x" ""`},
		{"a rule that is disabled keeps enforcing", &change{VmsRule: &berthv1.AffinityRule{
			Enabled: new(false), Positive: new(true),
		}}, func(g *berthv1.Group) []string {
			return []string{fmt.Sprint(g.GetVmsRule().GetEnabled(), g.GetVmsRule().GetEnforcing(), g.Positive == nil), "false true true"}
		}, `vms_rule "negative" "disabled"`},
		{"the old flags still count", &change{Positive: new(true), Enforcing: new(false)}, func(g *berthv1.Group) []string {
			return []string{fmt.Sprint(g.GetVmsRule().GetEnabled(), g.GetVmsRule().GetPositive(), g.GetVmsRule().GetEnforcing()), "true true false"}
		}, `vms_rule "disabled" "positive"; vms_enforcing "true" "false"`},
		{"but not beside the rule", &change{Positive: new(true), VmsRule: ruled(false, false)}, func(g *berthv1.Group) []string {
			return []string{fmt.Sprint(g.GetVmsRule().GetPositive(), g.GetPositive()), "false false"}
		}, `vms_rule "positive" "negative"`},
		{"priority and balancing", &change{Priority: new(3.0), Unbalanced: new(true)}, func(g *berthv1.Group) []string {
			return []string{fmt.Sprint(g.GetPriority(), g.GetUnbalanced()), "3 true"}
		}, `priority "1 (default)" "3"; unbalanced "false (default)" "true"`},
		{
			"nothing", &change{Priority: new(3.0), AddVms: []string{"web-1"}, VmsRule: ruled(false, false)},
			func(*berthv1.Group) []string { return nil }, "",
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			before := d.index()
			step.request.Group = "g"
			step.request.DryRun = true
			tried, err := d.changeGroup(step.request)
			if err != nil || d.index() != before {
				t.Fatalf("dry run: %v, %v", tried, err)
			}
			step.request.DryRun = false
			answer, err := d.changeGroup(step.request)
			if err != nil {
				t.Fatal(err)
			}
			for _, is := range []*berthv1.Group{tried.GetGroup(), answer.GetGroup(), d.showGroup("g")} {
				for i, have := range step.want(is) {
					if want := step.want(is)[i|1]; have != want {
						t.Errorf("%q, want %q", have, want)
					}
				}
			}
			var said []string
			for _, field := range answer.GetChanges() {
				said = append(said, fmt.Sprintf("%s %q %q", field.GetField(), field.GetFrom(), field.GetTo()))
			}
			if got := strings.Join(said, "; "); got != step.changes {
				t.Errorf("changes %s, want %s", got, step.changes)
			}
			if written := d.index() != before; written != (step.changes != "") {
				t.Errorf("written: %t", written)
			}
		})
	}

	t.Run("their name", func(t *testing.T) {
		d.group(&berthv1.Group{Name: "taken"})
		_, err := d.changeGroup(&change{Group: "g", Name: new("taken")})
		wantRefusal(t, err, rpc.Invalid, "")
		for range 2 { // the second time it has the new name already
			answer, err := d.changeGroup(&change{Group: "g", Name: new("h"), RequestId: "rename"})
			if err != nil || answer.GetGroup().GetName() != "h" {
				t.Fatalf("renamed: %v, %v", answer, err)
			}
		}
		if _, err := d.changeGroup(&change{Group: "h", Name: new("g")}); err != nil {
			t.Error(err)
		}
		_, err = d.changeGroup(&change{Group: "g", Name: new("a b")})
		wantRefusal(t, err, rpc.Invalid, "group/g")
	})

	for name, refused := range map[string]struct {
		request       *change
		code, subject string
	}{
		"no such group":       {&change{Group: "ghost"}, rpc.NotFound, "group/ghost"},
		"all and single":      {&change{Group: "g", Vms: &berthv1.Names{}, AddVms: []string{"db"}}, rpc.Invalid, "group/g"},
		"one that is not in":  {&change{Group: "g", RemoveVms: []string{"db"}}, rpc.NotFound, "group/g"},
		"a node not in":       {&change{Group: "g", RemoveHosts: []string{"hv2"}}, rpc.NotFound, "group/g"},
		"one that is not":     {&change{Group: "g", AddVms: []string{"ghost"}}, rpc.Invalid, "group/g"},
		"one of another":      {&change{Group: "g", AddHosts: []string{"hv9"}}, rpc.Invalid, "group/g"},
		"a priority of 0":     {&change{Group: "g", Priority: new(0.0)}, rpc.Invalid, "group/g"},
		"labels of signs":     {&change{Group: "g", HostLabels: &berthv1.Names{Names: []string{"!"}}}, rpc.Invalid, "group/g"},
		"a VM twice in a row": {&change{Group: "g", Vms: &berthv1.Names{Names: []string{"db", "db"}}}, rpc.Invalid, "group/g"},
	} {
		t.Run("not to "+name, func(t *testing.T) {
			before := d.index()
			_, err := d.changeGroup(refused.request)
			wantRefusal(t, err, refused.code, refused.subject)
			if d.index() != before {
				t.Error("something was written all the same")
			}
		})
	}
}

func TestGroupsAreMadeAndDeletedOnceByOneRequest(t *testing.T) {
	d := newRack(t)
	create := &berthv1.CreateGroupRequest{Group: &berthv1.Group{Name: "g", Vms: []string{"db"}}, RequestId: "same"}
	first, err := d.tryGroup(create)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.tryGroup(create)
	if err != nil || again.GetGroup().GetId() != first.GetGroup().GetId() {
		t.Errorf("the same request again: %v, %v", again, err)
	}
	remove := func(request string) error {
		_, err := d.client.DeleteGroup(t.Context(), connect.NewRequest(&berthv1.DeleteGroupRequest{Group: "g", RequestId: request}))
		return err
	}
	for range 2 {
		if err := remove("gone"); err != nil {
			t.Error(err)
		}
	}
	wantRefusal(t, remove("other"), rpc.NotFound, "group/g")
	for _, want := range []string{
		"resource.created group/g by operator/alice: created: vms: db", "resource.deleted group/g by operator/alice: forgotten",
	} {
		if history := d.history(); !slices.Contains(strings.Split(history, "\n"), want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
}

// A document is judged as single changes are.
func TestADocumentOfGroups(t *testing.T) {
	d := newRack(t)
	apply := func(document string, dry bool) (*berthv1.ApplyEstateResponse, error) {
		answer, err := d.client.ApplyEstate(t.Context(), connect.NewRequest(&berthv1.ApplyEstateRequest{
			Document: []byte("format: berth/estate/v1\n" + document), DryRun: dry,
		}))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	const document = `
groups:
  - {name: here, vms: [web-1], nodes: [hv1, hv2], nodes_rule: positive, nodes_enforcing: true}
  - {name: there, vms: [web-1], nodes: [hv1, hv3], nodes_rule: positive, nodes_enforcing: true}
`
	for _, dry := range []bool{true, false} {
		answer, err := apply(document, dry)
		if err != nil || len(answer.GetChanges()) != 2 || len(answer.GetWarnings()) == 0 {
			t.Fatalf("dry run %t: %v, %v", dry, answer, err)
		}
		w := answer.GetWarnings()[0]
		if diff := cmp.Diff(
			[][]string{{"here", "there"}, {"web-1"}, {"hv2", "hv3"}}, [][]string{w.GetGroups(), w.GetVms(), w.GetHosts()},
		); diff != "" {
			t.Errorf("dry run %t: %s", dry, diff)
		}
	}
	if again, err := apply(document, false); err != nil || len(again.GetChanges())+len(again.GetWarnings()) != 0 {
		t.Errorf("the same again: %v, %v", again, err)
	}
	before := d.index()
	_, err := apply(`
groups:
  - {name: never, vms: [web-1], nodes: [hv1], nodes_rule: negative, nodes_enforcing: true}
  - {name: far, vms: [far]}
`, false)
	wantRefusal(t, err, rpc.Invalid, "estate")
	for _, thing := range []string{"never", "here", "hv1", "far", "west"} {
		if !strings.Contains(err.Error(), thing) {
			t.Errorf("%q is not named: %v", thing, err)
		}
	}
	if d.index() != before {
		t.Error("something was written all the same")
	}
}

// A program that was written for the published design posts JSON.
func TestGroupsOverPlainHTTP(t *testing.T) {
	d := newRack(t)
	client := d.m.cloud.as(pki.RoleOperator, "op1", "alice")
	post := func(procedure, body string) (int, map[string]any) {
		t.Helper()
		response, err := client.Post(d.m.url()+procedure, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]any
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		return response.StatusCode, answer
	}
	for name, one := range map[string]struct{ body, vms, hosts string }{
		"the published example": {
			`"vms": ["web-1", "web-2"], "hosts": ["hv1", "hv2"], "positive": true, "enforcing": true,
			"hosts_rule": {"enabled": true, "enforcing": false, "positive": true}, "vms_rule": {"enabled": true, "enforcing": true, "positive": true}`,
			`{"enabled":true,"enforcing":true,"positive":true}`, `{"enabled":true,"enforcing":false,"positive":true}`,
		},
		"old flags, negative": {
			`"positive": false, "enforcing": true`, `{"enabled":true,"enforcing":true,"positive":false}`,
			`{"enabled":false,"enforcing":false}`,
		},
		"old flags, soft": {
			`"positive": true, "enforcing": false`, `{"enabled":true,"enforcing":false,"positive":true}`,
			`{"enabled":false,"enforcing":false}`,
		},
		"the rule wins over flags": {
			`"positive": false, "enforcing": false, "vms_rule": {"enabled": true, "enforcing": true, "positive": true}`,
			`{"enabled":true,"enforcing":true,"positive":true}`, `{"enabled":false,"enforcing":false}`,
		},
		"disabled wins": {
			`"vms_rule": {"enabled": false, "enforcing": true, "positive": true}`, `{"enabled":false,"enforcing":true}`,
			`{"enabled":false,"enforcing":false}`,
		},
		"nothing said": {`"vms": ["db"]`, `{"enabled":false,"enforcing":false}`, `{"enabled":false,"enforcing":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := post(berthv1connect.BerthServiceCreateGroupProcedure,
				fmt.Sprintf(`{"group": {"name": "g", %s}}`, one.body))
			if status != http.StatusOK {
				t.Fatalf("status %d: %v", status, answer)
			}
			group := answer["group"].(map[string]any)
			for field, want := range map[string]string{"vms_rule": one.vms, "hosts_rule": one.hosts} {
				if got, err := json.Marshal(group[field]); err != nil || string(got) != want {
					t.Errorf("%s %s, want %s", field, got, want)
				}
			}
			if status, answer := post(berthv1connect.BerthServiceDeleteGroupProcedure, `{"group": "g"}`); status != http.StatusOK {
				t.Errorf("deleted with status %d: %v", status, answer)
			}
		})
	}
	status, answer := post(berthv1connect.BerthServiceCreateGroupProcedure, `{"group": {"name": "g", "vms": ["ghost"]}}`)
	if status != http.StatusBadRequest || answer["code"] != "invalid_argument" || !strings.Contains(fmt.Sprint(answer["message"]), "ghost") {
		t.Errorf("status %d, %v", status, answer)
	}
}
