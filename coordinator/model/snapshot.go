package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Consistency is what the disks of a snapshot are like.
type Consistency string

// What the disks of a snapshot may be like.
const (
	ConsistentOff    Consistency = "off"    // the VM did not run
	ConsistentFrozen Consistency = "frozen" // its guest had written all down, and stood still
	ConsistentCrash  Consistency = "crash"  // as after a power cut
)

// Freeze says whether a guest's file systems are to stand still while a snapshot is taken.
type Freeze string

// Whether a guest's file systems are to stand still.
const (
	FreezeAuto   Freeze = "auto" // if its agent can
	FreezeAlways Freeze = "always"
	FreezeNever  Freeze = "never"
)

// MaxSnapshots is how many snapshots a VM may have: its record stays small, and so do the tables of its files.
const MaxSnapshots = 32

// Snapshot is what was on the disks of a VM at one moment. It is kept inside their qcow2 files.
type Snapshot struct {
	Name        string         `json:"name"` // no other of the VM has it
	Tag         string         `json:"tag"`  // what it is called in the files: the ID of the operation that takes it
	TakenAt     time.Time      `json:"taken_at"`
	TakenBy     string         `json:"taken_by"`
	Description string         `json:"description,omitempty"` // for people
	Consistency Consistency    `json:"consistency,omitempty"` // empty: not known
	Disks       []SnapshotDisk `json:"disks"`                 // in the order of the VM's
	// Partial tells that it is being taken or removed, or that it is not known how that has ended: nothing but removing it is possible.
	Partial bool `json:"partial,omitempty"`
}

// SnapshotDisk is a disk that has a snapshot.
type SnapshotDisk struct {
	Target string     `json:"target"` // vda
	Source DiskSource `json:"source"`
}

// Snapshot is the VM's snapshot of a name; nil: it has none.
func (v *VM) Snapshot(name string) *Snapshot {
	at := slices.IndexFunc(v.Snapshots, func(s Snapshot) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &v.Snapshots[at]
}

// WithSnapshot puts a snapshot into the record, in place of one of that name.
func (v *VM) WithSnapshot(snapshot Snapshot) {
	v.Snapshots = slices.Clone(v.Snapshots)
	if old := v.Snapshot(snapshot.Name); old != nil {
		*old = snapshot
		return
	}
	v.Snapshots = append(v.Snapshots, snapshot)
}

// WithoutSnapshot takes a snapshot out of the record.
func (v *VM) WithoutSnapshot(name string) {
	v.Snapshots = slices.DeleteFunc(slices.Clone(v.Snapshots), func(s Snapshot) bool { return s.Name == name })
	if len(v.Snapshots) == 0 {
		v.Snapshots = nil
	}
}

// SnapshotsOf are the names of the snapshots that a disk has, by its target.
func (v *VM) SnapshotsOf(target string) (names []string) {
	for _, one := range v.Snapshots {
		if slices.ContainsFunc(one.Disks, func(d SnapshotDisk) bool { return strings.EqualFold(d.Target, target) }) {
			names = append(names, one.Name)
		}
	}
	return names
}

// SnapshotIn is the name of a snapshot of the VM that a disk has, by the disk's record; empty: it has none.
func (v *VM) SnapshotIn(disk *Resource) string {
	return v.SnapshotWhere(func(source DiskSource) bool {
		return disk.Volume != nil && source.Volume == disk.Volume.Name || source.Path != "" && source.Path == disk.Settings["path"]
	})
}

// SnapshotWhere is the name of a snapshot of the VM that a disk has with such a source; empty: there is none.
func (v *VM) SnapshotWhere(has func(DiskSource) bool) string {
	for _, one := range v.Snapshots {
		if slices.ContainsFunc(one.Disks, func(d SnapshotDisk) bool { return has(d.Source) }) {
			return one.Name
		}
	}
	return ""
}

// SnapshotNames are the names of all of them, for people: "before-upgrade, weekly".
func (v *VM) SnapshotNames() string {
	names := make([]string, 0, len(v.Snapshots))
	for _, one := range v.Snapshots {
		names = append(names, one.Name)
	}
	return strings.Join(names, ", ")
}

// Differs says which disk of a VM is not the one that has the snapshot; empty: all are.
func (s *Snapshot) Differs(disks []SnapshotDisk) string {
	of := func(all []SnapshotDisk, target string) *SnapshotDisk {
		at := slices.IndexFunc(all, func(d SnapshotDisk) bool { return d.Target == target })
		if at < 0 {
			return nil
		}
		return &all[at]
	}
	for _, had := range s.Disks {
		switch has := of(disks, had.Target); {
		case has == nil:
			return fmt.Sprintf("disk %s (%s) has it, and was detached since", had.Target, had.Source.Text())
		case has.Source != had.Source:
			return fmt.Sprintf("disk %s was %s then, and is %s now", had.Target, had.Source.Text(), has.Source.Text())
		}
	}
	for _, has := range disks {
		if of(s.Disks, has.Target) == nil {
			return fmt.Sprintf("disk %s (%s) was attached since", has.Target, has.Source.Text())
		}
	}
	return ""
}
