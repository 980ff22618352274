// Package psi reads what the kernel tells of work that waits: pressure stall information, of a whole host and of one control group.
//
// A kernel that does not tell is no error: it is built without it, it was booted with psi=0, or groups are those of cgroup v1.
package psi

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"berth/agent/procfs"
)

// Pressure is the share of time, 0 to 100, in which some or all tasks stalled over the last 10 s.
type Pressure struct {
	SomeAvg10, FullAvg10 float64
}

// All is the pressure on everything that the kernel tells of.
type All struct {
	CPU, Memory, IO Pressure
}

// Read reads one file of pressure. It is nil without an error where the kernel does not tell.
func Read(path string) (*Pressure, error) {
	var buffer [procfs.Longest]byte
	text, err := procfs.Read(path, buffer[:])
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) { // the second: built in, and switched off
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pressure := &Pressure{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return nil, fmt.Errorf("line %q is not of the known form", line)
		}
		value, err := strconv.ParseFloat(strings.TrimPrefix(fields[1], "avg10="), 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		switch fields[0] {
		case "some":
			pressure.SomeAvg10 = value
		case "full":
			pressure.FullAvg10 = value
		}
	}
	return pressure, nil
}

// OfGroup reads the three files of a control group's folder. It is nil without an error where the kernel does not tell, or the group is
// gone.
func OfGroup(folder string) (*All, error) {
	all := &All{}
	for _, one := range []struct {
		name string
		into *Pressure
	}{{"cpu", &all.CPU}, {"memory", &all.Memory}, {"io", &all.IO}} {
		pressure, err := Read(filepath.Join(folder, one.name+".pressure"))
		if err != nil || pressure == nil {
			return nil, err
		}
		*one.into = *pressure
	}
	return all, nil
}

// Mount is where the groups of cgroup v2 are, by the text of /proc/self/mountinfo, and empty where there are none. With cgroup v1 beside it
// (systemd's hybrid layout) the kernel tells pressure there all the same. A mount of a part of the tree is none: names of groups are
// from its root.
func Mount(mountinfo string) string {
	for line := range strings.Lines(mountinfo) {
		mount, kind, split := strings.Cut(line, " - ")
		fields := strings.Fields(mount) // proc(5): ID, parent, device, root, where, ...
		if split && strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4]
		}
	}
	return ""
}

// GuestGroup is the control group that libvirt has made for one guest alone, by the text of /proc/PID/cgroup of its process: a path from
// the root of cgroup v2. It is empty if the process shares its group with others, as guests do whose libvirt makes none: what these
// wait for is not the guest's.
func GuestGroup(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		path, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/")
		if !is {
			continue // of cgroup v1
		}
		parts := strings.Split(path, "/")
		for i, part := range parts {
			switch {
			case part == "..": // it is outside of what this process can see
				return ""
			case strings.HasPrefix(part, "machine-qemu") && strings.HasSuffix(part, ".scope"), // by systemd
				strings.HasSuffix(part, ".libvirt-qemu"): // by libvirt itself
				return "/" + strings.Join(parts[:i+1], "/")
			}
		}
	}
	return ""
}
