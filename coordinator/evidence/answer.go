package evidence

import (
	"slices"
	"time"

	"berth/coordinator/model"
)

// Standing is what is known of a VM on one node.
type Standing string

// What may be known of a VM on a node.
const (
	ShowsIt     Standing = "shows it"         // it has the VM's memory
	LacksIt     Standing = "does not have it" // it has listed its domains
	KeepsMemory Standing = "keeps its memory" // the VM is off there, and whoever starts it there lets it run on
	LeftThere   Standing = "left there"       // a paused copy that a migration had to leave, and that is being discarded
	IsOff       Standing = "off"              // that is proven
	NotYetTold  Standing = "not yet told"     // it answers, and has not listed its domains since it mattered
	CannotTell  Standing = "cannot tell"      // it answers, and cannot list its domains
	Silent      Standing = "silent"           // it does not answer
	Contradicts Standing = "contradicts it"   // it was proven to be off, and has answered since
)

// Word is what is known of a VM on one node that could run it.
type Word struct {
	Node, Name string // its ID, and what people call it
	Standing   Standing
	Domain     *model.Domain // of ShowsIt, KeepsMemory, LeftThere and Contradicts: what it shows
	At         time.Time     // when it said so; of Silent when it was last heard; zero: never, by this leader
	Boot       string        // of the machine that said so
	Why        string        // in words
	InTheWay   bool          // as long as this is so, the VM is started nowhere else
	Next       string        // of what is in the way: what ends it
}

// Answer is whether a VM may be started, and what proves that it runs nowhere.
type Answer struct {
	May    bool
	Runs   bool   // it does, as recorded
	Proof  string // of May and Runs: what says so
	Words  []Word // of every node, by name
	Asks   bool   // nobody can say that no other node has it: all of them are asked
	Booted bool   // of May: its host has booted anew since it ran there
	Again  bool   // nothing is in the way, and nobody has seen how it left: a second look has to show the same
	Refuse string // ID of the node that has to refuse it for good before it is started elsewhere; empty: none has to
}

// Of is what is known of the VM on one node. It is empty for one that is no member and does not hold the VM.
func (a *Answer) Of(node string) Word {
	for i := range a.Words {
		if a.Words[i].Node == node {
			return a.Words[i]
		}
	}
	return Word{}
}

// InTheWay are the nodes because of which the VM is not started.
func (a *Answer) InTheWay() []Word {
	var all []Word
	for i := range a.Words {
		if a.Words[i].InTheWay {
			all = append(all, a.Words[i])
		}
	}
	return all
}

// Missing says in one sentence what is missing for a proof, and Next what ends that. Both are empty when nothing is.
func (a *Answer) Missing() (missing, next string) {
	var words, steps []string
	for _, word := range a.InTheWay() {
		words = append(words, word.Name+" "+word.Why)
		steps = append(steps, word.Next)
	}
	switch {
	case len(words) > 0:
		return SomeOf(words), steps[0]
	case a.Again:
		return "no node shows it, and nobody has seen how it left its node", "try again in some seconds: what two looks show alike is believed"
	}
	return "", ""
}

// Early tells whether all that is in the way are nodes which have not listed their domains yet. They do so within seconds.
func (a *Answer) Early() bool {
	words := a.InTheWay()
	return len(words) > 0 && !slices.ContainsFunc(words, func(word Word) bool { return word.Standing != NotYetTold })
}

// Unknown tells whether all that is in the way is what nodes do not tell. No node shows the VM.
func (a *Answer) Unknown() bool {
	for _, word := range a.InTheWay() {
		if word.Domain != nil {
			return false
		}
	}
	return true
}
