package state

import (
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

func TestADeletedRecordsRequestIsRemembered(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	remove := Command{
		Key: "request", Kind: "remove node", At: noon,
		Expect: []Expectation{expect(Nodes, "n1", 1)}, Delete: []Record{{Nodes, "n1"}},
	}
	if m.store.Snapshot().Answered("request", "remove node") {
		t.Error("answered before it was proposed")
	}
	m.stored(remove)
	x := m.store.Snapshot()
	if !x.Answered("request", "remove node") {
		t.Error("not answered after it was stored")
	}
	if x.Answered("request", "delete vm") || x.Answered("other", "remove node") {
		t.Error("answered for another kind or key")
	}
}

func TestANodeThatIsNeededStays(t *testing.T) {
	held := vm("v1", "web", 1)
	held.Holder = "n1"
	free := vm("v1", "web", 1)
	begun := start("o1", "v1") // on n1
	for name, command := range map[string]Command{
		"held by a VM": {
			Key: "hold", At: noon, Expect: []Expectation{expect(VMs, "v1", 0)}, VMs: []model.VM{held},
		},
		"target of a live operation": {
			Key: "begin", At: noon, Expect: []Expectation{expect(VMs, "v1", 0), expect(Operations, "o1", 0)},
			VMs: []model.VM{free}, Operations: []operation.Operation{begun},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t)
			m.stored(putNode(0, node("n1", "alpha")))
			m.stored(command)
			m.refused(Stale, Command{
				Key: "remove", At: noon, Expect: []Expectation{expect(Nodes, "n1", 1)}, Delete: []Record{{Nodes, "n1"}},
			})
		})
	}
}
