package evidence

import (
	"iter"
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
)

// recorded is a few records, and nothing else.
type recorded struct {
	Records
	vms   []model.VM
	nodes []model.Node
}

func (s recorded) SharedVMs() iter.Seq[*model.VM] { return sharedOf(s.vms) }
func (s recorded) Nodes() []model.Node            { return s.nodes }

func sharedOf(vms []model.VM) iter.Seq[*model.VM] {
	return func(yield func(*model.VM) bool) {
		for i := range vms {
			if !yield(&vms[i]) {
				return
			}
		}
	}
}

func markedOf(vms []model.VM, mark model.Mark) (marked []model.VM) {
	for i := range vms {
		if slices.Contains(vms[i].Marks(), mark) {
			marked = append(marked, vms[i])
		}
	}
	return marked
}

func TestTimesThatHaveNotComeYetBecomeThePresent(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ahead, soon, past := now.AddDate(73, 0, 0), now.Add(4*time.Minute), now.Add(-time.Hour)
	vms, nodes := Restamped(recorded{
		vms: []model.VM{
			{ID: "right", StartedAt: past, MovedAt: soon},
			{ID: "started", StartedAt: ahead, RestartedAt: past},
			{ID: "moved", StartedAt: past, MovedAt: ahead},
			{ID: "restarted", StartedAt: past, RestartedAt: ahead},
			{ID: "at work", StartedAt: ahead, Operation: "op"},
		},
		nodes: []model.Node{
			{ID: "right", Fencing: model.Fencing{AskedAt: past, EndedAt: soon}},
			{ID: "fenced", Fencing: model.Fencing{AskedAt: past, EndedAt: ahead}},
		},
	}, now)
	if len(vms) != 3 || vms[0].ID != "started" || !vms[0].StartedAt.Equal(now) || !vms[0].RestartedAt.Equal(past) ||
		vms[1].ID != "moved" || !vms[1].MovedAt.Equal(now) || vms[2].ID != "restarted" || !vms[2].RestartedAt.Equal(now) {
		t.Errorf("VMs: %+v", vms)
	}
	if len(nodes) != 1 || nodes[0].ID != "fenced" || !nodes[0].Fencing.EndedAt.Equal(now) || !nodes[0].Fencing.AskedAt.Equal(past) {
		t.Errorf("nodes: %+v", nodes)
	}
}
