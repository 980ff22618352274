package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// file puts a text where the operator's machine finds it, and returns its path there.
func (s *site) file(name, text string) string {
	s.Helper()
	inside := filepath.Join("/var/tmp", name)
	s.must(os.WriteFile(s.lab.Operator.Path(inside), []byte(text), 0o600))
	return inside
}

func TestWhatDoesNotExistIsNamedWithTheWayToWhatDoes(t *testing.T) {
	s := begin(t)
	s.firmware("real", s.lab.Hosts[0])
	vm := []string{`there is no vm "ghost"`, "berth vm list"}
	node := []string{`there is no node "ghost"`, "berth node list"}
	operation := []string{`there is no operation "ghost"`, "berth operation list"}
	s.refuse(
		refusal{"show a VM", []string{"vm", "show", "ghost"}, 4, vm},
		refusal{"stop a VM", []string{"vm", "stop", "ghost"}, 4, vm},
		refusal{"migrate a VM", []string{"vm", "migrate", "ghost", "--best"}, 4, vm},
		refusal{"delete a VM", []string{"vm", "delete", "ghost", "--yes"}, 4, vm},
		refusal{"start a VM that was never described", []string{"vm", "start", "ghost"}, 4, []string{`"ghost"`, "--memory"}},
		refusal{"show a node", []string{"node", "show", "ghost"}, 4, node},
		refusal{"set a node", []string{"node", "set", "ghost", "--ram-ratio", "2"}, 4, node},
		refusal{"maintain a node", []string{"node", "maintenance", "ghost", "on"}, 4, node},
		refusal{"remove a node", []string{"node", "delete", "ghost", "--yes"}, 4, node},
		refusal{"list the VMs of a node", []string{"vm", "list", "--node", "ghost"}, 4, node},
		refusal{"start on a node", []string{"vm", "start", "new", "--memory", "64M", "--node", "ghost"}, 4, node},
		refusal{"migrate to a node", []string{"vm", "migrate", "real", "--to", "ghost"}, 4, node},
		refusal{"show an operation", []string{"operation", "show", "ghost"}, 4, operation},
		refusal{"watch an operation", []string{"operation", "watch", "ghost"}, 4, operation},
		refusal{"cancel an operation", []string{"operation", "cancel", "ghost"}, 4, operation},
		refusal{"show a decision", []string{"decision", "show", "ghost"}, 4, []string{`"ghost"`, "berth decision list"}},
		refusal{"remove a coordinator", []string{"coordinator", "delete", "ghost", "--yes"}, 4, []string{`"ghost"`, "berth coordinator list"}},
	)
}

func TestANameAndAUUIDBelongToOneVM(t *testing.T) {
	s := begin(t)
	s.firmware("taken", s.lab.Hosts[0])
	vm, _ := s.show("taken")
	domain := func(name, uuid string) string {
		return s.file(
			"domain.xml",
			fmt.Sprintf(
				`<domain type="qemu"><name>%s</name><uuid>%s</uuid><memory unit="MiB">64</memory>`+
					`<os><type>hvm</type></os></domain>`, name,
				uuid,
			),
		)
	}
	other := "8d3f0c6e-1f0e-4a53-9f4c-3c0f7c0de333"
	s.refuse(
		refusal{"a running one", []string{"vm", "start", "taken", "--memory", "64M"}, 1, []string{`"taken"`, "choose another name"}},
		refusal{"a running one, again", []string{"vm", "start", "taken"}, 1, []string{`"taken"`, "node1"}},
		refusal{"the name in XML", []string{"vm", "start", "--xml", domain("taken", other)}, 1, []string{`"taken"`}},
		refusal{"the UUID in XML", []string{"vm", "start", "--xml", domain("another", vm.GetId())}, 1, []string{vm.GetId(), "taken"}},
	)
	s.does("vm", "stop", "taken", "--force")
	s.refuse(
		refusal{"a stopped one", []string{"vm", "start", "taken", "--memory", "64M"}, 1, []string{`"taken"`, "vm delete taken"}},
	)
	s.startsAgain("taken")
}

func TestADomainOfSomebodyElseKeepsItsName(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[1]
	xml := filepath.Join(lab.SharedDir, "foreign.xml")
	s.must(os.WriteFile(host.Path(xml), []byte(s.lab.GuestXML("foreign", 128, lab.Cmdline)), 0o600))
	if _, err := host.Virsh(t.Context(), "create", xml); err != nil {
		t.Fatal(err)
	}
	// Berth does not own that name, but on this host libvirt gives it to one domain only.
	s.answers([]string{"vm", "start", "foreign", "--memory", "64M", "--node", host.Name}, 1, "foreign", "next step: ")
	if vms := s.does("vm", "list", "-o", "name"); vms != "" {
		t.Errorf("the VM that could not be started is still on record: %s", vms)
	}
	if state, err := host.Virsh(t.Context(), "domstate", "foreign"); err != nil || strings.TrimSpace(state) != "running" {
		t.Errorf("the foreign domain is %q now: %v", state, err)
	}
	if _, err := host.Virsh(t.Context(), "destroy", "foreign"); err != nil {
		t.Fatal(err)
	}
}

func TestASizeThatMakesNoSenseIsRefusedBeforeAnythingIsDone(t *testing.T) {
	s := begin(t)
	s.firmware("mover", s.lab.Hosts[0])
	start := func(flags ...string) []string { return append([]string{"vm", "start", "odd"}, flags...) }
	set := func(flags ...string) []string { return append([]string{"node", "set", "node1"}, flags...) }
	var refusals []refusal
	for _, size := range []string{"-5", "0", "lots", "999999T"} {
		refusals = append(refusals, refusal{"memory " + size, start("--memory", size), 64, []string{"usage: ", strings.TrimSuffix(size, "T")}})
	}
	for _, vcpus := range []string{"0", "-1", "100000", "two"} {
		refusals = append(
			refusals, refusal{"vcpus " + vcpus, start("--memory", "64M", "--vcpus", vcpus), 64, []string{"usage: ", "vcpus", vcpus}},
		)
	}
	for _, ratio := range []string{"0", "-1", "1e9", "NaN"} {
		refusals = append(refusals,
			refusal{"RAM ratio " + ratio, set("--ram-ratio", ratio), 64, []string{"usage: ", "ratio"}},
			refusal{"CPU ratio " + ratio, set("--cpu-ratio", ratio), 64, []string{"usage: ", "ratio"}})
	}
	refusals = append(refusals,
		refusal{"overhead", set("--overhead", "-1"), 64, []string{"usage: ", "overhead"}},
		refusal{"bandwidth", []string{"vm", "migrate", "mover", "--to", "node2", "--bandwidth", "-1M"}, 64, []string{"usage: ", "bandwidth"}},
		refusal{"grace", []string{"vm", "stop", "mover", "--grace", "-1s"}, 64, []string{"usage: ", "grace"}},
		refusal{"timeout", []string{"vm", "stop", "mover", "--timeout", "-1s"}, 64, []string{"usage: ", "timeout"}},
		refusal{"a name with a blank", []string{"vm", "start", "o dd", "--memory", "64M"}, 64, []string{"usage: ", `"o dd"`}},
		refusal{"a name with a path", []string{"vm", "start", "../odd", "--memory", "64M"}, 64, []string{"usage: ", `"../odd"`}},
		refusal{"a name without end", []string{"vm", "start", strings.Repeat("x", 65), "--memory", "64M"}, 64, []string{"usage: "}},
		refusal{"more memory than any node has", start("--memory", "1T"), 2, []string{"no node fits", "memory-promised", "1TiB"}},
	)
	s.refuse(refusals...)
}

func TestXMLThatIsNoDomainIsRefusedAndLeavesNothing(t *testing.T) {
	s := begin(t)
	domain := func(inside string) string {
		return `<domain type="qemu"><name>odd</name>` + inside + `</domain>`
	}
	const memory, system = `<memory unit="MiB">64</memory>`, `<os><type>hvm</type></os>`
	var refusals []refusal
	for i, c := range []struct{ why, text, says string }{
		{"empty", " \n", "empty"},
		{"no XML", "memory: 64M", "XML"},
		{"cut off", `<domain type="qemu"><name>odd</name>`, "line 1"},
		{"crossed", "<domain>\n<name>odd</domain>\n</name>", "line 2"},
		{"another document", `<network><name>odd</name></network>`, "network"},
		{"two documents", domain(memory+system) + domain(memory+system), "XML"},
		{"no memory", domain(system), "memory"},
		{"no memory at all", domain(`<memory unit="MiB">0</memory>` + system), "memory"},
		{"negative memory", domain(`<memory unit="MiB">-64</memory>` + system), "memory"},
		{"a unit that is none", domain(`<memory unit="furlong">64</memory>` + system), "furlong"},
		{"an entity", `<!DOCTYPE domain [<!ENTITY a "odd">]>` + domain(memory+system), "XML"},
		{"far too long", domain("<description>" + strings.Repeat("x", 1<<20) + "</description>" + memory + system), "longer than"},
		{"a name that is none", strings.Replace(domain(memory+system), "odd", "o/dd", 1), "o/dd"},
		{"a UUID that is none", domain("<uuid>1234</uuid>" + memory + system), "1234"},
	} {
		path := s.file(fmt.Sprintf("odd%d.xml", i), c.text)
		refusals = append(refusals, refusal{c.why, []string{"vm", "start", "--xml", path}, 1, []string{c.says}})
	}
	good := s.file("good.xml", domain(memory+system))
	refusals = append(refusals,
		refusal{"two names", []string{"vm", "start", "even", "--xml", good}, 1, []string{`"odd"`, `"even"`}},
		refusal{"two descriptions", []string{"vm", "start", "odd", "--memory", "64M", "--xml", good}, 64, []string{"--xml", "--memory"}},
		refusal{"no file", []string{"vm", "start", "--xml", "/var/tmp/nothing.xml"}, 1, []string{"/var/tmp/nothing.xml"}},
	)
	s.refuse(refusals...)
}

func TestWhatOnlyLibvirtCanRefuseLeavesNoVM(t *testing.T) {
	s := begin(t)
	const frame = `<domain type="qemu"><name>odd</name><memory unit="MiB">64</memory>` +
		`<os><type arch="x86_64" machine="%s">hvm</type></os><devices>%s</devices></domain>`
	for _, c := range []struct{ why, xml, says string }{
		{"an emulator that is not there", fmt.Sprintf(frame, "pc", "<emulator>/var/tmp/no-qemu</emulator>"), "/var/tmp/no-qemu"},
		{"a disk that is not there", fmt.Sprintf(frame, "pc",
			`<disk type="file" device="disk"><source file="/var/tmp/nothing.raw"/><target dev="vda" bus="virtio"/></disk>`), "/var/tmp/nothing.raw"},
	} {
		args := []string{"vm", "start", "--xml", s.file("odd.xml", c.xml)}
		s.answers(args, 1, "odd", c.says, "next step: ")
		if vms := s.does("vm", "list", "-o", "name"); vms != "" {
			t.Errorf("%s: still on record: %s", c.why, vms)
		}
		for _, host := range s.lab.Hosts {
			if left, err := host.Virsh(t.Context(), "list", "--all", "--name"); err != nil || strings.TrimSpace(left) != "" {
				t.Errorf("%s: %s has the domain %q: %v", c.why, host.Name, left, err)
			}
		}
	}
	// Networks are known before.
	odd := s.file("odd.xml", fmt.Sprintf(frame, "pc", `<interface type="network"><source network="nowhere"/></interface>`))
	s.answers([]string{"vm", "start", "--xml", odd}, 2, "network refuses 3", "no active network nowhere", "next step: ")
	// More vCPUs than the machine type has is for libvirt to know.
	args := []string{"vm", "start", "odd", "--memory", "64M", "--vcpus", "4000"}
	s.answers(args, 1, "odd", "CPUs", "next step: ")
	// The name is free.
	s.firmware("odd", s.lab.Hosts[0])
}

func TestAVMIsNotDeletedWhileItRunsNorANodeRemovedThatHoldsOne(t *testing.T) {
	s := begin(t)
	s.firmware("held", s.lab.Hosts[0])
	s.refuse(
		refusal{"a running VM", []string{"vm", "delete", "held", "--yes"}, 1, []string{`"held"`, "node1", "vm stop held"}},
		refusal{"without a yes", []string{"vm", "delete", "held"}, 64, []string{"--yes"}},
		refusal{"its node", []string{"node", "delete", "node1", "--yes"}, 1, []string{"node1", "held"}},
		refusal{"to where it is", []string{"vm", "migrate", "held", "--to", "node1"}, 1, []string{`"held"`, "node1"}},
		refusal{"to nowhere", []string{"vm", "migrate", "held"}, 64, []string{"--best", "--to"}},
	)
	s.does("node", "maintenance", "node2", "on", "--reason", "new memory")
	t.Cleanup(func() { s.must(ignore(s.lab.Berth(s.background(), "node", "maintenance", "node2", "off"))) })
	s.refuse(
		refusal{"to a node in maintenance", []string{"vm", "migrate", "held", "--to", "node2"}, 2, []string{"node2", "maintenance"}},
		refusal{
			"a new one on a node in maintenance",
			[]string{"vm", "start", "new", "--memory", "64M", "--node", "node2"},
			2,
			[]string{"node2", "maintenance"},
		},
	)
	s.does("vm", "stop", "held", "--force")
	s.refuse(
		refusal{
			"a stopped VM moves nowhere",
			[]string{"vm", "migrate", "held", "--best"},
			1,
			[]string{`"held"`, "does not run", "vm start held"},
		},
		refusal{"a stopped VM is stopped", []string{"vm", "stop", "held"}, 1, []string{`"held"`}},
	)
	if vm, _ := s.show("held"); vm.GetState() != berthv1.VMState_VM_STATE_STOPPED {
		t.Errorf("the VM is %s", vm.GetState())
	}
}
