package moves

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// slowly makes the copies of a drain take seconds, one after the other.
var slowly = []string{"--parallel", "1", "--bandwidth", "16M"}

// drained is a host that is emptied: three guests that count, and one that may not move.
type drained struct {
	*site
	node  string
	vms   []string
	since map[string]lab.Tick
}

const never = "pinned may not be moved at all (migration never)"

func fill(s *site) *drained {
	s.Helper()
	d := &drained{site: s, node: s.lab.Hosts[0].Name, vms: []string{"g1", "g2", "g3"}, since: map[string]lab.Tick{}}
	s.firmware("pinned", "--node", d.node, "--migration", "never")
	for _, vm := range d.vms {
		d.since[vm] = s.guest(vm, d.node)
	}
	return d
}

// left are the guests that are still on the host.
func (d *drained) left() (left []string) {
	d.Helper()
	for i, host := range d.hosts(d.vms...) {
		if host == d.node {
			left = append(left, d.vms[i])
		}
	}
	return left
}

// maintained checks whether the host is in maintenance.
func (d *drained) maintained(wanted bool) {
	d.Helper()
	var answer berthv1.GetNodeResponse
	d.must(d.lab.Ask(d.Context(), &answer, "node", "show", d.node))
	if answer.GetNode().GetMaintenance() != wanted {
		d.Errorf("%s in maintenance: %t, want %t", d.node, !wanted, wanted)
	}
}

// returns brings all guests back.
func (d *drained) returns() {
	d.Helper()
	d.berth(0, []string{"node", "undrain", d.node, "--return"}, d.node+" is out of maintenance")
	d.maintained(false)
	if left := d.left(); !slices.Equal(left, d.vms) {
		d.Errorf("after undrain --return %v are on %s, want %v", left, d.node, d.vms)
	}
}

func TestAHostIsEmptiedWhileItsGuestsRunOn(t *testing.T) {
	d := fill(begin(t))
	d.sub("in a log", inALog)
	d.sub("until somebody stops it, on its terminal and elsewhere", stopped)
	d.sub("by the next leader when this one dies", nextLeader)
}

// sub runs a part of the test under a name of its own.
func (d *drained) sub(name string, part func(*drained)) {
	d.Run(name, func(t *testing.T) {
		part(&drained{site: &site{T: t, lab: d.lab}, node: d.node, vms: d.vms, since: d.since})
	})
}

func inALog(d *drained) {
	earlier := len(d.plans("drain"))

	d.berth(1, []string{"node", "drain", d.node, "--dry-run"},
		"dry run: nothing was changed", "3 VMs to move", "1 cannot", never, "room left", "1 VM would stay on "+d.node)
	d.maintained(false)
	if plans := d.plans("drain"); len(plans) != earlier {
		d.Errorf("a dry run has left one of the plans %v", plans)
	}
	d.berth(64, []string{"node", "drain", d.node}, "--yes")

	// In a log each move is told, and no escape sequence.
	said := d.berth(1, []string{"node", "drain", d.node, "--yes", "--reason", "new memory"},
		"vm/g1: migrating from "+d.node, "vm/g2: running on", "vm/g3: running on", "3 VMs moved", "1 did not move", never,
		"1 VM still on "+d.node+", which stays in maintenance")
	if slices.Contains([]byte(said), '\x1b') {
		d.Errorf("what goes into a pipe has escape sequences:\n%q", said)
	}
	if left := d.left(); len(left) > 0 || d.host("pinned") != d.node {
		d.Errorf("after the drain %v are still on %s, pinned is on %s", left, d.node, d.host("pinned"))
	}
	d.maintained(true)
	d.sameGuests(d.since)
	d.berth(1, []string{"node", "drain", d.node, "--yes"}, "in maintenance", never)
	d.returns()
	d.sameGuests(d.since)
}

func stopped(d *drained) {
	node := "node/" + d.node

	onTerminal := d.types("y\n", append([]string{"node", "drain", d.node}, slowly...)...)
	d.moving(node)
	onTerminal.interrupt()
	// The bar of the whole, that of the move, the question before and the note after.
	onTerminal.ends(130, "move 3 VMs away", "1 will stay", node, "g1 -> ", " copied, ", "stopping: no further move begins",
		"interrupted; "+d.node+" is not empty and stays in maintenance")
	d.stoppedAfterOne(node)
	left := d.left()

	fromElsewhere := d.starts(append([]string{"node", "drain", d.node, "--yes"}, slowly...)...)
	d.moving(node)
	d.berth(0, []string{"node", "drain", d.node, "--cancel"}, "no further move begins after 0 of 2 VMs; 1 that copy are let end")
	fromElsewhere.ends(1, "its turn never came", "the drain was cancelled: 2 VMs still on "+d.node)
	d.stoppedAfterOne(node)
	if now := d.left(); len(now) != len(left)-1 {
		d.Errorf("%v were on %s, and after one more move %v", left, d.node, now)
	}
	d.berth(1, []string{"node", "drain", d.node, "--cancel"}, "has ended already")
	d.returns()
	d.sameGuests(d.since)
}

// stoppedAfterOne checks a drain that let one move end and began no other.
func (d *drained) stoppedAfterOne(id string) {
	d.Helper()
	if plan := d.plan(id); plan.GetState() != "cancelled" || plan.GetEndedAt() == nil || moved(plan) != 1 {
		d.Errorf("the plan is %v", plan)
	}
	d.maintained(true)
}

func nextLeader(d *drained) {
	earlier := len(d.plans("drain"))
	drain := d.starts(append([]string{"node", "drain", d.node, "--yes"}, slowly...)...)
	d.moving("node/" + d.node)
	leader, err := d.lab.Leader(d.Context())
	d.must(err)
	d.must(leader.Kill())
	drain.ends(1, "3 VMs moved", "1 did not move", never)
	if plan := d.plan("node/" + d.node); plan.GetState() != "done" || moved(plan) != len(d.vms) {
		d.Errorf("the plan is %v", plan)
	}
	if left := d.left(); len(left) > 0 {
		d.Errorf("%v are still on %s", left, d.node)
	}
	if plans := d.plans("drain")[earlier:]; len(plans) != 1 {
		d.Errorf("more than one drain was begun: %v", plans)
	}
	d.sameGuests(d.since)
}

func TestAVMStaysAwayFromAHostWhereItNoLongerBelongs(t *testing.T) {
	s := begin(t)
	node := s.lab.Hosts[3].Name // no other test drains it: what is asked for is what this drain has moved
	s.firmware("was", "--node", node)
	s.does("node", "drain", node, "--yes")
	s.does("node", "undrain", node)
	away := s.host("was")
	s.firmware("is", "--node", node)
	s.does("group", "add", "apart", "--vm", "was,is", "--vms-rule", "negative", "--vms-enforcing")
	s.berth(0, []string{"node", "undrain", node, "--return", "--dry-run"}, "0 VMs to bring back", "1 better off elsewhere", "group apart")
	s.berth(0, []string{"node", "undrain", node, "--return"}, "1 better off elsewhere", "group apart")
	s.comes("the plan of the return is over", func() error {
		if plan := s.plan("last"); plan.GetKind() != "return" || plan.GetState() != "done" || !strings.Contains(
			plan.GetMessage(), "group apart",
		) {
			return fmt.Errorf("the plan is %v", plan)
		}
		return nil
	})
	if host := s.host("was"); host != away {
		t.Errorf("it is on %s, and was on %s", host, away)
	}
}
