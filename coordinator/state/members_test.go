package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// grouped is a state with two VMs and two nodes, in one group.
func grouped(t *testing.T) *member {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(putNode(0, node("n2", "beta")))
	m.stored(putVM(0, vm("v1", "web", 0)))
	db := vm("v2", "db", 0)
	db.Preferred = []string{"n1", "n2"}
	m.stored(putVM(0, db))
	m.stored(putResource(0, group("g1", "apart", []string{"v1", "v2"}, []string{"n1", "n2"})))
	return m
}

func group(id, name string, vms, nodes []string) model.Resource {
	g := resource(id, model.KindGroup, name, nil)
	g.Members = map[string][]string{}
	if vms != nil {
		g.Members[model.MembersVMs] = vms
	}
	if nodes != nil {
		g.Members[model.MembersNodes] = nodes
	}
	return g
}

func TestWhatGoesLeavesItsGroups(t *testing.T) {
	m := grouped(t)
	m.stored(remove(VMs, "v1", 3))
	m.stored(remove(Nodes, "n1", 1))
	x := m.store.Snapshot()
	g, _ := x.Resource("g1")
	check(t, "VMs", g.Members[model.MembersVMs], "v2")
	check(t, "nodes", g.Members[model.MembersNodes], "n2")
	db, _ := x.VM("v2")
	check(t, "preferred", db.Preferred, "n2")
	if g.Revision != 7 || db.Revision != 7 {
		t.Errorf("the group is at revision %d and the VM at %d, want 7: who read them before has to read again", g.Revision, db.Revision)
	}

	// The last member goes, and the group stays, empty.
	m.stored(remove(Nodes, "n2", 2))
	m.stored(remove(VMs, "v2", 8))
	if g, exists := m.store.Snapshot().Resource("g1"); !exists || g.Members != nil {
		t.Errorf("the group is %+v, want it without members", g)
	}
}

func TestWhatGoesWithItsGroupLeavesNothing(t *testing.T) {
	m := grouped(t)
	command := remove(VMs, "v1", 3)
	command.Delete = append(command.Delete, Record{Resources, "g1"})
	command.Expect = append(command.Expect, expect(Resources, "g1", 5))
	m.stored(command)
	if _, exists := m.store.Snapshot().Resource("g1"); exists {
		t.Error("the group is there again")
	}
}

func TestACommandMayTakeAMemberAndItsGroupsChangeTogether(t *testing.T) {
	m := grouped(t)
	command := remove(VMs, "v1", 3)
	command.Resources = []model.Resource{group("g1", "together", []string{"v2"}, nil)}
	command.Expect = append(command.Expect, expect(Resources, "g1", 5))
	m.stored(command)
	g, _ := m.store.Snapshot().Resource("g1")
	check(t, "VMs", g.Members[model.MembersVMs], "v2")
	if g.Name != "together" || g.Members[model.MembersNodes] != nil {
		t.Errorf("the group is %+v, want it as the command has it", g)
	}
}

func TestMembersExist(t *testing.T) {
	prefers := vm("v2", "db", 0)
	prefers.Preferred = []string{"n9"}
	late := remove(VMs, "v1", 3)
	late.Resources = []model.Resource{group("g1", "apart", []string{"v1"}, nil)}
	late.Expect = append(late.Expect, expect(Resources, "g1", 5))
	for says, command := range map[string]Command{
		`group "apart" has the member "v9"`: putResource(5, group("g1", "apart", []string{"v1", "v9"}, nil)),
		`group "apart" has the member "n9"`: putResource(5, group("g1", "apart", nil, []string{"n9"})),
		`group "apart" has the member "v1"`: late,
		`VM "db" prefers "n9"`:              putVM(4, prefers),
	} {
		if refusal := grouped(t).refused(Stale, command); !strings.Contains(refusal.Message, says) {
			t.Errorf("refused with %q, want it to say %q", refusal.Message, says)
		}
	}
	for name, command := range map[string]Command{
		"no ID":       putResource(5, group("g1", "apart", []string{""}, nil)),
		"a zero byte": putResource(5, group("g1", "apart", []string{"v\x001"}, nil)),
	} {
		t.Run(name, func(t *testing.T) { grouped(t).refused(Invalid, command) })
	}
}

func TestLinksMayLeadToWhatIsBuiltIn(t *testing.T) {
	m := newMember(t)
	m.stored(putResource(0, resource("c1", model.KindCluster, "gold", map[string]string{"policy": model.BuiltIn + "none"})))
	if _, err := Load(strings.NewReader(string(saved(t, m.store.Snapshot())))); err != nil {
		t.Error(err)
	}
}

func TestPlans(t *testing.T) {
	m := newMember(t)
	at := func(id string, state model.PlanState, minutes int, request string) model.Plan {
		p := plan(id, state)
		p.CreatedAt, p.Request = noon.Add(time.Duration(minutes)*time.Minute), request
		return p
	}
	m.stored(putPlan(0, at("p2", model.PlanRunning, 2, "again")))
	m.stored(putPlan(0, at("p1", model.PlanProposed, 1, "")))
	m.stored(putPlan(0, at("p3", model.PlanDone, 3, "again")))
	x := m.store.Snapshot()
	id := func(p model.Plan) string { return p.ID }
	check(t, "plans", names(x.Plans(), id), "p3", "p2", "p1")
	check(t, "live plans", names(x.LivePlans(), id), "p1", "p2")
	if p, ok := x.PlanByRequest("again"); !ok || p.ID != "p3" {
		t.Errorf("the plan of the request is %q", p.ID)
	}
	for _, request := range []string{"", "other", "again\x00"} {
		if p, ok := x.PlanByRequest(request); ok {
			t.Errorf("plan %q is of request %q", p.ID, request)
		}
	}
	if p, ok := x.Plan("p1"); !ok || p.Revision != 2 {
		t.Errorf("plan p1 is %+v", p)
	}

	m.refused(Stale, putPlan(0, at("p1", model.PlanRunning, 1, "")))
	m.refused(Invalid, remove(Plans, "p3", 3))
	m.refused(Invalid, Command{Kind: "plan", Plans: []model.Plan{plan("p9", model.PlanRunning)}})
	if refusal := m.refused(Invalid, putPlan(3, at("p3", model.PlanRunning, 3, ""))); !strings.Contains(refusal.Message, "has ended (done)") {
		t.Errorf("refused with %q", refusal.Message)
	}
	observed := at("p3", model.PlanDone, 3, "again")
	observed.Observed = 4
	m.stored(putPlan(3, observed)) // what came of it may be written down later
}

func TestThePlansThatEndedLongAgoGo(t *testing.T) {
	m := newMember(t)
	m.stored(putPlan(0, plan("old", model.PlanProposed)))
	for i := range MaxPlans + 1 {
		p := plan(fmt.Sprintf("p%03d", i), model.PlanDone)
		p.CreatedAt = noon.Add(time.Duration(i+1) * time.Second)
		m.stored(putPlan(0, p))
		m.stored(putPlan(m.index, p)) // ended once, however often it is written
	}
	x := m.store.Snapshot()
	if _, kept := x.Plan("p000"); kept || len(x.Plans()) != MaxPlans+1 {
		t.Errorf("%d plans are kept, p000 among them: %v; want %d without it", len(x.Plans()), kept, MaxPlans+1)
	}
	if _, kept := x.Plan("old"); !kept {
		t.Error("a live plan went")
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}
}

func TestOperationsOfAPlan(t *testing.T) {
	m := newMember(t)
	for i, of := range []string{"p1", "p1", "p10", ""} {
		v := vm(fmt.Sprint("v", i), fmt.Sprint("vm-", i), 0)
		m.stored(putVM(0, v))
		op := start(fmt.Sprint("o", i), v.ID)
		op.Plan, op.CreatedAt = of, noon.Add(time.Duration(i)*time.Minute)
		m.stored(putOperation(0, op))
	}
	x := m.store.Snapshot()
	for _, tt := range []struct {
		plan string
		want []string
	}{{"p1", []string{"o1", "o0"}}, {"p10", []string{"o2"}}, {"p", nil}, {"", nil}, {"p1\x00", nil}} {
		var got []string
		for _, op := range x.OperationsOfPlan(tt.plan) {
			got = append(got, op.ID)
		}
		check(t, "operations of "+tt.plan, got, tt.want...)
	}
}
