package inventory

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// An agent may tell anything.
func TestBindingsAreBounded(t *testing.T) {
	if bindingsFrom(nil) != nil || bindingsFrom(&berthv1.Bindings{}) == nil {
		t.Error("to tell of none is not to tell nothing")
	}
	wire := &berthv1.Bindings{}
	for range 1000 {
		wire.Bindings = append(wire.Bindings, &berthv1.Binding{
			Kind: berthv1.BindingKind_BINDING_KIND_MEDIA, What: strings.Repeat("x", 5000), Name: "sda\n\x1b[2J\xff", Count: -3,
			Source: &berthv1.DiskSource{Path: "/srv/\x07x.iso"}, Since: &timestamppb.Timestamp{Seconds: 1 << 60},
		})
	}
	got := bindingsFrom(wire)
	if len(got) != model.MaxBindings {
		t.Fatalf("%d bindings", len(got))
	}
	one := got[0]
	if len(one.What) != model.MaxBindingText || one.Name != "sda??[2J?" || one.Source.Path != "something" || one.Count != 0 ||
		!one.Since.IsZero() {
		t.Errorf("it is %+v", one)
	}
	newer := bindingsFrom(&berthv1.Bindings{Bindings: []*berthv1.Binding{{Kind: 999, What: "warp"}}})
	if newer[0].Kind != model.BoundByOther {
		t.Errorf("a kind that is not known: %+v", newer)
	}
}
