package hypervisor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/agent/hypervisor"
)

// What is read only, shared by its owner's wish, or removable is no reason to start nobody else.
func TestWhatADomainWritesTo(t *testing.T) {
	disk := func(attributes, inside string) string {
		return fmt.Sprintf("<disk type='file' %s><source file='/srv/x'/><target dev='vda'/>%s</disk>", attributes, inside)
	}
	volume := "<disk type='volume'><source pool='fast' volume='v'/><target dev='vdb'/></disk>"
	for _, tc := range []struct {
		disks string
		want  []hypervisor.Source
	}{
		{disk("device='disk'", "") + volume, []hypervisor.Source{{Path: "/srv/x"}, {Pool: "fast", Volume: "v"}}},
		{disk("", ""), []hypervisor.Source{{Path: "/srv/x"}}},
		{disk("device='cdrom'", "") + disk("", "<readonly/>") + disk("", "<shareable/>"), nil},
		{strings.Replace(disk("", ""), "/srv/x", "/"+strings.Repeat("x", 2000), 1), nil},
	} {
		attached, err := hypervisor.AttachedIn("<domain type='kvm'><devices>" + tc.disks + "</devices></domain>")
		if err != nil || !slices.Equal(attached.Written, tc.want) {
			t.Errorf("%s: %v, %v", tc.disks, attached.Written, err)
		}
	}
	many, err := hypervisor.AttachedIn("<domain><devices>" + strings.Repeat(disk("", ""), 100) + "</devices></domain>")
	if err != nil || len(many.Written) != hypervisor.MaxSources || len(many.Devices) != 100 {
		t.Errorf("of many: %d written to, %d devices, %v", len(many.Written), len(many.Devices), err)
	}
}
