package lastknown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/consensus"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// site is a view of nodes that are well and run one VM each.
func site(nodes int) (view.Records, map[string]model.NodeFacts) {
	var records view.Records
	facts := map[string]model.NodeFacts{}
	for i := range nodes {
		node, vm := fmt.Sprintf("n%04d", i), fmt.Sprintf("v%04d", i)
		records.Nodes = append(records.Nodes, model.Node{ID: node, Name: node})
		records.VMs = append(records.VMs, model.VM{ID: vm, Name: vm, Desired: model.Running, Holder: node, Epoch: 1})
		facts[node] = model.NodeFacts{
			Liveness: model.Up, Inventory: true, DomainsKnown: true,
			Domains: []model.Domain{{UUID: vm, Name: vm, State: model.DomainRunning}},
		}
	}
	return records, facts
}

func TestASiteThatIsWellHasNothingToTell(t *testing.T) {
	small, digest := Heard(view.New(noon, 1, recordsOf(site(1)), factsOf(site(1))))
	large, same := Heard(view.New(noon, 1, recordsOf(site(1000)), factsOf(site(1000))))
	if len(small.GetNodes())+len(small.GetVms())+len(large.GetNodes())+len(large.GetVms()) != 0 {
		t.Errorf("%v and %v are told", small, large)
	}
	if digest == "" || digest != same {
		t.Errorf("the digests are %q and %q", digest, same)
	}
}

func recordsOf(records view.Records, _ map[string]model.NodeFacts) view.Records { return records }

func factsOf(_ view.Records, facts map[string]model.NodeFacts) map[string]model.NodeFacts {
	return facts
}

func TestWhatIsNotAsUsualIsTold(t *testing.T) {
	records, facts := site(5)
	change := func(node string, do func(*model.NodeFacts)) {
		one := facts[node]
		do(&one)
		facts[node] = one
	}
	change("n0001", func(f *model.NodeFacts) { f.Liveness, f.LivenessReason = model.Unreachable, "silent for 40s" })
	change("n0002", func(f *model.NodeFacts) { f.DomainsKnown, f.Domains = false, nil })
	change("n0003", func(f *model.NodeFacts) { f.Domains = nil })
	change("n0004", func(f *model.NodeFacts) { f.Domains[0].State, f.Domains[0].Reason = "paused", "ioerror" })
	heard, digest := Heard(view.New(noon, 1, records, facts))
	if len(heard.GetNodes()) != 2 || heard.GetNodes()[0].GetId() != "n0001" ||
		heard.GetNodes()[0].GetState() != berthv1.NodeState_NODE_STATE_UNREACHABLE || heard.GetNodes()[0].GetReason() != "silent for 40s" ||
		heard.GetNodes()[1].GetId() != "n0002" || heard.GetNodes()[1].GetDomainsKnown() {
		t.Errorf("of nodes %v is told", heard.GetNodes())
	}
	if len(heard.GetVms()) != 2 || heard.GetVms()[0].GetState() != berthv1.DomainState_DOMAIN_STATE_ABSENT ||
		heard.GetVms()[1].GetState() != berthv1.DomainState_DOMAIN_STATE_PAUSED || heard.GetVms()[1].GetStateReason() != "ioerror" {
		t.Errorf("of VMs %v is told", heard.GetVms())
	}

	// Who has it already is told its digest, and what he has is of the present again. A leader of an earlier release tells neither.
	var k Keeper
	k.Keep(heard, digest, noon, nil)
	k.Keep(nil, digest, noon.Add(time.Minute), nil)
	if k.heard != heard || !k.at.Equal(noon.Add(time.Minute)) || k.Digest() != digest {
		t.Errorf("%v of %s is kept", k.heard, k.at)
	}
	for _, other := range []string{"", "another"} {
		k.Keep(nil, other, noon.Add(time.Hour), nil)
		if !k.at.Equal(noon.Add(time.Minute)) {
			t.Errorf("what was told with the digest %q is taken for the same", other)
		}
	}
}

// Of a node that was enrolled after the leader's last word nothing was told, and nothing is known: neither of it nor of its VMs.
func TestANodeThatCameLaterIsUnknown(t *testing.T) {
	store, index := state.NewStore(), uint64(0)
	enrol := func(id, vm string) *state.Snapshot {
		index++
		command := state.Command{
			Key: id, Kind: "test", At: noon,
			Expect: []state.Expectation{{Table: state.Nodes, ID: id}, {Table: state.VMs, ID: vm}},
			Nodes:  []model.Node{{ID: id, Name: id}},
			VMs: []model.VM{{
				ID: vm, Name: vm, Desired: model.Running, Holder: id, Epoch: 1, LastEpoch: 1,
				Spec: model.VMSpec{Memory: 1 << 30, VCPUs: 1, Kernel: "/vmlinuz"},
			}},
		}
		data, err := command.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if result := store.FSM().Apply(&raft.Log{Index: index, Data: data}).(state.Result); result.Refusal != nil {
			t.Fatal(result.Refusal)
		}
		return store.Snapshot()
	}
	early := enrol("n1", "v1")
	late := enrol("n2", "v2")
	shown := func(k *Keeper) string {
		p, _ := k.Of("coord2", late, consensus.Stats{}, noon.Add(time.Minute))
		var lines []string
		for _, id := range []string{"n1", "n2"} {
			facts := p.Soft.Facts(id, noon)
			lines = append(lines, fmt.Sprintf("%s %q %t %d", id, facts.Liveness, facts.DomainsKnown, len(facts.Domains)))
		}
		return strings.Join(lines, ", ")
	}
	const first, both, neither = `n1 "up" true 1, n2 "" false 0`, `n1 "up" true 1, n2 "up" true 1`, `n1 "" false 0, n2 "" false 0`
	var k Keeper
	k.Keep(&berthv1.Heard{}, "d", noon, nil)
	if got := shown(&k); got != neither {
		t.Errorf("of a leader that may have known no node: %s", got)
	}
	k.Keep(nil, "d", noon, early)
	if got := shown(&k); got != first {
		t.Errorf("of a leader that knew the first: %s", got)
	}
	k.Keep(nil, "d", noon, nil)
	if got := shown(&k); got != first {
		t.Errorf("once it may have gone back: %s", got)
	}
	k.Keep(nil, "other", noon, late)
	if got := shown(&k); got != first {
		t.Errorf("of a leader that told something else, which is not here: %s", got)
	}
	k.Keep(nil, "d", noon, late)
	if got := shown(&k); got != both {
		t.Errorf("of a leader that knew both: %s", got)
	}
}
