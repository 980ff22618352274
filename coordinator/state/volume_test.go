package state

import (
	"strings"
	"testing"

	"berth/coordinator/model"
)

// A copy of an image goes with its node. The last node that has something does not go, and nothing is put on a node or in a
// pool that is not there.
func TestNodesStayWhileTheyHaveTheOnlyVolume(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(putNode(0, node("n2", "beta")))
	m.stored(putResource(0, resource("p1", model.KindPool, "fast", nil)))
	image := resource("i1", model.KindImage, "debian", nil)
	image.Volume = &model.Volume{Pool: "p1", Nodes: []string{"n1", "n2"}, Name: "berth-i1.qcow2", Format: "qcow2", Capacity: 1}
	m.stored(putResource(0, image))
	m.stored(remove(Nodes, "n2", 2))
	now, _ := m.store.Snapshot().Resource("i1")
	check(t, "nodes", now.Volume.Nodes, "n1")
	if now.Revision != 5 {
		t.Errorf("the image is at revision %d, want 5: who read it before has to read again", now.Revision)
	}
	for name, command := range map[string]Command{
		`node "n1" has the volume of image "debian"`: remove(Nodes, "n1", 1),
		`pool "fast" is in use by image "debian"`:    remove(Resources, "p1", 3),
		`has its volume on "n2"`: func() Command {
			disk := resource("d1", model.KindDisk, "web-root", nil)
			disk.Volume = &model.Volume{Pool: "p1", Nodes: []string{"n2"}, Name: "berth-d1.qcow2", Format: "qcow2", Capacity: 1}
			return putResource(0, disk)
		}(),
		`names resource "p2"`: func() Command {
			disk := resource("d1", model.KindDisk, "web-root", nil)
			disk.Volume = &model.Volume{Pool: "p2", Name: "berth-d1.qcow2", Format: "qcow2", Capacity: 1}
			return putResource(0, disk)
		}(),
	} {
		result := m.apply(command)
		if result.Refusal == nil || !strings.Contains(result.Refusal.Message, name) {
			t.Errorf("%s: came out as %+v", name, result.Refusal)
		}
	}
}

// Each place of an image loses the nodes that go, and keeps its last one and its pool.
func TestEachPlaceOfAnImageKeepsItsLastNode(t *testing.T) {
	m := newMember(t)
	for i, id := range []string{"n1", "n2", "n3"} {
		m.stored(putNode(0, node(id, []string{"alpha", "beta", "gamma"}[i])))
	}
	m.stored(putResource(0, resource("p1", model.KindPool, "fast", nil)))
	m.stored(putResource(0, resource("p2", model.KindPool, "slow", nil)))
	image := resource("i1", model.KindImage, "debian", nil)
	image.Volume = &model.Volume{Pool: "p1", Nodes: []string{"n1"}, Name: "berth-i1.qcow2", Format: "qcow2", Capacity: 1}
	image.Copies = []model.Volume{{Pool: "p2", Nodes: []string{"n2", "n3"}, Name: "berth-i1-p2.qcow2", Format: "qcow2", Capacity: 1}}
	m.stored(putResource(0, image))
	m.stored(remove(Nodes, "n3", 3))
	now, _ := m.store.Snapshot().Resource("i1")
	check(t, "nodes of the first", now.Volume.Nodes, "n1")
	check(t, "nodes of the copy", now.Copies[0].Nodes, "n2")
	for want, command := range map[string]Command{
		`node "n1" has the volume of image "debian"`: remove(Nodes, "n1", 1),
		`node "n2" has the volume of image "debian"`: remove(Nodes, "n2", 2),
		`pool "slow" is in use by image "debian"`:    remove(Resources, "p2", 5),
	} {
		if result := m.apply(command); result.Refusal == nil || !strings.Contains(result.Refusal.Message, want) {
			t.Errorf("%s: came out as %+v", want, result.Refusal)
		}
	}
}
