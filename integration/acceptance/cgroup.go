package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A machine gets control groups of its own. Otherwise, on a host without a systemd, all machines would share one tree,
// and stopping a service in one would look into the services of the others.

// hierarchies are the roots of the trees that a systemd in a container uses: one, or two where the host still has the old
// kind as well.
func hierarchies() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return []string{"/sys/fs/cgroup"}
	}
	return []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"}
}

// makeGroups makes the groups and returns the files that take a process ID.
func makeGroups(name string) (members []string, err error) {
	for _, root := range hierarchies() {
		folder := filepath.Join(root, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, err
		}
		members = append(members, filepath.Join(folder, "cgroup.procs"))
	}
	return members, nil
}

// removeGroups ends what still runs in the groups and removes them with everything below. The kernel may need a moment
// after the last process has ended.
func removeGroups(name string) error {
	var failed []error
	for _, root := range hierarchies() {
		failed = append(failed, patiently(10*time.Second, func() error {
			return errors.Join(killAll(filepath.Join(root, name)), removeTree(filepath.Join(root, name)))
		}))
	}
	return errors.Join(failed...)
}

// killAll kills every process below a group.
func killAll(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "cgroup.procs" {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return err
		}
		members, err := os.ReadFile(path)
		for _, member := range strings.Fields(string(members)) {
			pid, _ := strconv.Atoi(member)
			if killed := syscall.Kill(pid, syscall.SIGKILL); killed != nil && !errors.Is(killed, syscall.ESRCH) {
				err = errors.Join(err, killed)
			}
		}
		return err
	})
}

func removeTree(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range slices.Backward(folders) {
		err = errors.Join(err, os.Remove(folder))
	}
	return err
}
