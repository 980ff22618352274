package state

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// Snapshot is one immutable moment of the state. Records that it returns are copies: the caller may change them.
type Snapshot struct {
	tables
	applied appliedRow
	moved   chan struct{} // closed by the store when this is no longer the present
}

// Index is the Raft index of the last command applied. Entries that are not commands (configurations, barriers) do not
// move it. 0: nothing has been applied yet.
func (x *Snapshot) Index() uint64 { return x.applied.Index }

// Changed is closed when this moment is no longer the present one.
func (x *Snapshot) Changed() <-chan struct{} { return x.moved }

// Nodes are all nodes, by ID.
func (x *Snapshot) Nodes() []model.Node { return list(x, string(Nodes), byID, "", cloneNode) }

// Node is the node with this ID.
func (x *Snapshot) Node(id string) (model.Node, bool) {
	return one(x, string(Nodes), byID, id, cloneNode)
}

// NodeByName is the node with this name.
func (x *Snapshot) NodeByName(name string) (model.Node, bool) {
	return one(x, string(Nodes), byName, name, cloneNode)
}

// NodeByRef is the node with this ID, or else with this name.
func (x *Snapshot) NodeByRef(ref string) (model.Node, bool) {
	return either(ref, x.Node, x.NodeByName)
}

// VMs are all VMs, by name.
func (x *Snapshot) VMs() []model.VM { return list(x, string(VMs), byName, "", cloneVM) }

// VM is the VM with this ID.
func (x *Snapshot) VM(id string) (model.VM, bool) { return one(x, string(VMs), byID, id, cloneVM) }

// VMByName is the VM with this name.
func (x *Snapshot) VMByName(name string) (model.VM, bool) {
	return one(x, string(VMs), byName, name, cloneVM)
}

// VMByRef is the VM with this ID, or else with this name.
func (x *Snapshot) VMByRef(ref string) (model.VM, bool) { return either(ref, x.VM, x.VMByName) }

// VMsOn are the VMs that the node with this ID holds, by name.
func (x *Snapshot) VMsOn(node string) []model.VM {
	if node == "" {
		return nil
	}
	return list(x, string(VMs), byHolder, text(node), cloneVM)
}

// VMsLinkedTo are the VMs that name the resource with this ID.
func (x *Snapshot) VMsLinkedTo(resource string) []model.VM {
	if resource == "" || strings.ContainsRune(resource, 0) {
		return nil
	}
	return list(x, string(VMs), byLink, text(resource), cloneVM)
}

// LastEpoch is the highest epoch that a VM with this ID has had, a deleted one included; 0 if there was none. A VM that
// is made with a used ID has to go on from there.
func (x *Snapshot) LastEpoch(vm string) uint64 { return x.lastEpoch(vm) }

func (t tables) lastEpoch(vm string) uint64 {
	if row, ok := get[model.VM](t, string(VMs), vm); ok {
		return row.EpochsGiven()
	}
	if row, ok := get[epochRow](t, tableEpochs, vm); ok {
		return row.Epoch
	}
	return 0
}

// Resources are all resources of a kind, by name.
func (x *Snapshot) Resources(kind model.Kind) []model.Resource {
	return list(x, string(Resources), byName, resourceName(kind, ""), cloneResource)
}

// Clusters are the declared clusters, by name.
func (x *Snapshot) Clusters() []model.Resource { return x.Resources(model.KindCluster) }

// Groups are all groups, by name.
func (x *Snapshot) Groups() []model.Resource { return x.Resources(model.KindGroup) }

// Resource is the resource with this ID.
func (x *Snapshot) Resource(id string) (model.Resource, bool) {
	return one(x, string(Resources), byID, id, cloneResource)
}

// ResourceByName is the resource of a kind with this name.
func (x *Snapshot) ResourceByName(kind model.Kind, name string) (model.Resource, bool) {
	return one(x, string(Resources), byName, resourceName(kind, name), cloneResource)
}

// Operations are all operations that are still kept, newest first.
func (x *Snapshot) Operations() []operation.Operation {
	return last(x, string(Operations), byAge, 0, cloneOperation)
}

// Operation is the operation with this ID.
func (x *Snapshot) Operation(id string) (operation.Operation, bool) {
	return one(x, string(Operations), byID, id, cloneOperation)
}

// LiveOperations are the operations that have not ended, by VM ID. There is at most one for each VM.
func (x *Snapshot) LiveOperations() []operation.Operation {
	return list(x, string(Operations), byLiveVM, "", cloneOperation)
}

// StartsOn is how many starts the node with this ID works on, and the IDs of those that wait for their turn there, in the
// order in which they came.
func (x *Snapshot) StartsOn(node string) (working int, queue []string) {
	if node == "" {
		return 0, nil
	}
	for op := range each[operation.Operation](x.tables, string(Operations), byStart, text(node)) {
		if op.Phase == operation.Queued {
			queue = append(queue, op.ID)
		} else {
			working++
		}
	}
	return working, queue
}

// LiveOperationOf is the operation that works on this VM, if there is one.
func (x *Snapshot) LiveOperationOf(vm string) (operation.Operation, bool) {
	return one(x, string(Operations), byLiveVM, vm, cloneOperation)
}

// OperationByRequest is the newest operation that was made by this request, named by its idempotency key.
func (x *Snapshot) OperationByRequest(request string) (operation.Operation, bool) {
	if request == "" || strings.ContainsRune(request, 0) {
		return operation.Operation{}, false
	}
	made := list(x, string(Operations), byRequest, text(request), cloneOperation)
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
func (x *Snapshot) OperationsOfPlan(plan string) []operation.Operation {
	if plan == "" || strings.ContainsRune(plan, 0) {
		return nil
	}
	found := list(x, string(Operations), byPlan, text(plan), cloneOperation)
	slices.Reverse(found)
	return found
}

// Plans are all plans that are still kept, newest first.
func (x *Snapshot) Plans() []model.Plan { return last(x, string(Plans), byAge, 0, clonePlan) }

// Plan is the plan with this ID.
func (x *Snapshot) Plan(id string) (model.Plan, bool) {
	return one(x, string(Plans), byID, id, clonePlan)
}

// LivePlans are the plans that are proposed or running, oldest first.
func (x *Snapshot) LivePlans() []model.Plan { return list(x, string(Plans), byLive, "", clonePlan) }

// PlanByRequest is the newest plan that was made by this request, named by its idempotency key.
func (x *Snapshot) PlanByRequest(request string) (model.Plan, bool) {
	if request == "" || strings.ContainsRune(request, 0) {
		return model.Plan{}, false
	}
	return newest(list(x, string(Plans), byRequest, text(request), clonePlan), func(p *model.Plan) time.Time { return p.CreatedAt })
}

// Decisions are the last decisions, newest first. A limit of 0 or less means all that are kept.
func (x *Snapshot) Decisions(limit int) []placement.Decision {
	return last(x, string(Decisions), byAge, limit, cloneDecision)
}

// DecisionsAbout are the last decisions whose request is wanted, newest first, at most limit of them; 0 or less means all
// that are kept. After is the ID of a decision: only those before it are meant, and none if it is no longer kept, because
// the oldest go first. The request is only to be looked at. Others are not copied: a decision keeps the figures of many nodes.
func (x *Snapshot) DecisionsAbout(limit int, after string, wanted func(*placement.Request) bool) []placement.Decision {
	kept := backwards[decisionRow](x.tables, string(Decisions), byAge)
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

// Decision is the decision with this ID, the only one whose ID begins like this, or the newest one for "last".
func (x *Snapshot) Decision(id string) (placement.Decision, bool) {
	var none placement.Decision
	if id == "" {
		return none, false
	}
	if id == "last" {
		if newest := x.Decisions(1); len(newest) == 1 {
			return newest[0], true
		}
		return none, false
	}
	if found, ok := one(x, string(Decisions), byID, id, cloneDecision); ok {
		return found, true
	}
	if like := list(x, string(Decisions), byID, id, cloneDecision); len(like) == 1 {
		return like[0], true
	}
	return none, false
}

// Members are all coordinators, by name.
func (x *Snapshot) Members() []model.Member {
	return list(x, string(Members), byName, "", copied[model.Member])
}

// Member is the coordinator with this ID.
func (x *Snapshot) Member(id string) (model.Member, bool) {
	return one(x, string(Members), byID, id, copied[model.Member])
}

// MemberByName is the coordinator with this name.
func (x *Snapshot) MemberByName(name string) (model.Member, bool) {
	return one(x, string(Members), byName, name, copied[model.Member])
}

// Tokens are all enrolment tokens, by hash.
func (x *Snapshot) Tokens() []model.Token {
	return list(x, string(Tokens), byID, "", copied[model.Token])
}

// Token is the enrolment token whose secret has this hash.
func (x *Snapshot) Token(hash string) (model.Token, bool) {
	return one(x, string(Tokens), byID, hash, copied[model.Token])
}

// Events are the last events, oldest first. A limit of 0 or less means all that are kept.
func (x *Snapshot) Events(limit int) []model.Event {
	events := last(x, tableEvents, byID, limit, cloneEvent)
	slices.Reverse(events)
	return events
}

// EventsAfter are the events of commands after this Raft index, oldest first.
func (x *Snapshot) EventsAfter(index uint64) []model.Event {
	if index == math.MaxUint64 {
		return nil
	}
	return take(since[eventRow](x.tables, tableEvents, byID, number(index+1)), 0, cloneEvent)
}

// EventsKept tells whether all events of commands after this Raft index are kept still. It is false when some may have been
// trimmed: a follower of the events has to read the records again.
func (x *Snapshot) EventsKept(index uint64) bool {
	if x.applied.Events < MaxEvents {
		return true
	}
	for oldest := range each[eventRow](x.tables, tableEvents, byID, "") {
		return oldest.Event.Index <= index
	}
	return true
}

// Meta is the value of this key; empty if it has none.
func (x *Snapshot) Meta(key string) string {
	row, _ := one(x, string(Meta), byID, key, copied[metaRow])
	return row.Value
}

// MetaRevision is what a change of a value has to expect; 0 when it is not there.
func (x *Snapshot) MetaRevision(key string) uint64 {
	row, _ := one(x, string(Meta), byID, key, copied[metaRow])
	return row.Revision
}

func cloneEvent(row *eventRow) model.Event { return row.Event }

// halt ends this member rather than let it part from the others. Raft calls the state in a goroutine of its own that
// nobody returns an error to.
func halt(format string, args ...any) {
	panic(fmt.Sprintf("state: "+format, args...)) //nolint:forbidigo // see above
}

// take gathers the rows before it copies them: records are large, and a slice of them that grows copies them over and over.
func take[Row, Out any](rows iter.Seq[*Row], limit int, clone func(*Row) Out) []Out {
	var found []*Row
	for row := range rows {
		found = append(found, row)
		if len(found) == limit {
			break
		}
	}
	if len(found) == 0 {
		return nil
	}
	out := make([]Out, len(found))
	for i, row := range found {
		out[i] = clone(row)
	}
	return out
}

func list[Row, Out any](x *Snapshot, table, index, prefix string, clone func(*Row) Out) []Out {
	return take(each[Row](x.tables, table, index, prefix), 0, clone)
}

// last is the end of an index, from there backwards.
func last[Row, Out any](x *Snapshot, table, index string, limit int, clone func(*Row) Out) []Out {
	return take(backwards[Row](x.tables, table, index), limit, clone)
}

func one[Row, Out any](x *Snapshot, table, index, key string, clone func(*Row) Out) (Out, bool) {
	// A key that no record can have would run into the next part of the index's key.
	if !strings.ContainsRune(key, 0) {
		for row := range each[Row](x.tables, table, index, text(key)) {
			return clone(row), true
		}
	}
	var none Out
	return none, false
}

func either[T any](ref string, byID, byName func(string) (T, bool)) (T, bool) {
	if found, ok := byID(ref); ok {
		return found, true
	}
	return byName(ref)
}
