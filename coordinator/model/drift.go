package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Drift is what somebody has changed of a VM beside Berth, while it ran. The next start uses what ran last: what a guest has written to a
// disk that the record does not name is not lost.
type Drift struct {
	Node  string       `json:"node"`  // ID of the node that has shown it
	Since time.Time    `json:"since"` // when it was first seen as it is now
	Edits []DeviceEdit `json:"edits"` // at least one; by kind and key
	// Accepted tells that somebody wants it so, and Reverted that the next start is to use the record all the same.
	Accepted bool `json:"accepted,omitempty"`
	Reverted bool `json:"reverted,omitempty"`
}

// RanDevice is a device that a VM was started with.
type RanDevice struct {
	Kind    string     `json:"kind"` // disk or interface, as libvirt calls its element
	Key     string     `json:"key"`  // a disk's target (vda), an interface's MAC address
	Source  DiskSource `json:"source,omitzero"`
	Network string     `json:"network,omitempty"`
	Media   bool       `json:"media,omitempty"`
}

// DeviceEdit is one device with which a VM ran last, and that its record does not have so.
type DeviceEdit struct {
	Kind   string     `json:"kind"`            // disk or interface, as libvirt calls its element
	Key    string     `json:"key"`             // a disk's target (vda), an interface's MAC address
	Was    string     `json:"was,omitempty"`   // what the record has, for people; empty: nothing, somebody has attached it
	Is     string     `json:"is,omitempty"`    // what it ran with; empty: nothing, somebody has detached it
	Source DiskSource `json:"source,omitzero"` // of a disk that it ran with
	Media  bool       `json:"media,omitempty"` // it is a drive for media
	// By is who has changed it with Berth, and At when; empty: somebody has, beside it.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at,omitzero"`
	// Needs are the permissions, with commas between, that the device needs and that were not given when it was seen. Empty: none.
	Needs string `json:"needs,omitempty"`
	// Found tells that nobody has seen it run with that: it was found on top of the disk of its record before a start, and is newer.
	// Rivals are others on top of that disk, with commas between.
	Found  bool   `json:"found,omitempty"`
	Rivals string `json:"rivals,omitempty"`
	// XML is the element, as a domain can be started with it. Empty with something in Is: it is too long to be kept, or nothing that may be
	// started with elsewhere, so that the VM is not started until somebody decides.
	XML string `json:"element,omitempty"`
}

// MaxDriftXML is how long all elements of one drift may be together.
const MaxDriftXML = 128 << 10

// MaxDriftEdits is how many devices a drift may have.
const MaxDriftEdits = 64

// Edits are the devices that the VM is started with beside what its record says.
func (v *VM) Edits() []DeviceEdit {
	if v.Drift == nil || v.Drift.Reverted {
		return nil
	}
	return v.Drift.Edits
}

// EditsOn are those that it is started with on a node: what is in a drive is carried to no other one.
func (v *VM) EditsOn(node string) []DeviceEdit {
	return slices.DeleteFunc(slices.Clone(v.Edits()), func(e DeviceEdit) bool { return e.Media && e.Is != "" && v.Drift.Node != node })
}

// Drifted are the devices that it was seen with last, and that its record does not have so.
func (v *VM) Drifted() []DeviceEdit {
	if v.Drift == nil {
		return nil
	}
	return v.Drift.Edits
}

// Text says what was changed, for people.
func (e *DeviceEdit) Text() string {
	name, by := e.Kind+" "+e.Key, "beside Berth"
	if e.By != "" {
		by = "by " + e.By
	}
	switch {
	case e.Found:
		rivals := ""
		if e.Rivals != "" {
			rivals = ", and so is " + e.Rivals + ": one of them can be right"
		}
		return fmt.Sprintf("%s is %s, and %s is on top of it and was written later%s: somebody took a snapshot while nobody looked", name, e.Was,
			e.Is, rivals)
	case e.Was == "":
		return fmt.Sprintf("%s was attached %s (%s)", name, by, e.Is)
	case e.Is == "":
		return fmt.Sprintf("%s (%s) was detached %s", name, e.Was, by)
	default:
		return fmt.Sprintf("%s is %s %s, and was %s", name, e.Is, by, e.Was)
	}
}

// Asks tells whether somebody has to say what of a device is right before the VM is started: it was changed beside Berth, and needs
// permissions that its cluster, by its record, does not give. The answer is which.
func (v *VM) Asks(edit *DeviceEdit, cluster *Resource) string {
	if v.Drift == nil || v.Drift.Accepted || v.Drift.Reverted || edit.By != "" {
		return ""
	}
	return Lacking(edit.Needs, cluster)
}

// Undecided tells whether somebody has to say which of two files the disk of an edit is.
func (v *VM) Undecided(edit *DeviceEdit) bool {
	return edit.Found && v.Drift != nil && !v.Drift.Accepted && !v.Drift.Reverted
}

// Names tells whether the edit is of this device.
func (e *DeviceEdit) Names(kind, key string) bool {
	return e.Kind == kind && strings.EqualFold(e.Key, key)
}

// ChangedBeside are the edits of a VM that nobody has made with Berth.
func (v *VM) ChangedBeside() []DeviceEdit {
	return slices.DeleteFunc(slices.Clone(v.Drifted()), func(e DeviceEdit) bool { return e.By != "" })
}

// Amend is the record of a VM after somebody has changed devices of it with Berth. What was attached and is detached again leaves nothing.
// Node is the ID of the one that it runs on, or ran on last.
func (v *VM) Amend(edits []DeviceEdit, node string, at time.Time) {
	drift := Drift{Node: node, Since: at}
	if v.Drift != nil {
		drift = *v.Drift
		drift.Edits = slices.Clone(drift.Edits)
	}
	for _, edit := range edits {
		index := slices.IndexFunc(drift.Edits, func(old DeviceEdit) bool { return old.Names(edit.Kind, edit.Key) })
		if index >= 0 {
			edit.Was = drift.Edits[index].Was
			drift.Edits = slices.Delete(drift.Edits, index, index+1)
		}
		if edit.Is != edit.Was {
			drift.Edits = append(drift.Edits, edit)
		}
	}
	slices.SortFunc(drift.Edits, func(a, b DeviceEdit) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Key, b.Key))
	})
	if v.Drift = &drift; len(drift.Edits) == 0 {
		v.Drift = nil
	}
}
