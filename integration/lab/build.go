package lab

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ownEtc is what a machine has of its own in /etc. Everything else there is this machine's, seen through links.
var ownEtc = []string{"berth", "group", "hostname", "hosts", "libvirt", "machine-id", "passwd", "pki", "resolv.conf"}

// The accounts that packages create on a real machine. libvirtd does not start without its own, though it runs guests as root here, and
// the agent is nobody's root anywhere: what it may not read on a real host it may not read here.
var (
	users = []string{
		"libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin", agentAccount + ":x:64058:64058::/var/lib/berth/agent:/usr/sbin/nologin",
	}
	groups = []string{"libvirt-qemu:x:64055:", "kvm:x:64056:", libvirtGroup + ":x:64057:", agentAccount + ":x:64058:"}
)

const (
	agentAccount = "berth-agent"
	libvirtGroup = "libvirt" // which may use libvirt's socket
)

// build lays out the machine's directory: what it has on disk.
func (m *Machine) build(spec machineSpec, hosts string) error {
	spec.Name, spec.Address = m.Name, m.Address
	for _, dir := range []string{
		"run", "etc/berth", "etc/libvirt", "var/lib/lab", "var/lib/berth", "var/lib/libvirt/images", LocalPoolDir,
		"var/log/libvirt", "var/cache/libvirt", "var/tmp", "var/root",
	} {
		if err := os.MkdirAll(filepath.Join(m.dir(), dir), 0o755); err != nil {
			return err
		}
	}
	if err := linkEtc(filepath.Join(m.dir(), "etc")); err != nil {
		return err
	}
	description, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	passwd, err := withAccounts("/etc/passwd", users)
	if err != nil {
		return err
	}
	group, err := withAccounts("/etc/group", groups)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		initFile:          string(description),
		"etc/passwd":      passwd,
		"etc/group":       group,
		"etc/hostname":    m.Name + "\n",
		"etc/hosts":       hosts,
		"etc/resolv.conf": "",
		"etc/machine-id":  randomHex(16) + "\n",
	} {
		if err := m.write(name, text); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"var/run": "/run", "var/lock": "/run/lock"} {
		if err := os.Symlink(target, filepath.Join(m.dir(), link)); err != nil {
			return err
		}
	}
	return nil
}

// write makes a file below the machine's directory.
func (m *Machine) write(name, text string) error {
	path := filepath.Join(m.dir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if filepath.Ext(path) == ".pem" {
		mode = 0o600
	}
	return os.WriteFile(path, []byte(text), mode)
}

// linkEtc fills dir with links to this machine's /etc, which the init shows at /run/lab/etc. Links in /etc are copied,
// since a relative one would point elsewhere from there.
func linkEtc(dir string) error {
	entries, err := os.ReadDir("/etc")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if slices.Contains(ownEtc, name) {
			continue
		}
		target := filepath.Join(stateDir, "etc", name)
		if entry.Type()&os.ModeSymlink != 0 {
			if target, err = os.Readlink(filepath.Join("/etc", name)); err != nil {
				return err
			}
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// withAccounts is the text of a passwd or group file with the lines added whose names it lacks.
func withAccounts(path string, lines []string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	accounts := "\n" + strings.TrimSpace(string(text)) + "\n"
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		if !strings.Contains(accounts, "\n"+name+":") {
			accounts += line + "\n"
		}
	}
	return strings.TrimPrefix(accounts, "\n"), nil
}

func randomHex(bytes int) string {
	data := make([]byte, bytes)
	_, _ = rand.Read(data) // never fails
	return hex.EncodeToString(data)
}

// randomUUID is a random UUID (RFC 9562, version 4).
func randomUUID() string {
	data := make([]byte, 16)
	_, _ = rand.Read(data)
	data[6], data[8] = data[6]&0x0f|0x40, data[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", data[:4], data[4:6], data[6:8], data[8:10], data[10:])
}
