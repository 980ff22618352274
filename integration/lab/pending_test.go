package lab

import (
	"strings"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// A size that is set of a guest that runs counts from its next start on: until then it is shown as both, and the guest can move. And a VM
// with ha on nodes that nothing could prove to be off is told at once, and goes on being told.
func TestWhatIsSetOfARunningGuestCountsAtItsNextStart(t *testing.T) {
	l := raise(t, Options{Hosts: 2, Coordinators: 1})
	ctx := t.Context()
	must := l.doing(t)
	must(starting("web", "128M")...)
	before := awaitBoot(ctx, t, l, "web", "")
	must("vm", "set", "web", "--memory", "900G")
	vm := showVM(ctx, t, l, "web")
	if vm.GetRunning().GetMemoryBytes() != 128<<20 || vm.GetSpec().GetMemoryBytes() != 900<<30 || len(vm.GetNextStart()) == 0 {
		t.Errorf("it runs with %d, its record has %d, and its next start differs by %v",
			vm.GetRunning().GetMemoryBytes(), vm.GetSpec().GetMemoryBytes(), vm.GetNextStart())
	}
	if shown := must("vm", "show", "web"); !strings.Contains(shown, "128 MiB") || !strings.Contains(shown, "900 GiB") {
		t.Errorf("shown is\n%s", shown)
	}
	var answer berthv1.GetNodeResponse
	if err := l.Ask(ctx, &answer, "node", "show", vm.GetNode()); err != nil {
		t.Fatal(err)
	}
	if promised := answer.GetNode().GetLedgers().GetPromisedUsedBytes(); promised > 1<<30 {
		t.Errorf("%d bytes of its node are promised", promised)
	}
	to := l.Hosts[0]
	if to.Name == vm.GetNode() {
		to = l.Hosts[1]
	}
	must("vm", "migrate", "web", "--to", to.Name)
	if after := awaitBoot(ctx, t, l, "web", ""); after.Boot != before.Boot {
		t.Errorf("it was at %+v, and is at %+v", before, after)
	}

	const gap = "nothing can prove that it is off"
	if said := must("vm", "set", "web", "--ha"); !strings.Contains(said, gap) {
		t.Errorf("ha is set with\n%s", said)
	}
	if shown := must("vm", "show", "web"); !strings.Contains(shown, gap) {
		t.Errorf("shown is\n%s", shown)
	}
	if status := must("status"); !strings.Contains(status, "VMs with ha (web) would wait") {
		t.Errorf("the status is\n%s", status)
	}
}
