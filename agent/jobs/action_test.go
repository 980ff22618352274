package jobs

import (
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// An order that the protocol has and nobody carries out would be refused for ever.
func TestEverythingThatCanBeOrderedIsCarriedOut(t *testing.T) {
	ordered := (&berthv1.Command{}).ProtoReflect().Descriptor().Oneofs().ByName("action").Fields()
	for i := range ordered.Len() {
		name := ordered.Get(i).Name()
		if _, known := actions[name]; known != (name != "inspect") || known && actions[name].do == nil {
			t.Errorf("%s: known %t", name, known)
		}
	}
	if len(actions) != ordered.Len()-1 {
		t.Errorf("%d actions for %d messages", len(actions), ordered.Len())
	}
	if got := nameOf(&berthv1.Command{}); got != "unknown" || actionOf(&berthv1.Command{}).do != nil {
		t.Errorf("an order to do nothing is to %s", got)
	}
}
