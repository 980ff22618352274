package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// machine is a system container with a systemd, a libvirt and a network address of its own.
type machine struct {
	site    *site
	name    string
	address string
	leader  int // process ID of its systemd, seen from outside

	uuid string   // of its board
	undo *cleanup // that takes it down
}

// qemuConf is what libvirt needs inside a container: its control groups are read-only and it may not make devices.
const qemuConf = `security_driver = "none"
cgroup_controllers = []
namespaces = []
remember_owner = 0
`

// agentUnit shows the agent its machine's boot ID. systemd-nspawn lays a new one over the kernel's at each boot. But a service
// that must not tune the kernel gets a fresh /proc, in which the host's is seen again: the same in all machines, and after each
// boot.
const agentUnit = `[Service]
ExecStartPre=+/usr/bin/install -m 0444 /proc/sys/kernel/random/boot_id /run/berth-agent/boot_id
BindReadOnlyPaths=-/run/berth-agent/boot_id:/proc/sys/kernel/random/boot_id
`

func (m *machine) path(inside string) string {
	return filepath.Join(m.site.folder, m.name, "root", inside)
}

// boot lays the machine's files over the image, plugs it into the bridge and starts its systemd.
func (m *machine) boot(ctx context.Context, image string, undo *cleanup) error {
	folder := filepath.Join(m.site.folder, m.name)
	upper, work := filepath.Join(folder, "upper"), filepath.Join(folder, "work")
	for _, path := range []string{upper, work, m.path("/")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	layers := "lowerdir=" + image + ",upperdir=" + upper + ",workdir=" + work
	if err := syscall.Mount("overlay", m.path("/"), "overlay", 0, layers); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	undo.add(func() error { return syscall.Unmount(m.path("/"), syscall.MNT_DETACH) })

	uuid := newUUID()
	m.uuid, m.undo = uuid, undo
	for path, text := range map[string]string{
		"/etc/hostname":              m.name + "\n",
		"/etc/machine-id":            strings.ReplaceAll(uuid, "-", "") + "\n",
		"/etc/hosts":                 m.site.hosts(),
		"/etc/libvirt/qemu.conf":     qemuConf,
		"/etc/libvirt/libvirtd.conf": "host_uuid = \"" + uuid + "\"\n", // the board's UUID is the same in all machines
		"/etc/systemd/system/berth-agent.service.d/boot.conf": agentUnit,
	} {
		if err := os.MkdirAll(filepath.Dir(m.path(path)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(m.path(path), []byte(text), 0o644); err != nil {
			return err
		}
	}

	own, bridge := m.site.namespace(m.name), m.site.namespace("bridge")
	undo.add(func() error { return removeNamespace(own) })
	if err := ip(
		ctx, "netns add "+own,
		"-n "+bridge+" link add "+m.name+" type veth peer name eth0 netns "+own,
		"-n "+bridge+" link set "+m.name+" master br0 up",
		"-n "+own+" addr add "+m.address+"/24 dev eth0",
		"-n "+own+" link set eth0 up",
		"-n "+own+" link set lo up",
	); err != nil {
		return err
	}
	return m.start(own, uuid, undo)
}

// powerOff ends everything in the machine at once. Its disk and its cable stay.
func (m *machine) powerOff() error { return removeGroups(m.site.namespace(m.name)) }

// powerOn boots the machine again after powerOff.
func (m *machine) powerOn() error { return m.start(m.site.namespace(m.name), m.uuid, m.undo) }

func (m *machine) start(namespace, uuid string, undo *cleanup) error {
	console, err := os.Create(filepath.Join(m.site.folder, m.name, "console"))
	if err != nil {
		return err
	}
	defer console.Close()
	undo.add(func() error { return removeGroups(namespace) })
	groups, err := makeGroups(namespace)
	if err != nil {
		return err
	}
	// The shell enters the control groups and becomes systemd-nspawn. No context: a machine is shut down in order, by its
	// undo.
	enter := ""
	for _, members := range groups {
		enter += "echo $$ > " + members + " && "
	}
	nspawn := exec.Command(
		"sh", "-c", enter+`exec systemd-nspawn "$@"`, "sh",
		"--quiet", "--boot", "--register=no", "--keep-unit", "--console=pipe", "--capability=all",
		"--machine="+namespace, "--uuid="+uuid, "--directory="+m.path("/"), "--network-namespace-path=/run/netns/"+namespace,
	)
	nspawn.Stdout, nspawn.Stderr = console, console
	// In a process group of its own, so that Ctrl-C reaches this program alone.
	nspawn.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := nspawn.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- nspawn.Wait() }()
	undo.add(func() error { return shutDown(nspawn, ended) })

	children := fmt.Sprintf("/proc/%d/task/%d/children", nspawn.Process.Pid, nspawn.Process.Pid)
	return patiently(20*time.Second, func() error {
		select {
		case <-ended:
			ended <- nil
			text, _ := os.ReadFile(console.Name())
			return fmt.Errorf("systemd-nspawn ended: %s", text)
		default:
		}
		text, err := os.ReadFile(children)
		if err != nil {
			return err
		}
		m.leader, err = strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return err
		}
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", m.leader))
		if err == nil && string(command) != "systemd\n" {
			err = fmt.Errorf("its first process is %q", command)
		}
		return err
	})
}

// shutDown asks the machine to power off, then insists.
func shutDown(nspawn *exec.Cmd, ended <-chan error) error {
	for _, patience := range []time.Duration{20 * time.Second, 5 * time.Second} {
		if err := nspawn.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		select {
		case <-ended: // the exit status of a machine that was told to stop says nothing
			return nil
		case <-time.After(patience):
		}
	}
	err := nspawn.Process.Kill()
	<-ended
	return err
}

// ready waits until everything that the machine starts has started.
func (m *machine) ready(ctx context.Context) error {
	return wait(ctx, time.Minute, func() error {
		state, err := m.try(ctx, "systemctl is-system-running")
		if strings.TrimSpace(state) == "degraded" {
			state, _ = m.try(ctx, "systemctl --failed --no-legend --plain")
		}
		if err != nil {
			return fmt.Errorf("systemd is %s", strings.TrimSpace(state))
		}
		return nil
	})
}

// run prints a shell command and its output as somebody at the machine would see them. A failure is an error.
func (m *machine) run(ctx context.Context, line string) (string, error) {
	fmt.Printf("%s# %s\n", m.name, line)
	out, err := m.try(ctx, line)
	for text := range strings.Lines(out) {
		text = strings.TrimRight(text, "\r\n")
		fmt.Println(" ", text[strings.LastIndexByte(text, '\r')+1:]) // a progress bar's last state
	}
	if err != nil {
		return out, fmt.Errorf("%s: %s: %w", m.name, line, err)
	}
	return out, nil
}

// try runs a shell command silently and returns all that it printed.
func (m *machine) try(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	enter := exec.CommandContext(
		ctx, "nsenter", "--target="+strconv.Itoa(m.leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive", "sh", "-c", "cd\n"+line,
	)
	enter.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	enter.Stdout, enter.Stderr = &out, &out
	enter.WaitDelay = 5 * time.Second
	err := enter.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}

// put copies a file of this machine into the root's home inside, and returns its name there.
func (m *machine) put(path string) (string, error) {
	source, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer source.Close()
	name := filepath.Base(path)
	target, err := os.Create(m.path(filepath.Join("/root", name)))
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(target, source); err != nil {
		return "", errors.Join(err, target.Close())
	}
	return name, target.Close()
}

// patiently is wait for what goes on also when the run is interrupted.
func patiently(patience time.Duration, check func() error) error {
	return wait(context.Background(), patience, check)
}

// wait repeats check until it succeeds, for at most that long. The last failure is the error.
func wait(ctx context.Context, patience time.Duration, check func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still after %v: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
