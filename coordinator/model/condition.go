package model

import (
	"slices"
	"strings"
)

// Condition is what is wrong with a VM, or unusual about it. The zero value says that nothing is. VM embeds it, so that the
// text stays where every release has read it, and the rest stands next to it.
type Condition struct {
	Text string `json:"condition,omitempty"` // for people: no code decides by it
	// Kind is what code decides by. It is read through What and Is, because records of earlier releases have none.
	Kind ConditionKind `json:"condition_kind,omitempty"`
	// About is the ID of the node that the condition is about, or of the operation for the kinds Parked and LostMoving; empty:
	// none in particular.
	About string `json:"condition_about,omitempty"`
}

// ConditionKind says what sort of thing is wrong.
type ConditionKind string

// The kinds of conditions that records have.
const (
	NoCondition    ConditionKind = ""
	OutOfBand      ConditionKind = "out_of_band"     // somebody has changed the VM with virsh or another tool
	RunsTwice      ConditionKind = "runs_twice"      // more than one node runs it
	RestartRefused ConditionKind = "restart_refused" // it is to be highly available, and cannot be started now
	RestartRests   ConditionKind = "restart_rests"   // it was restarted too often lately
	HostBooted     ConditionKind = "host_booted"     // its host has booted anew, so it is to be started again
	StorageLate    ConditionKind = "storage_late"    // the storage that it has its disks on is not there yet
	RestartHeld    ConditionKind = "restart_held"    // hosts were lost with it, or it ended again and again: only a person starts it again
	NoRoom         ConditionKind = "no_room"         // its hypervisor has paused it, because a disk of it failed or found no room
	GuestPanicked  ConditionKind = "guest_panicked"  // its guest has crashed
	ProcessDied    ConditionKind = "process_died"    // its QEMU has ended without a word
	RestartBehind  ConditionKind = "restart_behind"  // VMs that it is to start after do not run yet
	Parked         ConditionKind = "parked"          // its operation waits for a person's decision
	LostMoving     ConditionKind = "lost_moving"     // it ended during a migration
	VolumesLeft    ConditionKind = "volumes_left"    // a node may still have volumes that are of no use
	HolderOff      ConditionKind = "holder_off"      // its node is proven to be off
	NowhereSeen    ConditionKind = "nowhere_seen"    // it ran when the backup was made that was restored, and runs nowhere now
	OtherCondition ConditionKind = "other"           // written by an earlier release, which knew no kinds
)

// The kinds of conditions that follow from what the nodes show. No record has them.
const (
	NodeSilent    ConditionKind = "node_silent"    // its node does not tell what it has
	Paused        ConditionKind = "paused"         // it is paused on its node
	NotRunning    ConditionKind = "not_running"    // its node does not run it, and should
	NotStopped    ConditionKind = "not_stopped"    // its node runs it, and should not
	RunsElsewhere ConditionKind = "runs_elsewhere" // nodes other than its own show it running
)

// earlier is how the texts of conditions began that had a kind before records had one, up to feature level 2. It never
// changes: what a record of that time means must not depend on how the texts are written today.
var earlier = []struct {
	beginning string
	kind      ConditionKind
}{
	{"out of band: ", OutOfBand},
	{"runs twice: ", RunsTwice},
	{"it cannot be restarted: ", RestartRefused},
	{"it was restarted ", RestartRests},
	{"parked: ", Parked},
	{"lost during a migration: ", LostMoving},
	{"its node ", HolderOff},
	{"on ", VolumesLeft},
	{"it ran when the backup was made, and no node shows it now", NowhereSeen},
}

// What is the kind of the condition, also of one that an earlier release has written.
func (c Condition) What() ConditionKind {
	if c.Kind != NoCondition || c.Text == "" {
		return c.Kind
	}
	for _, one := range earlier {
		if strings.HasPrefix(c.Text, one.beginning) {
			return one.kind
		}
	}
	return OtherCondition
}

// Is tells whether the condition is of one of the kinds.
func (c Condition) Is(kinds ...ConditionKind) bool { return slices.Contains(kinds, c.What()) }

// Beside tells whether the condition says what has become of a VM without an order of Berth.
func (c Condition) Beside() bool { return c.Is(OutOfBand, NoRoom, GuestPanicked, ProcessDied) }

// Same tells whether two conditions say the same to people. One of them may come from an earlier release, which kept the text
// alone.
func (c Condition) Same(other Condition) bool {
	return c.What() == other.What() && c.Text == other.Text
}

// TextOnly is the condition as releases up to feature level 2 read it.
func (c Condition) TextOnly() Condition { return Condition{Text: c.Text} }
