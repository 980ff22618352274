package operation

import "time"

// MarkPatience is how long an operation that only changes a domain's mark waits for its node. The guest runs in any case.
const MarkPatience = 2 * time.Minute

// markOrder is the order that writes or removes a mark: for an adoption, for a release, and for a resolution that gives the
// copy which is kept a new epoch.
func (o *Operation) markOrder(at func(node string, action Action, epoch uint64) Order) Order {
	switch {
	case o.Kind == Release:
		return at(o.Source, ActRelease, o.Epoch)
	case o.Resolution == KeepSource:
		return at(o.Source, ActAdopt, o.SourceEpoch)
	default:
		return at(o.Target, ActAdopt, o.Epoch)
	}
}

// marks tells whether the operation only changes a mark.
func (o *Operation) marks() bool { return o.Kind == Adopt || o.Kind == Release }

func (t *transition) adoptAnswered(answer Answer) bool {
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false // asked again: writing a mark twice does no harm
	case OutcomeDone:
		t.noteAnswer(answer)
		if t.VM.Holder != "" && t.VM.Holder != t.Operation.Target {
			t.VM.MovedAt = t.at
		}
		t.hold(t.Operation.Target, t.Operation.Epoch)
		t.end(Done, "")
	default:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error)
	}
	return true
}

func (t *transition) releaseAnswered(answer Answer) bool {
	switch answer.Outcome {
	case OutcomeAmbiguous:
		return false
	case OutcomeDone:
		t.noteAnswer(answer)
		t.end(Done, "")
	default:
		t.noteAnswer(answer)
		t.end(Failed, answer.Error)
	}
	return true
}

// markInVain ends an adoption or a release whose node does not answer.
func (t *transition) markInVain() {
	op := &t.Operation
	if op.Kind == Adopt {
		t.end(Failed, t.name(op.Target)+" did not answer: adopt it again, whether or not the mark was written")
	} else {
		t.end(Failed, t.name(op.Source)+" did not answer: release it again, whether or not the mark was taken away")
	}
}
