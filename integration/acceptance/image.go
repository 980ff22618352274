package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	suite  = "bookworm"
	mirror = "http://deb.debian.org/debian"
)

// A hypervisor as its administrator would install it, and rpm, so that both package formats can be tried on it. All that our
// packages recommend is here: the machines have no network to fetch it from when a package is installed.
var (
	system     = []string{"systemd", "systemd-sysv", "dbus", "iproute2", "rpm"}
	hypervisor = []string{
		"libvirt-daemon-system", "libvirt-clients", "qemu-system-x86", "qemu-utils", "openssl", "procps", "man-db", "bash-completion",
		"openssh-server", "openssh-client",
	}
)

// baseImage returns the folder of an installed Debian with libvirt and QEMU. It is made once and never written to again:
// machines lay their own files over it.
func baseImage(ctx context.Context, cache string) (string, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	recipe := strings.Join(append(append([]string{suite}, system...), hypervisor...), " ")
	image := filepath.Join(cache, fmt.Sprintf("base-%.6x", sha256.Sum256([]byte(recipe))))
	if _, err := os.Stat(image); err == nil {
		return image, nil
	}
	step("Install the base image: Debian %s with libvirt and QEMU (once, about two minutes)", suite)
	unfinished := filepath.Join(cache, "unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return "", err
	}
	if err := local(ctx, "debootstrap", "--variant=minbase", "--include="+strings.Join(system, ","), suite, unfinished, mirror); err != nil {
		return "", err
	}
	// No service starts while the image is being made.
	policy := filepath.Join(unfinished, "usr/sbin/policy-rc.d")
	if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return "", err
	}
	install := append([]string{
		unfinished, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-q", "-y", "--no-install-recommends",
	}, hypervisor...)
	if err := local(ctx, "chroot", install...); err != nil {
		return "", err
	}
	if err := os.Remove(policy); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(unfinished, "var/cache/apt/archives")); err != nil {
		return "", err
	}
	return image, os.Rename(unfinished, image)
}

// local runs a command on this machine. Its output is shown only if it fails.
func local(ctx context.Context, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Env = append(os.Environ(), "LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, lastLines(string(out), 20))
	}
	return nil
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
