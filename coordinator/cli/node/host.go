package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/shared/plaintext"
)

// PackagesFolder is where the coordinator's package has those of the agent.
const PackagesFolder = "/usr/share/berth/packages"

const (
	stepLimit    = 2 * time.Minute
	installLimit = 10 * time.Minute
	doctorLimit  = time.Minute
	doctorPause  = 2 * time.Second
	mostClockOff = 30 * time.Second
	linesShown   = 15
)

// The steps of one host, as people read them.
const (
	stepCheck   = "check"
	stepInstall = "install"
	stepJoin    = "join"
	stepStart   = "start"
	stepDoctor  = "doctor"

	stepIntroduce = "introduce"
)

// checkScript prints what has to be known of a host. It changes nothing.
const checkScript = `
. /etc/os-release 2>/dev/null
echo "os=${PRETTY_NAME:-unknown}"
echo "arch=$(uname -m)"
echo "name=$(uname -n)"
echo "now=$(date +%s)"
echo "uid=$(id -u)"
for s in /run/libvirt/libvirt-sock /run/libvirt/virtqemud-sock; do [ -S $s ] && echo "libvirt=$s"; done
for p in dpkg apt-get rpm dnf zypper; do command -v $p >/dev/null 2>&1 && echo "has=$p"; done
[ -d /run/systemd/system ] && echo "has=systemd"
command -v berth-agent >/dev/null 2>&1 && echo "agent=$(berth-agent version 2>/dev/null | head -n 1)"
[ -r /var/lib/berth/agent/identity.json ] && echo "identity=$(tr -d ' \n\t' < /var/lib/berth/agent/identity.json)"
exit 0
`

// facts are what checkScript has found.
type facts struct {
	os, arch, name, libvirt, agent, identity string
	uid                                      string
	now                                      time.Time
	has                                      []string
}

func readFacts(text string) facts {
	var f facts
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			continue
		}
		value = plaintext.Line(value, 500)
		switch key {
		case "os":
			f.os = value
		case "arch":
			f.arch = value
		case "name":
			f.name, _, _ = strings.Cut(value, ".")
		case "libvirt":
			f.libvirt = value
		case "agent":
			f.agent = value
		case "identity":
			f.identity = value
		case "uid":
			f.uid = value
		case "now":
			if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
				f.now = time.Unix(seconds, 0)
			}
		case "has":
			f.has = append(f.has, value)
		}
	}
	return f
}

// debian tells that packages of the host are DEBs.
func (f *facts) debian() bool {
	return slices.Contains(f.has, "dpkg") && slices.Contains(f.has, "apt-get")
}

// packageFor chooses among files the one that the host can install; empty: none of them.
func (f *facts) packageFor(files []string) string {
	ending := "." + f.arch + ".rpm"
	if f.debian() {
		ending = map[string]string{"x86_64": "_amd64.deb", "aarch64": "_arm64.deb"}[f.arch]
	}
	for _, file := range files {
		if name := filepath.Base(file); ending != "" && strings.HasPrefix(name, "berth-agent") && strings.HasSuffix(name, ending) {
			return file
		}
	}
	return ""
}

// installScript installs the package that it gets on standard input, or with the host's package manager if named is empty.
func (f *facts) installScript(named string) string {
	from, before := "berth-agent", ""
	if named != "" {
		from = `"$d"/` + quote(named)
		before = "umask 022; d=$(mktemp -d) && trap 'rm -rf \"$d\"' EXIT && cat > " + from + " && "
	}
	switch {
	case f.debian():
		return before + "DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o DPkg::Lock::Timeout=120 " + from
	case slices.Contains(f.has, "dnf"):
		return before + "dnf install -y " + from
	case slices.Contains(f.has, "zypper"):
		return before + "zypper --non-interactive install --allow-unsigned-rpm " + from
	default:
		return before + "rpm -U --replacepkgs " + from
	}
}

// yesFlag answers the question of an agent that asks before it changes libvirt's certificates; older ones do not know the flag.
const yesFlag = "$(berth-agent join --help | grep -q -e --yes && echo --yes)"

func joinLine(address, name string) string {
	return "berth-agent join " + quote(address) + " - --name " + quote(name) + " " + yesFlag
}

const startLine = "systemctl enable --now berth-agent"

// introduceLine is what the timer does every few minutes: libvirt is told which nodes may migrate to it.
const introduceLine = "systemctl start berth-libvirt-tls.service"

// plainSigns mean themselves to every shell.
const plainSigns = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"

// quote makes one word of a text, for a shell.
func quote(text string) string {
	if text != "" && strings.Trim(text, plainSigns) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// remote runs shell scripts on one host, by the ssh of the person who calls: with their agent, configuration, known hosts and jumps.
type remote struct {
	host string
	user string // empty: ssh knows
	sudo bool   // scripts need another account's rights
}

// arguments of ssh. It never asks: questions of several hosts at once cannot be told apart.
func (r *remote) arguments(script string) []string {
	line := "sh -c " + quote(script)
	if r.sudo {
		line = "sudo -n " + line
	}
	var arguments []string
	if r.user != "" {
		arguments = append(arguments, "-l", r.user)
	}
	return append(arguments, "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", r.host, line)
}

// run returns the standard output. In the error is what both outputs ended with.
func (r *remote) run(ctx context.Context, script string, in io.Reader, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ssh := exec.CommandContext(ctx, "ssh", r.arguments(script)...)
	var out bytes.Buffer
	var all both
	ssh.Stdin, ssh.Stdout, ssh.Stderr = in, io.MultiWriter(&out, &all), &all
	ssh.WaitDelay = 5 * time.Second
	err := ssh.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no end after %s", limit)
	}
	if err != nil {
		return out.String(), &failed{err: err, said: lastLines(all.String())}
	}
	return out.String(), nil
}

// both is what two outputs say, which are read at the same time.
type both struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *both) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *both) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// failed is a command that did not end well, with the last that it said.
type failed struct {
	err  error
	said []string
}

func (f *failed) Error() string { return f.err.Error() }

func (f *failed) Unwrap() error { return f.err }

// unreachable tells that ssh itself has failed, not what it ran.
func (f *failed) unreachable() bool {
	var ended *exec.ExitError
	return errors.As(f.err, &ended) && ended.ExitCode() == 255
}

func lastLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = plaintext.Line(strings.TrimRight(line, "\r\n"), 300); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-linesShown):]
}

// shipped are the packages of the agent that came with the coordinator's.
func shipped(folder string) []string {
	found, _ := filepath.Glob(filepath.Join(folder, "berth-agent*")) // the pattern is well formed
	return found
}

func openPackage(path string) (io.ReadCloser, error) {
	if path == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	return os.Open(path)
}
