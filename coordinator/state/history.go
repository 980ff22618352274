package state

import (
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// History is what is done at one moment, and what was done: operations, plans, decisions and events. What is old is dropped.
type History struct{ tables }

// Operations are all operations that are still kept, newest first.
func (h History) Operations() []operation.Operation {
	return last(h.tables, string(Operations), byAge, 0, cloneOperation)
}

// Operation is the operation with this ID.
func (h History) Operation(id string) (operation.Operation, bool) {
	return one(h.tables, string(Operations), byID, id, cloneOperation)
}

// LiveOperations are the operations that have not ended, by VM ID. There is at most one for each VM.
func (h History) LiveOperations() []operation.Operation {
	return list(h.tables, string(Operations), byLiveVM, "", cloneOperation)
}

// Reservations are the room that live operations hold, by VM ID. Nobody changes their volumes.
func (h History) Reservations() []model.Reservation {
	var reservations []model.Reservation
	for op := range each[operation.Operation](h.tables, string(Operations), byLiveVM, "") {
		if held, holds := op.Reservation(); holds {
			reservations = append(reservations, held)
		}
	}
	return reservations
}

// StartsOn is how many starts the node with this ID works on, and the IDs of those that wait for their turn there, in the
// order in which they came.
func (h History) StartsOn(node string) (working int, queue []string) {
	if node == "" {
		return 0, nil
	}
	for op := range each[operation.Operation](h.tables, string(Operations), byStart, text(node)) {
		if op.Phase == operation.Queued {
			queue = append(queue, op.ID)
		} else {
			working++
		}
	}
	return working, queue
}

// LiveOperationOf is the operation that works on this VM, if there is one.
func (h History) LiveOperationOf(vm string) (operation.Operation, bool) {
	return one(h.tables, string(Operations), byLiveVM, vm, cloneOperation)
}

// OperationByRequest is the newest operation that was made by this request, named by its idempotency key.
func (h History) OperationByRequest(request string) (operation.Operation, bool) {
	if request == "" || strings.ContainsRune(request, 0) {
		return operation.Operation{}, false
	}
	made := list(h.tables, string(Operations), byRequest, text(request), cloneOperation)
	return newest(made, func(o *operation.Operation) time.Time { return o.CreatedAt })
}

// newest is the first of those that were made last; false if there is none.
func newest[T any](made []T, at func(*T) time.Time) (T, bool) {
	var found T
	for i := range made {
		if i == 0 || at(&made[i]).After(at(&found)) {
			found = made[i]
		}
	}
	return found, len(made) > 0
}

// OperationsOfPlan are the operations that carry the plan with this ID out, newest first.
func (h History) OperationsOfPlan(plan string) []operation.Operation {
	if plan == "" || strings.ContainsRune(plan, 0) {
		return nil
	}
	found := list(h.tables, string(Operations), byPlan, text(plan), cloneOperation)
	slices.Reverse(found)
	return found
}

// Plans are all plans that are still kept, newest first.
func (h History) Plans() []model.Plan { return last(h.tables, string(Plans), byAge, 0, clonePlan) }

// Plan is the plan with this ID.
func (h History) Plan(id string) (model.Plan, bool) {
	return one(h.tables, string(Plans), byID, id, clonePlan)
}

// SharedPlan is the plan with this ID, nil if there is none. Nobody changes it.
func (h History) SharedPlan(id string) *model.Plan {
	plan, _ := get[model.Plan](h.tables, string(Plans), id)
	return plan
}

// LivePlans are the plans that are proposed or running, oldest first.
func (h History) LivePlans() []model.Plan {
	return list(h.tables, string(Plans), byLive, "", clonePlan)
}

// SharedPlans walks all plans that are still kept, newest first. They are the state's own, and nobody changes them.
func (h History) SharedPlans() iter.Seq[*model.Plan] {
	return backwards[model.Plan](h.tables, string(Plans), byAge)
}

// SharedLivePlans walks the plans that are proposed or running, oldest first. Nobody changes them.
func (h History) SharedLivePlans() iter.Seq[*model.Plan] {
	return each[model.Plan](h.tables, string(Plans), byLive, "")
}

// PlanByRequest is the newest plan that was made by this request, named by its idempotency key.
func (h History) PlanByRequest(request string) (model.Plan, bool) {
	if request == "" || strings.ContainsRune(request, 0) {
		return model.Plan{}, false
	}
	return newest(list(h.tables, string(Plans), byRequest, text(request), clonePlan), func(p *model.Plan) time.Time { return p.CreatedAt })
}

// Decisions are the last decisions, newest first. A limit of 0 or less means all that are kept.
func (h History) Decisions(limit int) []placement.Decision {
	return last(h.tables, string(Decisions), byAge, limit, cloneDecision)
}

// DecisionsAbout are the last decisions whose request is wanted, newest first, at most limit of them; 0 or less means all
// that are kept. After is the ID of a decision: only those before it are meant, and none if it is no longer kept, because
// the oldest go first. The request is only to be looked at. Others are not copied: a decision keeps the figures of many nodes.
func (h History) DecisionsAbout(limit int, after string, wanted func(*placement.Request) bool) []placement.Decision {
	kept := backwards[decisionRow](h.tables, string(Decisions), byAge)
	return take(func(yield func(*decisionRow) bool) {
		begun := after == ""
		for row := range kept {
			if !begun {
				begun = row.Decision.ID == after
				continue
			}
			if wanted(&row.Decision.Request) && !yield(row) {
				return
			}
		}
	}, limit, cloneDecision)
}

// DecisionsSince walks the decisions of commands after this Raft index, oldest first, with the index of each. They are the state's own,
// and nobody changes them.
func (h History) DecisionsSince(index uint64) iter.Seq2[uint64, *placement.Decision] {
	return func(yield func(uint64, *placement.Decision) bool) {
		for row := range since[decisionRow](h.tables, string(Decisions), byAge, number(index+1)) {
			if !yield(row.Index, &row.Decision) {
				return
			}
		}
	}
}

// EndedSince walks the operations that commands after this Raft index have ended, in that order. They are the state's own, and nobody
// changes them.
func (h History) EndedSince(index uint64) iter.Seq[*operation.Operation] {
	return since[operation.Operation](h.tables, string(Operations), byEnded, number(index+1))
}

// MeasuredBy walks the migrations that had ended until a moment and tell what others will take (operation.Measured), the last to end first.
// They are the state's own, and nobody changes them.
func (h History) MeasuredBy(at time.Time) iter.Seq[*operation.Operation] {
	return h.measured(text(""), at)
}

// MeasuredOf is MeasuredBy of one VM.
func (h History) MeasuredOf(vm string, at time.Time) iter.Seq[*operation.Operation] {
	return h.measured(text("vm")+text(vm), at)
}

// MeasuredAlong is MeasuredBy from one node to another.
func (h History) MeasuredAlong(source, target string, at time.Time) iter.Seq[*operation.Operation] {
	return h.measured(text("way")+text(source)+text(target), at)
}

func (h History) measured(key string, at time.Time) iter.Seq[*operation.Operation] {
	return down[operation.Operation](h.tables, string(Operations), byMoved, key, moment(at.Add(1))) // one that ended right then counts
}

// SharedLive walks the operations that have not ended, by VM ID. They are the state's own, and nobody changes them.
func (h History) SharedLive() iter.Seq[*operation.Operation] {
	return each[operation.Operation](h.tables, string(Operations), byLiveVM, "")
}

// Decision is the decision with this ID, the only one whose ID begins like this, or the newest one for "last".
func (h History) Decision(id string) (placement.Decision, bool) {
	var none placement.Decision
	if id == "" {
		return none, false
	}
	if id == "last" {
		if newest := h.Decisions(1); len(newest) == 1 {
			return newest[0], true
		}
		return none, false
	}
	if found, ok := one(h.tables, string(Decisions), byID, id, cloneDecision); ok {
		return found, true
	}
	if like := list(h.tables, string(Decisions), byID, id, cloneDecision); len(like) == 1 {
		return like[0], true
	}
	return none, false
}

// Events are the last events, oldest first. A limit of 0 or less means all that are kept.
func (h History) Events(limit int) []model.Event {
	events := last(h.tables, tableEvents, byID, limit, cloneEvent)
	slices.Reverse(events)
	return events
}

// EventsAfter are the events of commands after this Raft index, oldest first.
func (h History) EventsAfter(index uint64) []model.Event {
	if index == math.MaxUint64 {
		return nil
	}
	return take(since[eventRow](h.tables, tableEvents, byID, number(index+1)), 0, cloneEvent)
}
