// Package backup keeps backups of the coordinators' state, and knows of one that is restored what it does not say.
package backup

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
)

// Shelf has the last backup, and what was lost when one was restored. The zero value is empty.
type Shelf struct {
	data []byte // of the last backup; nil: there is none

	Base  []byte          // the state with which the log begins; nil: an empty one
	Since uint64          // its index
	Off   map[string]bool // VMs that people have stopped since the backup was made, and that nobody has started since: by UUID
	Torn  map[string]bool // VMs that the backup does not know, or that were being worked on, or whose disks have moved since
}

// Take makes a backup.
func (s *Shelf) Take(from *state.Snapshot) {
	var data bytes.Buffer
	if err := from.Save(&data); err != nil {
		panic(err)
	}
	s.data = data.Bytes()
}

// Has tells whether there is a backup that was not restored yet.
func (s *Shelf) Has() bool { return s.data != nil }

// Restore is the state that takes the place of the present one, as consensus makes it of a backup.
func (s *Shelf) Restore(present *state.Snapshot, at time.Time) *state.Store {
	store, err := state.Load(bytes.NewReader(s.data))
	if err != nil {
		panic(err)
	}
	then := store.Snapshot()
	store.Quarantine(present, at, "sim")
	s.Off, s.Torn = map[string]bool{}, map[string]bool{}
	for _, now := range present.VMs() {
		was, known := then.VM(now.ID)
		if !known || now.Operation != "" || was.Operation != "" || was.Home != now.Home {
			s.Torn[now.ID] = true
		}
		if known && was.Desired == model.Running && now.Desired == model.Stopped && now.Operation == "" && now.Holder == "" {
			s.Off[now.ID] = true
		}
	}
	var data bytes.Buffer
	if err := store.Snapshot().Save(&data); err != nil {
		panic(err)
	}
	s.data, s.Base, s.Since = nil, data.Bytes(), store.Snapshot().Index()
	return store
}

// LookAfter is a person who looks after the guests that were being moved when the backup was restored. A copy that stands still and is the
// only one runs on: Berth does not know any more that it was to let it run. But it is ended if its disk is newer on another machine.
func (s *Shelf) LookAfter(machines []*machine.Machine, disked map[string]bool, now *state.Snapshot) {
	for _, vm := range slices.Sorted(maps.Keys(s.Torn)) {
		var copies []*machine.Domain
		for _, h := range machines {
			if d := h.Domains[vm]; d != nil {
				copies = append(copies, d)
			}
		}
		if _, busy := now.LiveOperationOf(vm); len(copies) != 1 || busy {
			continue
		}
		switch d, h := copies[0], copies[0].At; {
		case !d.IsWhole() || d.JobActive || d.Starves() || d.State != hypervisor.Paused || d.ByOwner || !h.Up || h.Frozen:
		case disked[vm] && !h.HasVolume(machine.DiskName(vm)):
			h.Crash(vm)
		default:
			h.Set(d, hypervisor.Running, "unpaused")
		}
	}
}

// Lift ends a quarantine, as control does, once every node has told what it runs.
func Lift(moment evidence.Moment) (command state.Command, told bool) {
	running, missing := moment.Running()
	command = state.Command{Kind: "reconcile", Caller: "berth", Meta: map[string]string{state.MetaQuarantine: ""}}
	for _, vm := range moment.VMs() {
		after, disks, _ := moment.Agreed(vm, running[vm.ID])
		for _, disk := range disks {
			command.Resources = append(command.Resources, disk)
			command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: disk.ID, Revision: disk.Revision})
		}
		after.Operation = ""
		command.VMs = append(command.VMs, after)
		command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
	}
	return command, len(missing) == 0
}

// HandOn gives the disks of one VM to another one.
func HandOn(from, to model.VM) state.Command {
	to.Spec.Disks = append(slices.Clone(to.Spec.Disks), from.Spec.Disks...)
	from.Spec.Disks = nil
	return state.Command{
		Kind: "set vms", Caller: "sim", VMs: []model.VM{from, to},
		Expect: []state.Expectation{
			{Table: state.VMs, ID: from.ID, Revision: from.Revision}, {Table: state.VMs, ID: to.ID, Revision: to.Revision},
		},
	}
}
