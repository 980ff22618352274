// Package processes shows the guests of a host as its operating system does. libvirtd is not asked.
package processes

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"berth/agent/hypervisor"
)

// Seen is where the operating system shows processes and control groups.
type Seen struct{ Proc, Cgroups string }

// Processes implements that method of hypervisor.Hypervisor. One reading of /proc and of the machine scopes tells of all guests.
func (s Seen) Processes(ctx context.Context) ([]hypervisor.Process, error) {
	// Where /proc hides the processes of others, an empty list would say that nothing runs.
	if _, err := os.ReadFile(filepath.Join(s.Proc, "1", "cmdline")); err != nil {
		return nil, fmt.Errorf("%w: the processes of others cannot be seen (%w): let berth-agent see all of /proc, mounted without hidepid",
			hypervisor.ErrUnavailable, err)
	}
	entries, err := os.ReadDir(s.Proc)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hypervisor.ErrUnavailable, err)
	}
	var found []hypervisor.Process
	guests := map[int]bool{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(s.Proc, entry.Name(), "cmdline"))
		if err != nil {
			continue // it has just ended
		}
		if uuid, name := parseGuest(line); uuid != "" {
			found, guests[pid] = append(found, hypervisor.Process{PID: pid, UUID: uuid, Name: name}), true
		}
	}
	return append(found, s.scopes(guests)...), ctx.Err()
}

// parseGuest reads which guest a command line runs: as libvirt begins QEMU, and as people do. Empty: it is no guest's.
func parseGuest(line []byte) (uuid, name string) {
	if !bytes.Contains(line, []byte("-uuid\x00")) && !bytes.Contains(line, []byte("uuid=")) {
		return "", ""
	}
	args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	if program := filepath.Base(args[0]); !strings.Contains(program, "qemu") && !strings.Contains(program, "kvm") {
		return "", ""
	}
	for i := 1; i+1 < len(args); i++ {
		switch value := args[i+1]; args[i] {
		case "-uuid":
			uuid = value
		case "-smbios":
			if uuid == "" {
				uuid = property(value, "uuid")
			}
		case "-name":
			first, _, _ := strings.Cut(value, ",")
			if name = property(value, "guest"); name == "" {
				name = first
			}
		}
	}
	return strings.ToLower(uuid), name
}

// property is a value of QEMU's "a=b,c=d"; empty: there is none.
func property(list, key string) string {
	for part := range strings.SplitSeq(list, ",") {
		if value, has := strings.CutPrefix(part, key+"="); has {
			return value
		}
	}
	return ""
}

// scopes are the machine scopes of guests that have processes, and none of them is a guest's that was recognised: what is left of
// a guest whose process is just ending, or shows no command line any more. None where there is no systemd-machined.
func (s Seen) scopes(guests map[int]bool) []hypervisor.Process {
	var found []hypervisor.Process
	for _, slice := range []string{"machine.slice", "systemd/machine.slice", "unified/machine.slice"} {
		scopes, _ := filepath.Glob(filepath.Join(s.Cgroups, slice, `machine-qemu*.scope`))
		for _, folder := range scopes {
			name, is := guestOfScope(filepath.Base(folder))
			pids := processesIn(folder)
			if !is || len(pids) == 0 {
				continue
			}
			recognised := false
			for _, pid := range pids {
				recognised = recognised || guests[pid]
			}
			if !recognised {
				found = append(found, hypervisor.Process{PID: pids[0], Name: name, Scope: filepath.Base(folder)})
			}
		}
	}
	return found
}

// guestOfScope reads machine-qemu\x2d3\x2dweb.scope: the number is libvirt's for this run, the rest is the guest's name.
func guestOfScope(scope string) (name string, is bool) {
	text := strings.ReplaceAll(strings.TrimSuffix(scope, ".scope"), `\x2d`, "-")
	text, is = strings.CutPrefix(text, "machine-qemu-")
	if !is {
		return "", false
	}
	number, name, is := strings.Cut(text, "-")
	if _, err := strconv.Atoi(number); err != nil {
		return "", false
	}
	return name, is
}

// processesIn are the processes of a control group and of those below it. One that goes away meanwhile has none.
func processesIn(folder string) []int {
	var pids []int
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // it has just gone
		}
		text, _ := os.ReadFile(path)
		for line := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}
