package control

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
)

// Copy is a domain with a VM's UUID on a node.
type Copy struct {
	Node   string // ID
	Name   string // of the node
	Domain cluster.Domain
}

// Sighting is what the nodes show of a VM that nothing is being done to, at one moment.
type Sighting struct {
	Copies []Copy // of nodes that are heard and could list their domains, what is off included; by the nodes' names
	// HolderLacks tells that the VM's holder has listed its domains since it got the VM, and none of them is the VM.
	HolderLacks bool
	Holder      string   // name of the holder
	Unheard     []string // names of nodes that do not tell what they have, those left out that are proven to be off
	Astray      string   // why its disks are not where it is; empty: they are
}

// Verdict is what has become of a VM beside Berth.
type Verdict string

// What may have become of a VM beside Berth.
const (
	AsRecorded  Verdict = "as recorded"
	Undecided   Verdict = "undecided"   // what is shown does not tell, or is in the middle of something
	OutOfBand   Verdict = "out of band" // people are told; nothing is done
	StoppedHere Verdict = "stopped"     // it runs nowhere any more
	MovedAway   Verdict = "moved"       // its only copy runs on another node than the holder, who does not have it
	CameBack    Verdict = "came back"   // it is held by nobody, is to run, and its only copy does
)

// Finding is a verdict with what follows.
type Finding struct {
	Verdict   Verdict
	Condition string // of OutOfBand and StoppedHere: in words, with the next step
	Node      string // of MovedAway and CameBack: ID of the node that has it
	// Leftovers are definitions of the VM on nodes that do not have it: each would be a second VM if somebody started it.
	Leftovers []Copy
}

// Beside judges what the nodes show of a VM that no operation works on. It decides nothing by one look: whoever asks believes
// what two looks show alike.
func Beside(vm cluster.VM, seen Sighting) Finding {
	alive := living(seen.Copies)
	if vm.Holder == "" {
		return besideNobody(vm, alive)
	}
	if at := slices.IndexFunc(alive, func(c Copy) bool { return c.Node == vm.Holder }); at >= 0 {
		finding := besideHolder(vm, alive[at], seen)
		if len(alive) > 1 {
			finding = Finding{Verdict: Undecided} // somebody migrates it, or it runs twice: that has its own watch
		}
		finding.Leftovers = leftovers(vm, seen.Copies)
		return finding
	}
	return besideLackingHolder(vm, alive, seen)
}

func living(copies []Copy) []Copy {
	return slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return !c.Domain.State.Holds() })
}

// PausedOn says that a VM is paused on a node, and how it runs on.
func PausedOn(node, reason, name string) string {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	return fmt.Sprintf("paused on %s%s: 'virsh resume %s' there lets it run", node, reason, name)
}

// renamed says how a copy gets its VM's name back: libvirt gives no other name to what runs.
func (c *Copy) renamed(name string) string {
	return fmt.Sprintf("it is called %s on %s: shut it down, name it back with 'virsh domrename %s %s', and start it with 'berth vm start %s'",
		c.Domain.Name, c.Name, c.Domain.Name, name, name)
}

// takenBy says how a copy becomes the VM. One that has its epoch is followed as soon as it runs.
func (c *Copy) takenBy(vm *cluster.VM) string {
	var steps []string
	if c.Domain.State != cluster.DomainRunning {
		steps = append(steps, fmt.Sprintf("'virsh resume %s' there", c.Domain.Name))
	}
	if !c.is(vm) || vm.Desired != cluster.Running {
		steps = append(steps, fmt.Sprintf("'berth vm adopt %s'", vm.Name))
	}
	if len(steps) > 1 {
		return strings.Join(steps, " and then ") + " take it over"
	}
	return steps[0] + " takes it over"
}

// mark says whose a copy is.
func (c *Copy) mark() string {
	if !c.Domain.Managed {
		return "without Berth's mark"
	}
	return fmt.Sprintf("epoch %d", c.Domain.Epoch)
}

// is tells whether a copy is the VM: orders to its node carry that epoch, and are refused by any other copy.
func (c *Copy) is(vm *cluster.VM) bool { return c.Domain.Managed && c.Domain.Epoch == vm.Epoch }

func besideNobody(vm cluster.VM, alive []Copy) Finding {
	switch {
	case len(alive) == 0:
		return Finding{Verdict: AsRecorded}
	case len(alive) > 1:
		return alarm("it is %s, where Berth has not started it: end all but one with 'virsh destroy' there", places(alive))
	case alive[0].Domain.Name != vm.Name:
		return alarm("%s", alive[0].renamed(vm.Name))
	case alive[0].Domain.State == cluster.DomainRunning && alive[0].is(&vm) && vm.Desired == cluster.Running:
		return Finding{Verdict: CameBack, Node: alive[0].Node}
	}
	return alarm("it is %s, where Berth has not started it: %s, 'virsh destroy %s' there ends it", places(alive), alive[0].takenBy(&vm), vm.Name)
}

func besideLackingHolder(vm cluster.VM, alive []Copy, seen Sighting) Finding {
	switch {
	case !seen.HolderLacks:
		return Finding{Verdict: Undecided}
	case len(alive) > 1:
		return alarm("%s does not run it any more, and it is %s: end all but one with 'virsh destroy' there", seen.Holder, places(alive))
	case len(alive) == 1 && alive[0].Domain.Name != vm.Name:
		return alarm("%s does not run it any more, and %s", seen.Holder, alive[0].renamed(vm.Name))
	case len(alive) == 1 && alive[0].Domain.State == cluster.DomainRunning && alive[0].is(&vm):
		return Finding{Verdict: MovedAway, Node: alive[0].Node}
	case len(alive) == 1:
		return alarm("%s does not run it any more, and it is %s, not as Berth left it: %s", seen.Holder, places(alive), alive[0].takenBy(&vm))
	case len(seen.Unheard) > 0:
		return alarm("%s does not run it any more, and %s, where somebody may have moved it, cannot be asked: 'berth node list' shows why",
			seen.Holder, strings.Join(seen.Unheard, ", "))
	}
	finding := alarm("it stopped on %s, and not by Berth: 'berth vm start %s' starts it, 'berth vm stop %s' leaves it off",
		seen.Holder, vm.Name, vm.Name)
	finding.Verdict = StoppedHere
	return finding
}

// besideHolder judges a VM that is where it should be.
func besideHolder(vm cluster.VM, here Copy, seen Sighting) Finding {
	domain := &here.Domain
	switch {
	case !domain.Managed:
		return alarm("Berth's mark is not in its metadata on %s, and Berth touches nothing without it: 'berth vm adopt %s' writes it again",
			here.Name, vm.Name)
	case domain.Epoch != vm.Epoch:
		return alarm("its metadata on %s say epoch %d, and it is %d: 'berth vm adopt %s' writes a new one", here.Name, domain.Epoch, vm.Epoch, vm.Name)
	case domain.Name != vm.Name:
		return alarm("%s", here.renamed(vm.Name))
	case domain.State == cluster.DomainPaused || domain.State == cluster.DomainPausedMigration:
		return alarm("%s", PausedOn(here.Name, domain.Reason, vm.Name))
	case domain.State == cluster.DomainRunning && vm.Persistent && !domain.Persistent:
		return alarm("libvirt on %s has no definition of it any more: it runs, and Berth has what it is started with; 'virsh define' there keeps it with libvirt again",
			here.Name)
	case domain.Autostart:
		return alarm("libvirt on %s starts it when that host boots, even if it runs elsewhere by then: 'virsh autostart --disable %s' there keeps it from that",
			here.Name, vm.Name)
	case seen.Astray != "":
		return alarm("%s", seen.Astray)
	}
	return Finding{Verdict: AsRecorded}
}

// leftovers are the definitions that carry Berth's mark, on nodes other than the one that runs the VM as recorded.
func leftovers(vm cluster.VM, copies []Copy) []Copy {
	sure := slices.ContainsFunc(copies, func(c Copy) bool {
		return c.Node == vm.Holder && c.is(&vm) && c.Domain.State == cluster.DomainRunning
	})
	return slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool {
		return !sure || c.Node == vm.Holder || c.Domain.State != cluster.DomainShutoff || !c.Domain.Managed || c.Domain.Epoch > vm.Epoch
	})
}

const (
	outOfBand = "out of band: "
	runsTwice = "runs twice: "
)

func alarm(format string, args ...any) Finding {
	return Finding{Verdict: OutOfBand, Condition: outOfBand + fmt.Sprintf(format, args...)}
}

// besides tells whether a VM's condition is one that the watch beside virsh has written: only those does it take back.
func besides(condition string) bool {
	return strings.HasPrefix(condition, outOfBand) || isTwice(condition)
}

func isTwice(condition string) bool { return strings.HasPrefix(condition, runsTwice) }

// IsOutOfBand tells whether a VM's condition says that somebody has changed it beside Berth, or that it runs twice.
func IsOutOfBand(condition string) bool { return besides(condition) }

// places names where copies are, and how.
func places(copies []Copy) string {
	texts := make([]string, 0, len(copies))
	for i := range copies {
		texts = append(texts, fmt.Sprintf("%s on %s (%s)", copies[i].Domain.State, copies[i].Name, copies[i].mark()))
	}
	return strings.Join(texts, " and ")
}

// Twice judges copies of a VM of which more than one runs. Those that are not its holder's under its epoch are to be
// suspended: both memories stay, and a person decides. While a migration is under way two copies are as they should be, and
// what it comes to is judged by its own rules; it counts once that has parked it. Live is the operation that works on the VM;
// nil: none does.
func Twice(vm cluster.VM, live *operation.Operation, copies []Copy) (condition string, suspend []Copy) {
	running := slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return c.Domain.State != cluster.DomainRunning })
	if len(running) < 2 || live != nil && live.Kind == operation.Migrate && live.Result != operation.Parked {
		return "", nil
	}
	right := func(c *Copy) bool {
		if c.Node == vm.Holder && c.is(&vm) {
			return true
		}
		if live == nil || c.Node != live.Target || !c.Domain.Managed && live.Kind != operation.Adopt {
			return false
		}
		return live.Kind == operation.Adopt && vm.Holder == "" || live.Kind == operation.Start && c.Domain.Epoch == live.Epoch
	}
	holder := ""
	for i := range running {
		if right(&running[i]) {
			holder = running[i].Node
		} else {
			suspend = append(suspend, running[i])
		}
	}
	return twice(vm, live, holder, running), suspend
}

// twice says on which nodes one VM runs, and how to end it.
func twice(vm cluster.VM, live *operation.Operation, holder string, copies []Copy) string {
	var on, steps []string
	for i := range copies {
		one := &copies[i]
		mark := one.mark()
		if one.Node == holder {
			mark += ", its holder"
		}
		on = append(on, fmt.Sprintf("%s (%s)", one.Name, mark))
		var ends []string
		for j := range copies {
			if j != i {
				ends = append(ends, fmt.Sprintf("'virsh destroy %s' on %s", copies[j].Domain.Name, copies[j].Name))
			}
		}
		step := fmt.Sprintf("to keep the one on %s, %s", one.Name, strings.Join(ends, " and "))
		if one.Node != holder {
			step += fmt.Sprintf(", then 'virsh resume %s' on %s", one.Domain.Name, one.Name)
		}
		if one.Node != holder && !one.is(&vm) {
			step += fmt.Sprintf(" and 'berth vm adopt %s'", vm.Name)
		}
		steps = append(steps, step)
	}
	if live != nil && live.Result == operation.Parked {
		steps = []string{fmt.Sprintf("'berth operation resolve %s' decides which one is the VM", live.ID)}
	}
	return runsTwice + "on " + strings.Join(on, " and ") + "; what is not its holder's is suspended, and nothing is killed: " + strings.Join(steps, "; ")
}
