package evidence

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// word is what is known of a VM on one node, and whether it is in the way of a start.
func (s *Survey) word(vm *model.VM, one *hearing, out *account) Word {
	facts := &one.facts
	word := Word{Node: one.node.ID, Name: one.node.Name, At: facts.InventoryAt, Boot: facts.Boot}
	domain := facts.Domain(vm.ID)
	shows := domain != nil && domain.State.Holds() && !isLeft(vm, one.node.ID, domain)
	switch one.worth {
	case heard:
		s.heardWord(&word, vm, one, out, domain)
		return word
	case off:
		word.Standing, word.At = IsOff, one.node.Fencing.EndedAt
		word.Boot, word.Why = one.node.Fencing.Boot, "is proven to be off ("+one.node.Fencing.Message+")"
		if ends, keeps := one.keepsMemory(vm); keeps {
			// Services like libvirt-guests let all that was saved run on as soon as the host boots, before any agent is there.
			word.Standing, word.InTheWay = KeepsMemory, true
			word.Why += ", and keeps the VM's memory on its disk"
			word.Next = fmt.Sprintf("boot %s, and then %s", one.node.Name, ends)
		}
		return word
	case lying:
		word.Standing, word.At = Contradicts, facts.HeardAt
		word.Why = "was proven to be off, and has answered since without having booted anew"
		word.Next = fmt.Sprintf(
			"boot %s anew, or switch it off and say so with 'berth node fence %s --confirmed-off'", one.node.Name, one.node.Name,
		)
	case speechless:
		if facts.Liveness == model.Up && !facts.Inventory && !shows && listsSoon(facts, s.At) && !neverGiven(vm) {
			// It has connected a moment ago. Its first listing costs no more than seconds, and may show the VM.
			word.Standing, word.At, word.InTheWay = NotYetTold, facts.HeardAt, true
			word.Why = "has connected, and has not listed its domains yet"
			word.Next = "try again in half a minute"
			return word
		}
		word.Standing, word.At, word.Why = CannotTell, facts.HeardAt, "answers, and cannot list its domains"
		if facts.LivenessReason != "" {
			word.Why += ": " + facts.LivenessReason
		}
		word.Next = fmt.Sprintf("see 'berth node show %s' for what ails libvirt there", one.node.Name)
	default:
		word.Standing, word.At, word.Why = Silent, facts.HeardAt, s.silence(one)
		word.Next = fmt.Sprintf(
			"wait until %s answers, or prove that it is off with 'berth node fence %s' (--confirmed-off if you have seen it)", one.node.Name,
			one.node.Name,
		)
	}
	ends, kept := one.keepsMemory(vm)
	switch {
	case vm.Holder == one.node.ID:
		word.InTheWay, word.Why = true, "holds it, and "+word.Why
	case kept: // silence gives no memory up
		word.Standing, word.Domain, word.InTheWay = KeepsMemory, domain, true
		word.Why += ", and keeps the VM's memory, as it has told last"
		word.Next += "; then " + ends
	case shows && (one.worth == lying || !s.gone(vm, one) || since(domain.Since, vm)):
		// Of a node that had it the record knows more, unless the guest has begun again there since Berth started it.
		word.InTheWay, word.Domain = true, domain
	case one.worth == speechless && facts.Liveness == model.Up && vm.LastNode == one.node.ID:
		// It had it last, and has listed nothing in this session yet: its libvirt may have kept the memory meanwhile.
		word.Standing, word.InTheWay = NotYetTold, true
		word.Why, word.Next = "had it last, and has not listed its domains since it has connected", "try again in half a minute"
	case out.asks:
		word.InTheWay = shows || (!out.watched || !facts.Inventory || !facts.DomainsKnown || !facts.InventoryAt.After(out.after))
	}
	return word
}

// listsWithin is how long a leader waits for the first listing of a node. A node that connects again and again and never lists anything
// would keep every VM of the site from starting otherwise. After that it is as one that cannot list its domains.
const listsWithin = 30 * time.Second

func listsSoon(facts *model.NodeFacts, at time.Time) bool {
	return facts.MetAt.IsZero() || at.Before(facts.MetAt.Add(listsWithin))
}

// neverGiven tells that no node was ever ordered to start the VM, and that its ID was drawn here: nobody else can have begun it. The ID of
// a VM with a document may be that of a domain which somebody has defined elsewhere.
func neverGiven(vm *model.VM) bool {
	return vm.Epoch == 0 && vm.Holder == "" && vm.LastNode == "" && vm.Spec.XML == "" && vm.Whereabouts.Missing.IsZero()
}

// gone tells whether the record knows that the VM has left a node which showed it last: it had it until its end was proven, or until it
// was handed over, and has not listed its domains since.
func (s *Survey) gone(vm *model.VM, one *hearing) bool {
	handedOver := func(op operation.Operation) bool {
		return op.VM == vm.ID && op.Kind == operation.Migrate && op.Source == one.node.ID && op.Target == vm.LastNode && op.Epoch == vm.Epoch
	}
	return vm.LastNode == one.node.ID || !since(one.facts.InventoryAt, vm) && slices.ContainsFunc(s.Operations(), handedOver)
}

// AwaitDiscard is what to do while a node discards a paused copy. A libvirt whose peer went away in the middle of a migration may keep a
// domain without a process, and have every later order wait for it; a new libvirtd knows that there is no process.
func AwaitDiscard(node string) string {
	return fmt.Sprintf(
		"try again in some seconds; where it stays, the log of the agent on %[1]s says what is in the way: 'systemctl restart libvirtd' there "+
			"ends what libvirt itself cannot end, and guests run on", node,
	)
}

// heardWord completes the word of a node that lists its domains.
func (s *Survey) heardWord(word *Word, vm *model.VM, one *hearing, out *account, domain *model.Domain) {
	holds := vm.Holder == one.node.ID
	listed := one.facts.InventoryAt
	switch {
	case domain != nil && isLeft(vm, one.node.ID, domain), slices.ContainsFunc(vm.Discards, func(left model.Discard) bool {
		return left.Node == one.node.ID && (domain == nil || domain.State != model.DomainRunning)
	}):
		word.Standing, word.Domain, word.InTheWay = LeftThere, domain, true
		word.Why = "discards the paused copy first that was left there"
		word.Next = AwaitDiscard(one.node.Name)
	case domain != nil && domain.State.Holds():
		word.Standing, word.Domain, word.InTheWay = ShowsIt, domain, true
		word.Why = "shows it " + string(domain.State)
		word.Next = fmt.Sprintf(
			"take it over with 'berth vm adopt %s' if it runs there, or end it with 'virsh destroy %s' on %s",
			vm.Name, model.Argument(domain.Name), one.node.Name,
		)
		if holds {
			word.Next = fmt.Sprintf("stop it first with 'berth vm stop %s'", vm.Name)
		}
	case domain != nil && (Copy{Domain: *domain}).KeepsMemory():
		word.Standing, word.Domain, word.InTheWay = KeepsMemory, domain, true
		word.Why, word.Next = "keeps its memory", Copy{Name: one.node.Name, Domain: *domain}.endsMemory()
	case holds && !out.lacks:
		word.Standing, word.InTheWay = NotYetTold, true
		word.Why = "does not show it, and has not listed its domains since the VM came there"
		word.Next = "try again in half a minute"
	case !holds && out.asks && !out.after.IsZero() && !listed.After(out.after):
		word.Standing, word.InTheWay = NotYetTold, true
		word.Why = "has not listed its domains since the VM was last known to run elsewhere"
		word.Next = "try again in half a minute"
	default:
		word.Standing = LacksIt
		word.Why = fmt.Sprintf("listed its domains %s ago, and does not have it", lasting(s.At.Sub(listed)))
	}
}

// silence says since when a node does not answer.
func (s *Survey) silence(one *hearing) string {
	if one.facts.HeardAt.IsZero() {
		return "was never heard by this leader"
	}
	return "is silent for " + lasting(s.At.Sub(one.facts.HeardAt))
}

func lasting(d time.Duration) string { return max(d, 0).Round(time.Second).String() }
