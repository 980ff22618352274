package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// lookLimit is for what Berth believes after two looks, five seconds apart.
const lookLimit = 90 * time.Second

// byHand gives a test an empty lab in which it works with virsh. What it leaves on the hosts is removed at its end.
func byHand(t *testing.T) *site {
	t.Helper()
	s := begin(t)
	t.Cleanup(func() {
		for _, host := range s.lab.Hosts {
			names, err := host.Virsh(s.background(), "list", "--all", "--name")
			s.must(err)
			for _, name := range strings.Fields(names) {
				_, _ = host.Virsh(s.background(), "destroy", name) // it may be off
				_, _ = host.Virsh(s.background(), "undefine", name)
			}
		}
	})
	return s
}

// virsh does on a host what has to work, and returns what it printed.
func (s *site) virsh(host *lab.Host, args ...string) string {
	s.Helper()
	output, err := host.Virsh(s.Context(), args...)
	if err != nil {
		s.Fatalf("virsh %s on %s: %v", strings.Join(args, " "), host.Name, err)
	}
	return strings.TrimSpace(output)
}

// document puts a domain's XML where all hosts find it, and returns its path there.
func (s *site) document(name, xml string) string {
	s.Helper()
	path := filepath.Join(lab.SharedDir, name+".xml")
	s.must(os.WriteFile(s.lab.Operator.Path(path), []byte(xml), 0o600))
	return path
}

// foreign starts a domain that Berth does not know: one that libvirt keeps a definition of, or not.
func (s *site) foreign(name string, host *lab.Host, defined bool) {
	s.Helper()
	path := s.document(name, s.lab.GuestXML(name, 128, lab.Cmdline))
	if !defined {
		s.virsh(host, "create", path)
		return
	}
	s.virsh(host, "define", path)
	s.virsh(host, "start", name)
}

// qemu is the process of a guest, of which this host has one.
func (s *site) qemu(name string, host *lab.Host) int {
	s.Helper()
	for _, guest := range host.QEMUs() {
		if guest.Name == name {
			return guest.PID
		}
	}
	s.Fatalf("%s has no process of %s", host.Name, name)
	return 0
}

// condition waits until the VM's condition has all of these words, and returns it.
func (s *site) condition(name string, words ...string) string {
	s.Helper()
	var condition string
	s.within(lookLimit, fmt.Sprintf("the condition of %s says %q", name, words), func() error {
		var answer berthv1.GetVMResponse
		if err := s.lab.Ask(s.Context(), &answer, "vm", "show", name); err != nil {
			return err
		}
		condition = answer.GetVm().GetCondition()
		for _, word := range words {
			if !strings.Contains(condition, word) {
				return fmt.Errorf("it is %q, the VM is %s", condition, answer.GetVm().GetState())
			}
		}
		return nil
	})
	return condition
}

// recovers waits until the VM is in this state, and nothing is unusual about it.
func (s *site) recovers(name string, state berthv1.VMState) *berthv1.VM {
	s.Helper()
	var answer berthv1.GetVMResponse
	s.within(lookLimit, fmt.Sprintf("%s is %s, as it should be", name, state), func() error {
		answer.Reset()
		if err := s.lab.Ask(s.Context(), &answer, "vm", "show", name); err != nil {
			return err
		}
		if vm := answer.GetVm(); vm.GetState() != state || vm.GetCondition() != "" || vm.GetOperationId() != "" {
			return fmt.Errorf("it is %s: %q", vm.GetState(), vm.GetCondition())
		}
		return nil
	})
	return answer.GetVm()
}

// quoted are the commands that a text names, with the node that it says of them: 'virsh destroy web' on node1.
var quoted = regexp.MustCompile(`'((?:virsh|berth) [^']+)'(?: on (node\d+))?`)

// follows does, one after the other, the commands that a text names, as a person who reads it would: those of virsh on the
// node it says, or on this one. What Berth refuses because it has not seen the last step yet is done again.
func (s *site) follows(text string, there *lab.Host) {
	s.Helper()
	commands := quoted.FindAllStringSubmatch(text, -1)
	if len(commands) == 0 {
		s.Fatalf("no command is named: %s", text)
	}
	for _, command := range commands {
		words := strings.Fields(command[1])
		if words[0] == "virsh" {
			on := there
			for _, host := range s.lab.Hosts {
				if host.Name == command[2] {
					on = host
				}
			}
			s.virsh(on, words[1:]...)
			continue
		}
		s.within(lookLimit, command[1]+" works", func() error {
			if result := s.berth(words[1:]...); result.Code != 0 {
				return errors.New(result.Stdout + result.Stderr)
			}
			return nil
		})
	}
}

// part is a piece of a text between two others.
func (s *site) part(text, after, before string) string {
	s.Helper()
	_, rest, found := strings.Cut(text, after)
	if !found {
		s.Fatalf("it does not say %q: %s", after, text)
	}
	piece, _, _ := strings.Cut(rest, before)
	return piece
}

// What somebody does to VMs with virsh is followed where it can be, and told where it cannot; what is told to do about it
// does help.
func TestWhatIsDoneWithVirshIsFollowedOrTold(t *testing.T) {
	s := byHand(t)
	here, there := s.lab.Hosts[0], s.lab.Hosts[1]
	before := s.guest("moved", here)
	var starts []*running
	for _, name := range []string{"destroyed", "halted", "paused", "unmarked", "raised"} {
		starts = append(starts, s.starts("vm", "start", name, "--memory", "64M", "--node", here.Name))
	}
	for _, name := range []string{"undefined", "renamed", "restarted"} {
		s.foreign(name, here, true)
	}
	for _, start := range starts {
		start.ends(0)
	}
	for _, name := range []string{"undefined", "renamed", "restarted"} {
		s.follows(fmt.Sprintf("'berth vm adopt %s'", name), here)
	}
	epoch := func(name string) uint64 {
		vm, _ := s.show(name)
		return vm.GetEpoch()
	}
	marks := epoch("moved")
	const uri = "https://berth.dev/domain/1"

	for _, name := range []string{"destroyed", "halted", "restarted"} {
		s.virsh(here, "destroy", name)
	}
	s.virsh(here, "suspend", "paused")
	s.virsh(here, "undefine", "undefined")
	s.virsh(here, "metadata", "unmarked", "--uri", uri, "--remove", "--live")
	s.virsh(here, "metadata", "raised", "--uri", uri, "--key", "berth", "--set", `<vm epoch="77" operation="x" node="y"/>`, "--live")
	s.virsh(here, "destroy", "renamed")
	s.virsh(here, "domrename", "renamed", "other")
	s.virsh(here, "start", "other")
	s.virsh(here, "migrate", "--live", "--p2p", "--tls", "moved", "qemu+tls://"+there.Name+"/system")

	stopped := "somebody has ended it on node1 with virsh destroy or the like: "
	told := map[string]string{}
	for name, words := range map[string][]string{
		"destroyed": {stopped}, "halted": {stopped}, "restarted": {stopped},
		"paused":    {"paused on node1 (user): 'berth vm resume paused' lets it run"},
		"undefined": {"libvirt on node1 has no definition of it any more", "'virsh define'"},
		"unmarked":  {"Berth's mark is not in its metadata on node1", "'berth vm adopt unmarked'"},
		"raised":    {"its metadata on node1 say epoch 77", "'berth vm adopt raised'"},
		"renamed":   {"it is called other on node1", "'virsh domrename other renamed'"},
	} {
		told[name] = s.condition(name, words...)
	}
	s.within(lookLimit, "the status tells of them all", func() error { // a condition says more when more is known
		status := s.does("status")
		for name := range told {
			vm, _ := s.show(name)
			told[name] = vm.GetCondition()
			if !strings.Contains(status, "VM "+name+": ") || !strings.Contains(status, strings.TrimPrefix(told[name], "out of band: ")) {
				return fmt.Errorf("it does not tell of %s (%q):\n%s", name, told[name], status)
			}
		}
		return nil
	})
	// It was moved, and nothing more: Berth knows where, under another epoch, and can go on with it.
	s.runsOnce("moved", there)
	if vm := s.recovers("moved", berthv1.VMState_VM_STATE_RUNNING); vm.GetNode() != there.Name || vm.GetEpoch() <= marks {
		t.Errorf("it is on %s under epoch %d, and had %d", vm.GetNode(), vm.GetEpoch(), marks)
	}
	s.sameGuest("moved", there, before)
	s.does("vm", "migrate", "moved", "--to", here.Name)
	s.sameGuest("moved", here, before)

	s.follows(s.part(told["destroyed"], "or the like: ", ","), here)
	s.follows(s.part(told["halted"], "starts it, ", "\n"), here)
	s.virsh(here, "start", "restarted")
	s.follows(s.part(told["paused"], ": ", "\n"), here)
	s.virsh(here, "define", s.document("again", s.virsh(here, "dumpxml", "--migratable", "undefined")))
	s.follows(told["unmarked"], here)
	s.follows(told["raised"], here)
	s.virsh(here, "destroy", "other")
	s.follows(told["renamed"], here)

	s.recovers("halted", berthv1.VMState_VM_STATE_STOPPED)
	for _, name := range []string{"destroyed", "restarted", "paused", "undefined", "unmarked", "raised", "renamed"} {
		s.recovers(name, berthv1.VMState_VM_STATE_RUNNING)
	}
	if after := epoch("restarted"); after != 2 {
		t.Errorf("what somebody has started again has epoch %d, want 2", after)
	}
	if after := epoch("raised"); after <= 77 {
		t.Errorf("the epoch that somebody has raised to 77 is %d", after)
	}
}
