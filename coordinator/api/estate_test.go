package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/api/answer"
	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

const declaredText = `format: berth/estate/v1
clusters:
  - name: default
    ram_ratio: 1.5
    node_keys:
      - {name: Premium, default: 0}
    keys:
      - {name: "#RAM", value: 0, weight: 40}
billing_entities:
  - {name: mbe, master: true}
customers:
  - {name: acme, billing_entity: mbe}
vdcs:
  - {name: prod, customer: acme}
disks:
  - {name: web-root, path: /srv/web.qcow2, format: qcow2}
nodes:
  - {name: hv1, cluster: default, keys: {Premium: 1}}
vms:
  - name: web
    vdc: prod
    memory: 2G
    vcpus: 2
    disks: [web-root]
    keys:
      - {name: Group1, value: 1, weight: -100, class: customer}
`

func (d *declarer) apply(request *berthv1.ApplyEstateRequest) ([]string, error) {
	answer, err := d.client.ApplyEstate(d.t.Context(), connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	var changes []string
	for _, change := range answer.Msg.GetChanges() {
		text := fmt.Sprintf("%s %s/%s", change.GetAction(), change.GetKind(), change.GetName())
		for _, field := range change.GetFields() {
			text += fmt.Sprintf("; %s %q %q", field.GetField(), field.GetFrom(), field.GetTo())
		}
		changes = append(changes, text)
	}
	return changes, nil
}

func TestEstate(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")

	t.Run("is compared and not changed by a dry run", func(t *testing.T) {
		before := d.index()
		changes, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(declaredText), DryRun: true})
		if err != nil || len(changes) != 7 || d.index() != before {
			t.Errorf("dry run: %q, %v, index %d -> %d", changes, err, before, d.index())
		}
	})

	t.Run("is refused as a whole with every problem", func(t *testing.T) {
		before := d.index()
		bad := strings.Replace(declaredText, "customer: acme}", "customer: nobody}", 1)
		bad = strings.Replace(bad, "keys: {Premium: 1}", "keys: {Premiun: 1}", 1)
		_, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(bad), File: "estate.yaml"})
		wantRefusal(t, err, rpc.Invalid, "estate")
		problems := rpc.Detail(err).GetProblems()
		var where []string
		for _, one := range problems {
			where = append(where, fmt.Sprintf("%s:%d %s", one.GetFile(), one.GetLine(), one.GetSubject()))
		}
		if diff := cmp.Diff([]string{"estate.yaml:14 vdc/prod", "estate.yaml:18 node/hv1"}, where); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(err.Error(), "estate.yaml:14: vdc/prod: ") || strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("in words: %v", err)
		}
		_, err = d.apply(&berthv1.ApplyEstateRequest{Document: []byte("format: berth/estate/v1\ncolours: [red]\n"), File: "estate.yaml"})
		wantRefusal(t, err, rpc.Invalid, "estate")
		if !strings.Contains(err.Error(), "estate.yaml:2: ") {
			t.Errorf("an unknown field: %v", err)
		}
		if d.index() != before {
			t.Error("something was written all the same")
		}
	})

	t.Run("is applied, and applied again changes nothing", func(t *testing.T) {
		changes, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(declaredText), RequestId: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("create vm/web", strings.SplitN(changes[5], ";", 2)[0]); diff != "" || len(changes) != 7 {
			t.Errorf("changes %q: %s", changes, diff)
		}
		snapshot := d.m.store.Snapshot()
		vm, _ := snapshot.VMByName("web")
		root, _ := snapshot.ResourceByName(model.KindDisk, "web-root")
		if !answer.UUIDText.MatchString(vm.ID) || vm.Desired != model.Stopped ||
			!slices.Equal(vm.Disks, []string{root.ID}) || vm.CreatedAt.IsZero() {
			t.Errorf("made VM %+v", vm)
		}
		if node, _ := snapshot.NodeByName("hv1"); node.Keys["Premium"] != 1 {
			t.Errorf("node keys %v", node.Keys)
		}
		if master, _ := snapshot.ResourceByName(model.KindBillingEntity, "mbe"); master.ID != "master" {
			t.Errorf("the master billing entity has the ID %q, so that there may be another one", master.ID)
		}
		before := d.index()
		if changes, err := d.apply(
			&berthv1.ApplyEstateRequest{Document: []byte(declaredText)},
		); err != nil || len(changes) != 0 || d.index() != before {
			t.Errorf("again: %q, %v", changes, err)
		}
		if changes, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(declaredText), Prune: true}); err != nil || len(changes) != 0 {
			t.Errorf("again, pruning: %q, %v", changes, err)
		}
	})

	t.Run("says what changes, field by field", func(t *testing.T) {
		changed := strings.Replace(declaredText, "ram_ratio: 1.5", "ram_ratio: 2", 1)
		changes, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(changed)})
		if diff := cmp.Diff([]string{`change cluster/default; ram_ratio "1.5" "2"`}, changes); diff != "" || err != nil {
			t.Errorf("%v: %s", err, diff)
		}
	})

	t.Run("comes out as it goes in", func(t *testing.T) {
		answer, err := d.client.ExportEstate(t.Context(), connect.NewRequest(&berthv1.ExportEstateRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		if changes, err := d.apply(&berthv1.ApplyEstateRequest{
			Document: answer.Msg.GetDocument(), Prune: true,
		}); err != nil || len(changes) != 0 {
			t.Errorf("what was exported changes %q, %v:\n%s", changes, err, answer.Msg.GetDocument())
		}
	})

	t.Run("keeps what it does not name, unless it prunes", func(t *testing.T) {
		only := "format: berth/estate/v1\nclusters:\n  - {name: default, ram_ratio: 2, node_keys: [{name: Premium}], " +
			"keys: [{name: \"#RAM\", value: 0, weight: 40}]}\ncustomers:\n  - {name: acme, billing_entity: mbe}\n" +
			"billing_entities:\n  - {name: mbe, master: true}\n"
		if changes, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(only)}); err != nil || len(changes) != 0 {
			t.Errorf("without pruning: %q, %v", changes, err)
		}
		vm, _ := d.m.store.Snapshot().VMByName("web")
		vm.Holder, vm.Epoch, vm.Desired = "n1", 1, model.Running
		d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectVM(vm)}, VMs: []model.VM{vm}})
		_, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(only), Prune: true})
		wantRefusal(t, err, rpc.Invalid, "estate")
		vm, _ = d.m.store.Snapshot().VMByName("web")
		vm.Holder, vm.Desired = "", model.Stopped
		d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectVM(vm)}, VMs: []model.VM{vm}})
		changes, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(only), Prune: true})
		if err != nil || !slices.Equal(changes, []string{"delete vm/web", "delete disk/web-root", "delete vdc/prod"}) {
			t.Errorf("pruning: %q, %v", changes, err)
		}
		if _, still := d.m.store.Snapshot().VMByName("web"); still {
			t.Error("the VM is still there")
		}
	})

	t.Run("is compared again when it changed meanwhile", func(t *testing.T) {
		race := &racing{Consensus: d.m.api.source.Consensus, before: func() {
			acme, _ := d.m.store.Snapshot().ResourceByName(model.KindCustomer, "acme")
			acme.Keys = []model.Key{{Class: model.SystemKey, Name: "TIER", Value: 1, Weight: 1}}
			d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectResource(acme)}, Resources: []model.Resource{acme}})
		}}
		d.m.api.source.Consensus = race
		defer func() { d.m.api.source.Consensus = race.Consensus }()
		_, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte("format: berth/estate/v1\nvdcs:\n  - {name: next, customer: acme}\n")})
		acme, _ := d.m.store.Snapshot().ResourceByName(model.KindCustomer, "acme")
		next, made := d.m.store.Snapshot().ResourceByName(model.KindVDC, "next")
		if err != nil || !made || next.Revision < acme.Revision || len(acme.Keys) != 1 {
			t.Errorf("applied %v, %+v after %+v", err, next, acme)
		}
	})

	t.Run("leaves a history", func(t *testing.T) {
		history := d.history()
		for _, want := range []string{
			"estate.applied estate by operator/alice: 6 created, 1 changed, 0 deleted", "vm.created vm/web by operator/alice: created: vdc: prod",
			"vm.deleted vm/web by operator/alice: forgotten", "node.set node/hv1 by operator/alice: changed: key Premium:",
		} {
			if !strings.Contains(history, want) {
				t.Errorf("the history lacks %q:\n%s", want, history)
			}
		}
	})
}

func TestAnEstateTooLargeForOneCommandSaysHowToSplitIt(t *testing.T) {
	d := newDeclarer(t)
	var text strings.Builder
	text.WriteString("format: berth/estate/v1\nvms:\n")
	xml := strings.Repeat("x", 2000)
	for i := range state.MaxCommand / 2000 {
		fmt.Fprintf(&text, "  - {name: vm%d, memory: 1G, vcpus: 1, kernel: /boot/vmlinuz, cmdline: %s}\n", i, xml)
	}
	if len(text.String()) > document.MaxDocument {
		t.Fatalf("the document has %d bytes", len(text.String()))
	}
	before := d.index()
	_, err := d.apply(&berthv1.ApplyEstateRequest{Document: []byte(text.String())})
	wantRefusal(t, err, rpc.Invalid, "estate")
	if next := rpc.Detail(err).GetNextStep(); !strings.Contains(next, "split") || d.index() != before {
		t.Errorf("next step %q", next)
	}
}

// The largest document goes into one message, and no other message of a caller may be as large.
func TestOnlyEstatesAreLarge(t *testing.T) {
	most := rpc.TraitsOf(berthv1connect.BerthServiceApplyEstateProcedure).MaxMessage()
	if most < document.MaxDocument+rpc.DefaultMessageBytes {
		t.Errorf("a message with a document may have %d bytes", most)
	}
	d := newDeclarer(t)
	_, err := d.setKey("vdc", "prod", &berthv1.Key{Name: strings.Repeat("x", rpc.DefaultMessageBytes)})
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("a key of a MiB: %v", err)
	}
}
