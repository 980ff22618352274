package state

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// apply compares and stores the commands of one entry of the log, each as a whole or not at all, and each on what the ones
// before it made. It is a function of the state, the commands and the index alone.
func (s *Store) apply(commands []*Command, index uint64) []Result {
	s.writer.Lock()
	defer s.writer.Unlock()
	present := s.now.Load()
	rows, applied := present.draft(), present.applied
	if index <= applied.Index {
		halt("entry %d of the Raft log comes after entry %d; this coordinator must stop: "+
			"its log or its snapshot is damaged", index, applied.Index)
	}
	results := make([]Result, len(commands))
	var history uint32 // rows of it that the entry has made
	for i, command := range commands {
		if command.Check != nil {
			s.compare(command.Check, index)
		}
		applied, results[i] = applyOne(rows, applied, command, entryPlace{index, uint32(i), history})
		if results[i].Refusal == nil {
			history += uint32(len(command.Events) + len(command.Decisions))
		}
	}
	next := newSnapshot(rows, applied)
	next.follow(present, changesOf(rows))
	s.publish(next)
	s.hashes = s.hashes.add(next)
	return results
}

// entryPlace is the place of a command in the log.
type entryPlace struct {
	index   uint64 // of its entry
	command uint32 // which one of the entry it is
	history uint32 // where its events and its decisions begin in the entry
}

func applyOne(rows *draft, applied appliedRow, command *Command, at entryPlace) (appliedRow, Result) {
	w := begin(rows, applied, command, at)
	result, repeated := w.repeat(command)
	if !repeated {
		result = Result{Index: at.index}
		if result.Refusal = w.store(command); result.Refusal != nil {
			// Whatever was stored before the refusal goes.
			w.takeBack(w.begun)
			w = begin(rows, applied, command, at)
		} else {
			w.remember(command)
		}
	}
	return w.seal(result), result
}

// repeat finds the answer that an earlier command with this key got.
func (w *write) repeat(command *Command) (Result, bool) {
	row, found := get[keyRow](w.tables, tableKeys, command.Key)
	if !found {
		return Result{}, false
	}
	if row.Kind != command.Kind {
		return Result{Index: w.index, Refusal: invalid("", command.Key,
			"key %q was used for another command (%q), this one is %q", command.Key, row.Kind, command.Kind)}, true
	}
	return Result{Index: row.Index}, true
}

// store checks the command against the state, stores it and checks what came out. After a refusal the draft has to be taken
// back.
func (w *write) store(command *Command) *Refusal {
	for _, check := range []func(*Command) *Refusal{w.complete, checkShape, w.checkExpectations, w.checkChanges} {
		if refusal := check(command); refusal != nil {
			return refusal
		}
	}
	w.deleteRecords(command)
	w.putRecords(command)
	w.putHistory(command)
	if refusal := w.checkOutcome(command); refusal != nil {
		return refusal
	}
	w.trim()
	return nil
}

// deleteRecords runs before putRecords, so that a name is free for a record of the same command.
func (w *write) deleteRecords(command *Command) {
	for _, record := range command.Delete {
		if vm, ok := get[model.VM](w.tables, string(VMs), record.ID); ok && record.Table == VMs && vm.EpochsGiven() > 0 {
			put(w, tableEpochs, vm.ID, &epochRow{VM: vm.ID, Epoch: vm.EpochsGiven(), Index: w.index})
			w.applied.Epochs++
		}
		w.remove(string(record.Table), record.ID, w.row(string(record.Table), record.ID))
	}
	w.forget(command.Delete)
}

// The rows are the command's own memory: it was decoded for this call, or copied (Written), and is not used afterwards.
func (w *write) putRecords(command *Command) {
	for i := range command.Nodes {
		node := &command.Nodes[i]
		node.Revision = w.index
		put(w, string(Nodes), node.ID, node)
	}
	for i := range command.VMs {
		vm := &command.VMs[i]
		vm.Revision = w.index
		put(w, string(VMs), vm.ID, vm)
		if epoch, deletedBefore := get[epochRow](w.tables, tableEpochs, vm.ID); deletedBefore {
			w.remove(tableEpochs, vm.ID, epoch)
			w.applied.Epochs--
		}
	}
	for i := range command.Operations {
		op := &command.Operations[i]
		op.Revision = w.index
		put(w, string(Operations), op.ID, op)
		if !op.Live() {
			w.applied.Ended++
		}
	}
	for i := range command.Members {
		member := &command.Members[i]
		member.Revision = w.index
		put(w, string(Members), member.ID, member)
	}
	for i := range command.Tokens {
		token := &command.Tokens[i]
		token.Revision = w.index
		put(w, string(Tokens), token.Hash, token)
	}
	for i := range command.Resources {
		resource := &command.Resources[i]
		resource.Revision = w.index
		put(w, string(Resources), resource.ID, resource)
	}
	for _, key := range slices.Sorted(maps.Keys(command.Meta)) {
		put(w, string(Meta), key, &metaRow{Key: key, Value: command.Meta[key], Revision: w.index})
	}
	for i := range command.Plans {
		plan := &command.Plans[i]
		plan.Revision = w.index
		if before, exists := get[model.Plan](w.tables, string(Plans), plan.ID); !plan.State.Live() && (!exists || before.State.Live()) {
			w.applied.Plans++
		}
		put(w, string(Plans), plan.ID, plan)
	}
	for i := range command.Identities {
		identity := &command.Identities[i]
		identity.Revision = w.index
		before, exists := get[model.Identity](w.tables, string(Identities), identity.ID)
		if !identity.Live() && (!exists || before.Live()) {
			w.applied.Revoked++
		}
		put(w, string(Identities), identity.ID, identity)
	}
	for i := range command.Sessions {
		one := &command.Sessions[i]
		one.Revision = w.index
		put(w, string(Sessions), one.ID, one)
	}
}

func (w *write) putHistory(command *Command) {
	for i := range command.Decisions {
		row := &decisionRow{Index: w.index, Sequence: w.history + uint32(i), Decision: command.Decisions[i]}
		put(w, string(Decisions), row.Decision.ID, row)
		w.applied.Decisions++
	}
	for i := range command.Events {
		row := &eventRow{Sequence: w.history + uint32(i), Event: command.Events[i]}
		row.Event.Index = w.index
		put(w, tableEvents, fmt.Sprint(w.index, "/", row.Sequence), row)
		w.applied.Events++
	}
}

// remember keeps the key, and forgets the oldest ones that are no longer needed.
func (w *write) remember(command *Command) {
	put(w, tableKeys, command.Key, &keyRow{Key: command.Key, Kind: command.Kind, At: command.At, Index: w.index, Sequence: w.command})
	w.applied.Keys++
	for w.applied.Keys > MinKeys {
		oldest, found := first[keyRow](w.tables, tableKeys, byAge)
		if !found || w.applied.Keys <= MaxKeys && w.applied.Clock.Sub(oldest.At) <= KeyAge {
			return
		}
		w.remove(tableKeys, oldest.Key, oldest)
		w.applied.Keys--
	}
}

// trim drops the oldest of what is kept for people.
func (w *write) trim() {
	for ; w.applied.Decisions > 0; w.applied.Decisions-- {
		oldest, _ := first[decisionRow](w.tables, string(Decisions), byAge)
		if w.applied.Decisions <= MaxDecisions && w.applied.Clock.Sub(oldest.Decision.At) <= DecisionAge {
			break
		}
		w.remove(string(Decisions), oldest.Decision.ID, oldest)
	}
	for ; w.applied.Events > MaxEvents; w.applied.Events-- {
		oldest, _ := first[eventRow](w.tables, tableEvents, byID)
		w.remove(tableEvents, fmt.Sprint(oldest.Event.Index, "/", oldest.Sequence), oldest)
	}
	for ; w.applied.Ended > MaxOperations; w.applied.Ended-- {
		oldest, _ := first[operation.Operation](w.tables, string(Operations), byEnded)
		w.remove(string(Operations), oldest.ID, oldest)
	}
	for ; w.applied.Epochs > MaxEpochs; w.applied.Epochs-- {
		oldest, _ := first[epochRow](w.tables, tableEpochs, byAge)
		w.remove(tableEpochs, oldest.VM, oldest)
	}
	for ; w.applied.Plans > MaxPlans; w.applied.Plans-- {
		oldest, _ := first[model.Plan](w.tables, string(Plans), byEnded)
		w.remove(string(Plans), oldest.ID, oldest)
	}
	for ; w.applied.Revoked > MaxRevoked; w.applied.Revoked-- {
		oldest, _ := first[model.Identity](w.tables, string(Identities), byEnded)
		w.remove(string(Identities), oldest.ID, oldest)
	}
}

// later is the later of two stamped times: clocks of leaders differ, and time that ran once must not run again.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
