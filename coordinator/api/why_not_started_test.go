package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestWhyNotStarted(t *testing.T) {
	d := newDeclarer(t)
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	facts := map[string]model.NodeFacts{}
	for _, id := range []string{"n1", "n2", "n3"} {
		d.m.addNode(id, strings.Replace(id, "n", "hv", 1))
		facts[id] = model.NodeFacts{
			Liveness: model.Up, HeardAt: now, Boot: "boot-" + id, Inventory: true, DomainsKnown: true, InventoryAt: now.Add(-10 * time.Second),
		}
	}
	d.m.control.survey = func(snapshot *state.Snapshot) *evidence.Survey {
		return evidence.Proofs{}.Survey(evidence.Moment{
			Records: snapshot, At: now, Facts: func(node string) model.NodeFacts { return facts[node] },
		})
	}
	add := func(vm model.VM) {
		vm.Name, vm.CreatedAt, vm.StartedAt = "vm-"+vm.ID, now.Add(-time.Hour), now.Add(-time.Hour)
		d.m.addVM(vm)
	}
	why := func(vm string) *berthv1.WhyNotStartedResponse {
		t.Helper()
		answer, err := d.client.WhyNotStarted(t.Context(), connect.NewRequest(&berthv1.WhyNotStartedRequest{Vm: vm}))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg
	}
	said := func(answer *berthv1.WhyNotStartedResponse) string {
		var words []string
		for _, node := range answer.GetNodes() {
			words = append(words, fmt.Sprintf("%s %s %t", node.GetNode(), node.GetStanding(), node.GetInTheWay()))
		}
		return strings.Join(words, ", ")
	}

	add(model.VM{ID: "v1", Desired: model.Running, Holder: "n1", LastNode: "n1", Epoch: 2})
	add(model.VM{
		ID: "v2", Desired: model.Stopped, LastNode: "n1", Epoch: 2,
		Spec: model.VMSpec{Disks: []model.Disk{{Path: "/srv/v2.qcow2", Format: "qcow2", Bus: "virtio"}}},
	})
	add(model.VM{
		ID: "v3", Desired: model.Running, Holder: "n2", LastNode: "n2", Epoch: 2, Operation: "o1",
		Condition: model.Condition{Kind: model.OutOfBand, Text: "out of band: it is gone"},
	})
	running := facts["n1"]
	running.Domains = []model.Domain{{UUID: "v1", Name: "vm-v1", State: model.DomainRunning, Managed: true, Epoch: 2}}
	facts["n1"] = running

	if answer := why("vm-v1"); !answer.GetRuns() || answer.GetMayStart() || answer.GetProof() != "it runs on hv1" ||
		said(answer) != "hv1 shows it true, hv2 does not have it false, hv3 does not have it false" {
		t.Errorf("of one that runs: %v", answer)
	}
	if answer := why("v2"); answer.GetRuns() || !answer.GetMayStart() || answer.GetProof() == "" || answer.GetMissing() != "" {
		t.Errorf("of one that was stopped: %v", answer)
	}
	stray := facts["n3"]
	stray.Domains = []model.Domain{{
		UUID: "s1", Name: "stray", State: model.DomainRunning, Sources: []model.DiskSource{{Path: "/srv/v2.qcow2"}},
	}}
	facts["n3"] = stray
	if answer := why("v2"); answer.GetMayStart() ||
		answer.GetDiskInUse() != `domain "stray" on hv3 writes to disk /srv/v2.qcow2 of VM "vm-v2"` ||
		!strings.Contains(answer.GetDiskNextStep(), "'virsh shutdown stray' on hv3") {
		t.Errorf("of one whose disk a stray has: %v", answer)
	}
	silent := facts["n3"]
	silent.Liveness, silent.HeardAt = model.Unreachable, now.Add(-time.Hour)
	facts["n3"] = silent
	answer := why("vm-v3")
	if answer.GetMayStart() || answer.GetMissing() != "hv3 is silent for 1h0m0s" ||
		!strings.Contains(answer.GetNextStep(), "berth node fence hv3") ||
		answer.GetOperationId() != "o1" || answer.GetCondition() != "out of band: it is gone" ||
		said(answer) != "hv1 does not have it false, hv2 does not have it false, hv3 silent true" {
		t.Errorf("of one that may be on a node that is silent: %v", answer)
	}
	word := answer.GetNodes()[2]
	if !word.GetAt().AsTime().Equal(now.Add(-time.Hour)) || word.GetBoot() != "boot-n3" || word.GetNextStep() == "" {
		t.Errorf("what is known of the silent node: %v", word)
	}
	facts["n3"] = model.NodeFacts{Liveness: model.Unreachable}
	if word := why("vm-v3").GetNodes()[2]; word.GetAt() != nil || word.GetWhy() != "was never heard by this leader" {
		t.Errorf("what is known of a node that was never heard: %v", word)
	}

	facts["n3"] = model.NodeFacts{Liveness: model.Up, HeardAt: now, Inventory: true, DomainsKnown: true, InventoryAt: now}
	overlaid := model.VM{
		ID: "v4", Desired: model.Stopped, LastNode: "n1", Epoch: 2, Unwatched: 2,
		Spec: model.VMSpec{Disks: []model.Disk{{Path: "/srv/v4.qcow2", Format: "qcow2", Bus: "virtio"}}},
		Drift: &model.Drift{Node: "n1", Edits: []model.DeviceEdit{{
			Kind: "disk", Key: "vda", Was: "/srv/v4.qcow2", Is: "/srv/v4.before", Source: model.DiskSource{Path: "/srv/v4.before"}, XML: "<disk/>",
			Found: true,
		}}},
	}
	add(overlaid)
	const accept, revert = "'berth vm accept vm-v4'", "'berth vm revert vm-v4'"
	if answer := why("v4"); answer.GetMayStart() || answer.GetDiskNextStep() == "" ||
		!strings.HasPrefix(answer.GetDiskInUse(), "disk vda is /srv/v4.qcow2, and /srv/v4.before is on top of it and was written later") ||
		!strings.Contains(answer.GetDiskNextStep(), accept) || !strings.Contains(answer.GetDiskNextStep(), revert) {
		t.Errorf("of one whose disk is under a newer file: %v", answer)
	}
	overlaid.ID, overlaid.Drift = "v5", &model.Drift{Node: "n1", Edits: overlaid.Drift.Edits, Reverted: true}
	add(overlaid)
	if answer := why("v5"); !answer.GetMayStart() || answer.GetDiskInUse() != "" {
		t.Errorf("of one that somebody has decided about: %v", answer)
	}

	_, err := d.client.WhyNotStarted(t.Context(), connect.NewRequest(&berthv1.WhyNotStartedRequest{Vm: "mail"}))
	wantRefusal(t, err, rpc.NotFound, "vm/mail")
}
