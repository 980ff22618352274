package inventory

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// What a machine says that may not be the node counts like the word of a node whose libvirt cannot be asked: not as absence.
func TestADoubtedMachineIsNotBelieved(t *testing.T) {
	s := New(time.Now, hclog.NewNullLogger())
	s.Doubt = func(node string, machine model.Machine) string {
		if machine != (model.Machine{Hardware: "aaaa", Source: model.HardwareProduct, Boot: "b1"}) {
			return "two machines say that they are " + node
		}
		return ""
	}
	speaks := func(hardware, incarnation string) model.NodeFacts {
		t.Helper()
		session, err := s.OpenSession("n1", &berthv1.Hello{
			Incarnation: incarnation, Hardware: hardware, HardwareSource: model.HardwareProduct,
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30},
		}}})
		return s.Facts("n1", time.Now())
	}
	if facts := speaks("aaaa", "b1/1"); facts.Liveness != model.Up || !facts.DomainsKnown || facts.Hardware != "aaaa" {
		t.Errorf("the node itself: %+v", facts)
	}
	facts := speaks("bbbb", "b9/1")
	if facts.Liveness != model.Degraded || facts.DomainsKnown || facts.LivenessReason != "two machines say that they are n1" {
		t.Errorf("the other one: %+v", facts)
	}
}
