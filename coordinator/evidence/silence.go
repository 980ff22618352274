package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
)

// Silence is what is known of a node when it is decided whether to prove that it is off. All times are spans, by a clock that
// only runs forward: no jump of a clock makes a node look dead.
type Silence struct {
	Node     model.Node
	Liveness model.Liveness
	Silent   time.Duration // since this leader has heard anything of it, or has begun to lead
	After    time.Duration // that it may be silent, by its cluster
	HA       []string      // names of the VMs that it holds and that are to be highly available, ascending
	Waiting  int           // live operations of such VMs that it works on
	Missing  []string      // names of such VMs that it may have, because nobody has seen how they left their nodes, ascending

	// A node that answers is fenced too where its cluster says so, once it has said for long enough that it is of no use.
	Sick      time.Duration // since it says so, or this leader leads
	SickAfter time.Duration // that it may, by its cluster; 0: for ever
	SickWhy   string

	Domain string        // the rack or pod that it fails with; empty: none is declared
	OffFor time.Duration // since it was proven off

	Other   string        // why its device switches another machine, as it says itself
	Mend    string        // what is to be done about that
	Check   bool          // its device is being asked which machine it switches
	Useless string        // why its device would prove nothing, as was seen when it was asked last
	Struck  string        // name of a node that its device has perhaps switched off in its place
	Asking  bool          // its device is being asked, by this leader
	Left    time.Duration // that the call of an earlier leader may still take
	Rest    time.Duration // until its device is asked again, after it has given no proof
	Guarded bool          // something needs its watchdog, and it was not told to disarm it since
	Leases  bool          // this leader has given it one
	Leased  time.Duration // since this leader has given it a lease, or has begun to lead: any earlier lease is older
}

// FenceAct is what follows for a silent node.
type FenceAct string

// What can follow. With none, nothing is to be said of the node.
const (
	FenceNothing FenceAct = ""
	FenceAsk     FenceAct = "ask"   // its device
	FenceProven  FenceAct = "prove" // its watchdog has fired: it is off, or was
	FenceWait    FenceAct = "wait"  // it will be decided by and by
	FenceHeld    FenceAct = "held"  // nothing happens until somebody does something
)

// FenceVerdict is what follows for one silent node, and in words why, and what somebody can do.
type FenceVerdict struct {
	Node string // ID
	Act  FenceAct
	Why  string
	Next string // of FenceHeld, and where a device gave no proof
}

// Bounds of fencing without anybody's word (FAULTS.md, fault 23).
const (
	FenceGrace     = time.Minute      // after a leadership has begun
	LeaseDuration  = time.Minute      // that a node with a watchdog is kept alive by one lease
	WatchdogMargin = 10 * time.Second // beyond the lease and the watchdog's time, for clocks that run apart
)

// Fencing decides which silent nodes are to be proven off. Leading is since when this leader leads; nodes are all nodes.
// Silence is not death, and neither are any of these reasons: what it leads to is only that a device is asked. A node is
// looked at if VMs that are to be highly available wait for that: because it holds them, because it may have them, or because an
// operation of theirs waits. Nobody has asked for the power to be cut for other VMs.
func Fencing(leading time.Duration, nodes []Silence) []FenceVerdict {
	var all Fleet
	for i := range nodes {
		all.Count(&nodes[i])
	}
	return all.Fencing(leading, nodes)
}

// Count takes a node in as it is, in place of what it was.
func (f *Fleet) Count(one *Silence) {
	f.Forget(one.Node.ID)
	if !one.counts() {
		return
	}
	gone := one.Liveness == model.Unreachable
	f.add(one.Node.ID, counted{domain: one.Domain, silent: gone || one.Liveness == model.Suspect || one.ails(), long: gone})
}

// Fencing is the same where all nodes were counted before. Some are those of them that are not heard, or say that they are of no use:
// nothing follows for any other.
func (f *Fleet) Fencing(leading time.Duration, some []Silence) []FenceVerdict {
	mass := f.masses()
	var verdicts []FenceVerdict
	for i := range some {
		one := &some[i]
		waited := len(one.HA) > 0 || one.Waiting > 0 || len(one.Missing) > 0
		silent := one.Liveness == model.Unreachable && one.Silent >= one.After && waited
		if one.Node.Fenced() || !silent && !one.sick() {
			continue
		}
		verdict := one.verdict(leading, mass)
		verdict.Node = one.Node.ID
		verdicts = append(verdicts, verdict)
	}
	return verdicts
}

// ails tells that a node answers and says that it is of no use, where that may have it fenced. Such nodes count as silent ones do: storage
// that is gone for many of them is no reason to switch any of them off.
func (s *Silence) ails() bool { return s.Liveness == model.Degraded && s.SickAfter > 0 && s.Sick > 0 }

// sick tells that it has done so for too long, and has VMs that are to be highly available.
func (s *Silence) sick() bool { return s.ails() && s.Sick >= s.SickAfter && len(s.HA) > 0 }

// counts tells whether a node is one of those that are counted: not in maintenance, and nobody has seen it to be off.
func (s *Silence) counts() bool {
	if s.Node.Maintenance {
		return false
	}
	return !s.Node.Fenced() || s.Node.Fencing.Method != model.FenceManual && s.OffFor < FencedCounts
}

// rackOff says how a person's word is given for a whole failure domain.
func (s *Silence) rackOff() string {
	if s.Node.Rack() != s.Domain {
		return SeenOff(s.Node.Name) + ", and so for each of its nodes"
	}
	return fmt.Sprintf("if its machines are off, say so with 'berth node fence --label %s --confirmed-off'", s.Domain)
}

func (s *Silence) verdict(leading time.Duration, mass masses) FenceVerdict {
	name := s.Node.Name
	byHand := SeenOff(name)
	held := func(next, format string, args ...any) FenceVerdict {
		return FenceVerdict{Act: FenceHeld, Why: fmt.Sprintf(format, args...), Next: next}
	}
	wait := func(left time.Duration, format string, args ...any) FenceVerdict {
		return FenceVerdict{Act: FenceWait, Why: fmt.Sprintf(format, args...) + fmt.Sprintf(", for another %s", left.Round(time.Second))}
	}
	method := s.Node.Fence.Method
	switch {
	case s.Asking:
		return FenceVerdict{Act: FenceWait, Why: "its fence device is being asked"}
	case s.Node.Held():
		return held(s.Node.HeldNext()+"; "+byHand, "two machines say that they are it, and a device would switch off one of them")
	case s.Node.Maintenance:
		return held(byHand, "it is in maintenance")
	}
	if why, next := s.deviceless(); why != "" {
		if next != "" {
			next = "; " + next
		}
		return held(byHand+next, "%s", why)
	}
	switch {
	case mass.all != "":
		return held("look at the network between coordinators and nodes first; "+byHand, "%s", mass.all)
	case mass.rack != "" && s.Domain == mass.dark:
		return held("look at its power and its network first; "+s.rackOff(), "%s", mass.rack)
	case leading < FenceGrace:
		return wait(FenceGrace-leading, "this coordinator leads since a moment, and nodes may still come")
	case method == model.FenceWatchdog && s.sick():
		return held(fmt.Sprintf("switch it off by hand, then say so with 'berth node fence %s --confirmed-off'", name),
			"it is sick (%s), and its watchdog resets it only when its agent ends", s.SickWhy)
	case method == model.FenceWatchdog && s.Node.Watchdog == 0:
		return held(byHand, "its watchdog was not armed")
	case method == model.FenceWatchdog:
		if left := LeaseDuration + s.Node.Watchdog + WatchdogMargin - s.Leased; left > 0 {
			return wait(left, "its watchdog has time to reset it")
		}
		return FenceVerdict{
			Act: FenceProven,
			Why: fmt.Sprintf("its watchdog has fired: its last lease ended %s ago", (s.Leased - LeaseDuration).Round(time.Second)),
		}
	case s.Left > 0:
		return wait(s.Left, "an earlier leader may still be asking its device")
	case s.Check:
		return FenceVerdict{Act: FenceWait, Why: "its device is being asked which machine it switches"}
	case s.Rest > 0:
		verdict := wait(s.Rest, "its device gave no proof (%s), and is asked again", s.Node.Fencing.Message)
		verdict.Next = byHand
		return verdict
	}
	why := waiting(s.HA, s.Waiting, s.Missing)
	if s.sick() {
		why = fmt.Sprintf("it is sick for %s (%s), and %s", s.Sick.Round(time.Second), s.SickWhy, why)
	}
	return FenceVerdict{Act: FenceAsk, Why: why}
}

// deviceless says why no device is asked, and what ends that; empty: one would be.
func (s *Silence) deviceless() (why, next string) {
	switch method := s.Node.Fence.Method; {
	case method == model.FenceNone:
		return "nothing can prove that it is off", fmt.Sprintf("'berth node set %s --fence METHOD' names a device that proves it", s.Node.Name)
	case method == model.FenceManual:
		return "only somebody's word proves that it is off", ""
	case method == model.FenceCommand && s.Other != "":
		return s.Other, s.Mend
	case method == model.FenceCommand && s.Struck != "":
		return WrongMachine(s.Struck), RightDevice(s.Node.Name)
	}
	return "", ""
}

// Unprovable says why nothing but somebody's word would prove that a node is off if it fell silent now, and what ends that. Empty:
// something would, as far as is known.
func (s *Silence) Unprovable() (why, next string) {
	if why, next := s.deviceless(); why != "" {
		return why, next
	}
	switch method := s.Node.Fence.Method; {
	case method == model.FenceCommand && s.Useless != "":
		return "its fence device " + s.Useless, fmt.Sprintf("mend it, then try it with 'berth node fence %s --check'", s.Node.Name)
	case method == model.FenceWatchdog && s.Node.Watchdog == 0:
		return "its watchdog is not armed", "if that lasts for a minute, 'berth-agent doctor' on " + s.Node.Name + " says why"
	}
	return "", ""
}

// WrongMachine says why a device is not asked again.
func WrongMachine(struck string) string {
	return "its fence device has perhaps switched off " + struck + " in its place, which fell silent at that moment"
}

// RightDevice says how a wrong address is found and mended.
func RightDevice(node string) string {
	return "compare the addresses of both fence devices with the machines, and set the right one with 'berth node set " + node +
		" --fence command'"
}

// SeenOff says how a person's word is given.
func SeenOff(node string) string {
	return fmt.Sprintf("if the machine is off, say so with 'berth node fence %s --confirmed-off'", node)
}

// waiting says what waits for the proof that a node is off.
func waiting(ha []string, operations int, missing []string) string {
	var parts []string
	switch len(ha) {
	case 0:
	case 1:
		parts = append(parts, "VM "+ha[0]+" is to be highly available")
	default:
		parts = append(parts, fmt.Sprintf("%d VMs are to be highly available (%s)", len(ha), SomeOf(ha)))
	}
	switch operations {
	case 0:
	case 1:
		parts = append(parts, "1 operation waits for it")
	default:
		parts = append(parts, fmt.Sprintf("%d operations wait for it", operations))
	}
	if len(missing) > 0 {
		parts = append(parts, "nobody knows whether it runs "+SomeOf(missing))
	}
	return strings.Join(parts, ", ")
}

// SomeOf names some of them.
func SomeOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}

// HighlyAvailable names those of some VMs that are to run and to be highly available, ascending.
func HighlyAvailable(vms []model.VM) []string {
	var names []string
	for i := range vms {
		if vms[i].Guarded() && vms[i].Desired == model.Running {
			names = append(names, vms[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
