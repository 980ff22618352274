package lab

import (
	"bytes"
	"context"
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

// Machine is a computer of the lab, seen from outside. Its methods may be used from several goroutines, but only one
// of them may power it on or off at a time.
type Machine struct {
	Name    string
	Address string
	lab     *Lab
	known   processes
}

// ErrPoweredOff says that a machine has no processes.
var ErrPoweredOff = errors.New("machine is powered off")

func (m *Machine) dir() string { return machineDir(m.lab.Dir, m.Name) }

// Path is where a file of the machine is found from outside: its own in /etc and /var on disk, so also while it is
// powered off, anything else only while it runs. What LimitDisk covers is not seen.
func (m *Machine) Path(inside string) string {
	for _, kept := range []string{"/etc/", "/var/"} {
		if strings.HasPrefix(inside, kept) && !strings.HasPrefix(inside, SharedDir) {
			return filepath.Join(m.dir(), inside)
		}
	}
	return fmt.Sprintf("/proc/%d/root%s", m.initPid(), inside)
}

// initPid is process 1 of the machine as seen from outside, 0 when it is powered off.
func (m *Machine) initPid() int { return m.known.role(roleMachine, m.lab.Dir, m.Name) }

// Running tells whether the machine is powered on.
func (m *Machine) Running() bool { return m.initPid() != 0 }

// PowerOn boots the machine: its namespaces, its cable and its address. It starts no services.
func (m *Machine) PowerOn(ctx context.Context) error {
	if m.Running() {
		return nil
	}
	cmd, err := enterRole(ctx, m.lab.initPid(), false, roleLaunch, m.lab.Dir, m.Name)
	if err != nil {
		return fmt.Errorf("power on %s: %w", m.Name, err)
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("power on %s: %w: %s%s", m.Name, err, bytes.TrimSpace(output), m.tail("init"))
	}
	return nil
}

// PowerOff ends everything on the machine at once, as pulling the plug does. What is on its disk stays.
func (m *Machine) PowerOff() error {
	pid := m.initPid()
	if pid == 0 {
		return nil
	}
	namespace, err := pidNamespace(pid)
	if err != nil {
		return nil // it has just gone
	}
	if err := signalIn(namespace, pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("power off %s: %w", m.Name, err)
	}
	// The kernel takes its network away when it gets to that, and sends until then what was not acknowledged.
	_ = m.lab.inLab(context.Background(), "ip", "link", "delete", m.Name) // no error but that it is gone already
	return await(context.Background(), m.Name+" to lose power", 20*time.Second, func() (bool, error) {
		return len(processesIn(namespace)) == 0, nil
	})
}

// environment is what every process of a machine begins with, whatever the environment of the lab's owner.
func environment() []string {
	return []string{
		"PATH=" + binDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/var/root", "LANG=C.UTF-8", "TERM=" + os.Getenv("TERM"),
	}
}

// enter prepares a command inside the namespaces of a process. It dies with its context, its children too.
func enter(ctx context.Context, pid int, argv ...string) (*exec.Cmd, error) {
	if pid == 0 {
		return nil, ErrPoweredOff
	}
	args := append([]string{"-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--"}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, nil
}

// enterRole prepares this program in another role inside the namespaces of a process; as a service, it outlives the
// command and belongs to the init there.
func enterRole(ctx context.Context, pid int, service bool, role string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Only a shell can set the first argument of what nsenter executes.
	argv := append([]string{"bash", "-c", `exec -a "$@"`, "bash", role, self}, args...)
	if service {
		argv = append([]string{"setsid", "-f"}, argv...)
	}
	return enter(ctx, pid, argv...)
}

// Command prepares a command on the machine, for a caller who wants its streams.
func (m *Machine) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	return enter(ctx, m.initPid(), argv...)
}

// Exec runs a command on the machine and returns its standard output. The error has its standard error.
func (m *Machine) Exec(ctx context.Context, argv ...string) (string, error) {
	cmd, err := m.Command(ctx, argv...)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Name, err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %s: %w: %s", m.Name, strings.Join(argv, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// Start starts a service that stays, with its output in /var/log/NAME.log. A service of that name must not run.
func (m *Machine) Start(ctx context.Context, name string, argv ...string) error {
	if m.Pid(name) != 0 {
		return fmt.Errorf("%s already runs on %s", name, m.Name)
	}
	log, err := os.OpenFile(m.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	// The shell's process ID becomes the service's; setsid leaves it to the machine's init.
	script := `echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"`
	cmd, err := enter(ctx, m.initPid(), append([]string{"setsid", "-f", "sh", "-c", script, pidFile(name)}, argv...)...)
	if err != nil {
		return fmt.Errorf("start %s on %s: %w", name, m.Name, err)
	}
	_ = os.Remove(m.Path(pidFile(name)))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start %s on %s: %w", name, m.Name, err)
	}
	return await(ctx, name+" on "+m.Name, 30*time.Second, func() (bool, error) {
		_, err := os.Stat(m.Path(pidFile(name)))
		return err == nil, err
	})
}

func pidFile(name string) string { return stateDir + "/" + name + ".pid" }

func (m *Machine) logPath(name string) string { return m.Path("/var/log/" + name + ".log") }

// Log is what a service has written so far.
func (m *Machine) Log(name string) string {
	text, _ := os.ReadFile(m.logPath(name))
	return string(text)
}

// tail is the end of a log for an error, on lines of its own.
func (m *Machine) tail(name string) string {
	const most = 2000
	text := strings.TrimSpace(m.Log(name))
	if text == "" {
		return ""
	}
	return "\n" + m.logPath(name) + " ends:\n" + text[max(0, len(text)-most):]
}

// Pid is the process ID of a service as seen from outside, 0 if it does not run.
func (m *Machine) Pid(name string) int {
	pid, _ := m.find(name)
	return pid
}

// find is Pid, with the PID namespace.
func (m *Machine) find(name string) (pid int, namespace string) {
	first := m.initPid()
	if first == 0 {
		return 0, ""
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", first, pidFile(name)))
	if err != nil {
		return 0, ""
	}
	inner, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	namespace, err = pidNamespace(first)
	if err != nil || inner == 0 {
		return 0, ""
	}
	return m.known.outer(namespace, inner), namespace
}

// Signal sends a signal to a service. A service that does not run is an error.
func (m *Machine) Signal(name string, signal syscall.Signal) error {
	pid, namespace := m.find(name)
	if pid == 0 {
		return fmt.Errorf("%s does not run on %s%s", name, m.Name, m.tail(name))
	}
	return signalIn(namespace, pid, signal)
}

// Kill ends a service with SIGKILL and waits until it is gone. Its children live on, as QEMU does without libvirtd.
func (m *Machine) Kill(name string) error { return m.end(name, syscall.SIGKILL, 10*time.Second) }

// Stop ends a service with SIGTERM and waits until it is gone.
func (m *Machine) Stop(name string) error { return m.end(name, syscall.SIGTERM, 30*time.Second) }

func (m *Machine) end(name string, signal syscall.Signal, limit time.Duration) error {
	if err := m.Signal(name, signal); err != nil {
		return err
	}
	return await(context.Background(), name+" on "+m.Name+" to end", limit, func() (bool, error) {
		return m.Pid(name) == 0, nil
	})
}

// Pause freezes a service with SIGSTOP: its sockets stay open and nothing answers.
func (m *Machine) Pause(name string) error { return m.Signal(name, syscall.SIGSTOP) }

// Continue thaws a paused service.
func (m *Machine) Continue(name string) error { return m.Signal(name, syscall.SIGCONT) }

// LimitDisk puts a directory on a file system of its own with this many bytes, keeping its content. It holds until the
// machine is powered off. Services that have the directory open must not run.
func (m *Machine) LimitDisk(ctx context.Context, directory string, bytes int64) error {
	const script = `set -e
mkdir -p "$1" /run/lab/limited && mount -t tmpfs -o size="$2",mode=700 tmpfs /run/lab/limited
cp -a "$1/." /run/lab/limited/ && mount --move /run/lab/limited "$1"`
	_, err := m.Exec(ctx, "sh", "-c", script, "limit-disk", directory, strconv.FormatInt(bytes, 10))
	return err
}

// filler is the file that FillDisk makes.
const filler = "lab-filler"

// FillDisk writes until no space is left in a directory that LimitDisk has limited.
func (m *Machine) FillDisk(ctx context.Context, directory string) error {
	if _, err := m.Exec(ctx, "mountpoint", "-q", directory); err != nil {
		return fmt.Errorf("%s is not limited, filling it would fill this machine's disk: %w", directory, err)
	}
	file, err := os.OpenFile(m.fillerPath(directory), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
	}
	return nil
}

// FreeDisk takes back what FillDisk did.
func (m *Machine) FreeDisk(directory string) error {
	return os.Remove(m.fillerPath(directory))
}

// fillerPath leads through the machine's own mounts, in which the limit is.
func (m *Machine) fillerPath(directory string) string {
	return fmt.Sprintf("/proc/%d/root%s/%s", m.initPid(), directory, filler)
}

// Shell runs a command on the machine with the caller's terminal.
func (m *Machine) Shell(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, argv ...string) error {
	cmd, err := m.Command(ctx, argv...)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	cmd.SysProcAttr, cmd.Cancel = nil, nil
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	return cmd.Run()
}
