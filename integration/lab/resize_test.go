package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// The memory and the vCPUs of a guest change while it runs: libvirt shows it, it moves and starts again with them, and nobody takes it for
// a change beside Berth.
func TestTheSizeChangesWhileAGuestRuns(t *testing.T) {
	l := raise(t, Options{Hosts: 2, Coordinators: 1})
	ctx := t.Context()
	must := l.doing(t)
	must(starting("web", "160M", "--max-memory", "256M", "--max-vcpus", "2")...)
	l.awaitSize(t, "web", 160, 1)
	before := awaitBoot(ctx, t, l, "web", "")

	if said := must("vm", "set", "web", "--memory", "192M", "--vcpus", "2", "--now", "--dry-run"); !strings.Contains(said, "would be set on") {
		t.Errorf("a dry run says %q", said)
	}
	t.Log(must("vm", "set", "web", "--memory", "192M", "--vcpus", "2", "--now"))
	l.awaitSize(t, "web", 192, 2)
	said, err := l.Berth(ctx, "vm", "set", "web", "--memory", "300M", "--now")
	if err == nil || !strings.Contains(said+err.Error(), "256 MiB") {
		t.Errorf("it got more than it was started with: %v\n%s", err, said)
	}
	time.Sleep(12 * time.Second) // two looks at what others have changed
	vm := showVM(ctx, t, l, "web")
	if vm.GetConditionKind() == berthv1.ConditionKind_CONDITION_KIND_OUT_OF_BAND || len(vm.GetNextStart()) > 0 ||
		len(vm.GetChangedLive()) != 2 ||
		vm.GetRunning().GetMemoryBytes() != 192<<20 || vm.GetSpec().GetMemoryBytes() != 192<<20 || vm.GetRunning().GetVcpus() != 2 {
		t.Errorf("it is shown as %v", vm)
	}
	to := l.Hosts[0]
	if to.Name == vm.GetNode() {
		to = l.Hosts[1]
	}
	must("vm", "migrate", "web", "--to", to.Name)
	l.awaitSize(t, "web", 192, 2)
	must("vm", "set", "web", "--memory", "224M", "--now")
	l.awaitSize(t, "web", 224, 2)
	if after := awaitBoot(ctx, t, l, "web", ""); after.Boot != before.Boot {
		t.Errorf("it was at %+v, and is at %+v", before, after)
	}
	must("vm", "stop", "web", "--force")
	must("vm", "set", "web", "--memory", "160M", "--now")
	must("vm", "start", "web")
	l.awaitSize(t, "web", 160, 2)
	awaitBoot(ctx, t, l, "web", before.Boot)
}

// holder is the host that has a guest.
func (l *Lab) holder(t *testing.T, guest string) *Host {
	t.Helper()
	node := showVM(t.Context(), t, l, guest).GetNode()
	host, err := l.Host(node)
	if err != nil {
		t.Fatalf("%s is on %q: %v", guest, node, err)
	}
	return host
}

// awaitSize waits until libvirt shows a guest with so many MiB and vCPUs.
func (l *Lab) awaitSize(t *testing.T, guest string, mib, vcpus int) {
	t.Helper()
	host := l.holder(t, guest)
	wanted := []string{fmt.Sprint("Used memory:", mib<<10, "KiB"), fmt.Sprint("CPU(s):", vcpus)}
	err := await(t.Context(), fmt.Sprintf("%s to have %d MiB and %d vCPUs", guest, mib, vcpus), time.Minute, func() (bool, error) {
		text, err := host.Virsh(t.Context(), "dominfo", guest)
		if err != nil {
			return false, err
		}
		squeezed := strings.ReplaceAll(text, " ", "")
		for _, one := range wanted {
			if !strings.Contains(squeezed, strings.ReplaceAll(one, " ", "")) {
				return false, fmt.Errorf("it has\n%s", text)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
