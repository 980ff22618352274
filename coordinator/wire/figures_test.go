package wire

import (
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

// Who reads figures shows its token. So a node says at which port, and never at which machine.
func TestFiguresAreReadWhereTheNodeIs(t *testing.T) {
	for _, c := range []struct {
		uri, from string
		port      int32
		want      string
	}{
		{"qemu+tls://hv1.example.com/system", "10.0.0.1", 7425, "hv1.example.com:7425"},
		{"qemu+tls://10.0.0.1/system", "10.0.0.1", 7425, "10.0.0.1:7425"},
		{"qemu+tls://2001:db8::1/system", "2001:db8::1", 7425, "hv1:7425"},
		{"qemu+tls://[2001:db8::1]/system", "2001:db8::1", 7425, "[2001:db8::1]:7425"},
		{"qemu+tls://evil.example.org/system", "10.0.0.1", 7425, "hv1:7425"},
		{"", "", 7425, "hv1:7425"},
		{"", "", 0, ""},
		{"", "", -1, ""},
		{"", "", 65536, ""},
	} {
		node := &view.NodeView{Node: model.Node{Name: "hv1"}, Facts: model.NodeFacts{MigrationURI: c.uri, CalledFrom: c.from}}
		if got := AgentMetrics(node, &berthv1.NodeInventory{MetricsPort: c.port}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if got := MemberMetrics("coord1:7420", 7424) + MemberMetrics("coord1:7420", 0) + MemberMetrics("", 7424); got != "coord1:7424" {
		t.Errorf("of a coordinator: %q", got)
	}
}
