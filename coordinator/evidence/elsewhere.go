package evidence

import (
	"berth/coordinator/model"
)

// Of says whether a VM may be started, where no operation works on it. While a node that could run it is neither known to lack it
// nor proven to be off, it may not.
//
// A VM leaves its holder by a stop, by its end, or by a migration that somebody else has begun. So only where nobody saw its end
// every node could run it. Where its end was seen, none could; the same holds where its machine was switched off or has booted
// since, unless the machine was seen without the VM before.
func (s *Survey) Of(vm *model.VM) Answer { return s.Start(vm, "") }

// Start is Of as every start asks it, by whoever it was asked for. Refused is the ID of the node that had the VM last and takes no
// order for its epoch any more, as it has said when it was asked; empty: none has. Such a node may only not have told yet that the VM
// has left it.
func (s *Survey) Start(vm *model.VM, refused string) Answer {
	out := s.accountOf(vm)
	return s.answer(vm, refused, &out, s.everyone())
}

// Verdict is Start without the words of nodes that cannot be in the way: it need not ask all of a large site.
func (s *Survey) Verdict(vm *model.VM, refused string) Answer {
	out := s.accountOf(vm)
	return s.answer(vm, refused, &out, s.concerned(vm, &out))
}

// concerned are the nodes that may be in the way of a VM's start, by name: all, if nobody can say that no other node has it.
func (s *Survey) concerned(vm *model.VM, out *account) []*hearing {
	if s.MayShow == nil || out.asks {
		return s.everyone()
	}
	ids := append(s.MayShow(vm.ID), vm.Holder, vm.LastNode, vm.Kept)
	for _, left := range vm.Discards {
		ids = append(ids, left.Node)
	}
	return s.those(ids)
}

// answer is that of some nodes, among which are all that may be in the way.
func (s *Survey) answer(vm *model.VM, refused string, out *account, nodes []*hearing) Answer {
	a := Answer{Words: make([]Word, 0, len(nodes)), Asks: out.asks}
	for _, one := range nodes {
		word := s.word(vm, one, out)
		if refuses := word.Node == refused && word.Node == vm.LastNode && word.Node != vm.Holder; refuses && word.Standing == ShowsIt {
			word.Standing, word.InTheWay, word.Domain = LacksIt, false, nil
			word.Why, word.Next = "has said that it does not run it and takes no order for it any more", ""
		}
		if word.Standing == ShowsIt && word.Node == vm.Holder {
			a.Runs, a.Proof = true, "it runs on "+word.Name
		}
		a.Words = append(a.Words, word)
	}
	if vm.Holder != "" && s.of(vm.Holder) == nil {
		a.Words = append(a.Words, Word{
			Node: vm.Holder, Name: vm.Holder, Standing: Silent, Why: "holds it, and is no member any more", InTheWay: true,
			Next: "enrol that machine again",
		})
	}
	a.Words = append(a.Words, s.removedWords(vm)...)
	if len(a.InTheWay()) > 0 {
		return a
	}
	if out.lacks {
		a.Refuse = vm.Holder
	}
	if out.asks && out.after.IsZero() {
		a.Again = true
		return a
	}
	a.May, a.Proof, a.Booted = true, out.why, out.anew
	return a
}

// Released is a VM's record when the node that held it is off. It cannot be released while another node has it, or may have it. Where
// nobody saw how it left its holder, it is missing from then on.
func (s *Survey) Released(vm model.VM) (after model.VM, can bool) {
	answer := s.Verdict(&vm, "")
	for _, word := range answer.InTheWay() {
		if word.Standing != LeftThere { // that has its own watch
			return vm, false
		}
	}
	if s.EndUnwatched(&vm) {
		vm.Unwatched = vm.Epoch
	}
	vm.Holder, vm.Whereabouts = "", model.Whereabouts{}
	if answer.Again {
		vm.Whereabouts.Missing = s.At
	}
	return vm, true
}
