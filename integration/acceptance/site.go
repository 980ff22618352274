package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// site is one run: a folder, a bridge in a network namespace of its own, and the machines on it. Nothing of it is
// connected to the host's networks.
type site struct {
	id     string
	folder string
	coord  *machine
	nodes  []*machine

	first   time.Duration // that the first run took, up to the VM
	migrate string        // the README's command that migrates it
}

const folderPattern = "berth-acceptance-*"

// raise sets up the folder, the network and the three machines, and waits until their systemd has started everything.
func raise(ctx context.Context, image string, undo *cleanup) (*site, error) {
	random := make([]byte, 3)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	id := hex.EncodeToString(random)
	s := &site{id: id, folder: filepath.Join(os.TempDir(), strings.Replace(folderPattern, "*", id, 1))}
	if err := os.Mkdir(s.folder, 0o755); err != nil {
		return nil, err
	}
	undo.add(func() error { return os.RemoveAll(s.folder) })
	held, err := lock(s.folder)
	if err != nil {
		return nil, err
	}
	undo.add(held.Close)
	step("Boot three machines: coordinator, hv1, hv2")
	bridge := s.namespace("bridge")
	undo.add(func() error { return removeNamespace(bridge) })
	if err := ip(ctx, "netns add "+bridge, "-n "+bridge+" link add br0 type bridge", "-n "+bridge+" link set br0 up"); err != nil {
		return nil, err
	}
	s.coord = &machine{site: s, name: "coordinator", address: "10.0.0.10"}
	s.nodes = []*machine{{site: s, name: "hv1", address: "10.0.0.11"}, {site: s, name: "hv2", address: "10.0.0.12"}}
	for _, m := range s.machines() {
		if err := m.boot(ctx, image, undo); err != nil {
			return nil, fmt.Errorf("boot %s: %w", m.name, err)
		}
	}
	for _, m := range s.machines() {
		if err := m.ready(ctx); err != nil {
			return nil, fmt.Errorf("boot %s: %w", m.name, err)
		}
	}
	return s, nil
}

func (s *site) machines() []*machine { return append([]*machine{s.coord}, s.nodes...) }

// hosts is the /etc/hosts of every machine.
func (s *site) hosts() string {
	text := "127.0.0.1 localhost\n::1 localhost\n"
	for _, m := range s.machines() {
		text += m.address + " " + m.name + "\n"
	}
	return text
}

func (s *site) namespace(of string) string { return "berth-" + s.id + "-" + of }

// ip runs ip commands, each given as one line.
func ip(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if err := local(ctx, "ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

func removeNamespace(name string) error {
	if _, err := os.Stat("/run/netns/" + name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ip(context.Background(), "netns del "+name)
}

// lock marks a folder as in use for as long as this process lives and the file is open.
func lock(folder string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// sweep takes down what an earlier run left that was killed without a chance to clean up: its machines too.
func sweep() error {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), folderPattern))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		held, err := lock(folder)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue // its run goes on
		}
		if err != nil {
			return err
		}
		defer held.Close()
		id := strings.TrimPrefix(filepath.Base(folder), strings.TrimSuffix(folderPattern, "*"))
		if err := sweepNamed("berth-" + id + "-*"); err != nil {
			return err
		}
		mounts, err := filepath.Glob(filepath.Join(folder, "*", "root"))
		if err != nil {
			return err
		}
		for _, mount := range mounts {
			_ = syscall.Unmount(mount, syscall.MNT_DETACH) // not mounted is as good
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

func sweepNamed(pattern string) error {
	var failed []error
	for _, root := range hierarchies() {
		groups, err := filepath.Glob(filepath.Join(root, pattern))
		failed = append(failed, err)
		for _, group := range groups {
			failed = append(failed, removeGroups(filepath.Base(group)))
		}
	}
	propagated, err := filepath.Glob(filepath.Join("/run/systemd/nspawn/propagate", pattern))
	failed = append(failed, err)
	for _, folder := range propagated {
		failed = append(failed, os.Remove(folder))
	}
	namespaces, err := filepath.Glob(filepath.Join("/run/netns", pattern))
	failed = append(failed, err)
	for _, namespace := range namespaces {
		failed = append(failed, removeNamespace(filepath.Base(namespace)))
	}
	return errors.Join(failed...)
}
