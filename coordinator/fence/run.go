package fence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/model"
	"berth/shared/reach"
)

// Directories are where fence agents are looked for if nobody says otherwise.
var Directories = []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin"}

// ErrNoAgent says that the program is not on this machine.
var ErrNoAgent = errors.New("there is no such fence agent on this machine")

// ErrUnknown says that the device gave no answer that means anything.
var ErrUnknown = errors.New("the fence agent gave no answer that counts")

// Runner runs fence agents, or has them run. It is safe for concurrent use.
type Runner struct {
	Directories []string // of the programs, in the order in which they are looked into; none: Directories
	// Socket is where a service runs fence agents under another account, which looks into its own directories; empty: this process does.
	Socket string
}

// New makes a Runner, and says in the log if fence agents run as the coordinator's own account.
func New(directories []string, socket string, log hclog.Logger) *Runner {
	if socket == "" {
		log.Warn("fence agents run as this coordinator's own account, which reads the key of the cluster's authority",
			"next_step", "run the coordinator by berth-coordinator.service, or with --fence-socket and what listens there")
	}
	return &Runner{Directories: directories, Socket: socket}
}

// Exit codes of fence agents. For action=status, 2 says that the machine is off.
const (
	exitDone = 0
	exitOff  = 2
)

// killGrace is how long a program that was ended may take to let go of its output.
const killGrace = 2 * time.Second

// Off switches a machine off and asks whether it is. Nil means proven: each of its devices has said that it switched it off, and then,
// when all had, that it is off. Any error means that nothing is known. Each of the two calls may take the device's timeout. The
// devices are asked one after the other: many power strips let one caller in at a time.
func (r *Runner) Off(ctx context.Context, devices model.FenceDevice) error {
	all := devices.All()
	for _, device := range all {
		if err := r.off(ctx, device); err != nil {
			return of(device, all, err)
		}
	}
	for _, device := range all {
		if err := r.isOff(ctx, device); err != nil {
			return of(device, all, err)
		}
	}
	return nil
}

// of says which of several devices an error is of.
func of(device model.FenceDevice, all []model.FenceDevice, err error) error {
	if len(all) == 1 {
		return err
	}
	return fmt.Errorf("%s: %w", device.Target(), err)
}

func (r *Runner) off(ctx context.Context, device model.FenceDevice) error {
	code, said, err := r.run(ctx, device, "off")
	switch {
	case err != nil:
		return err
	case code != exitDone:
		return fmt.Errorf("%w: %s ended with code %d when it was told to switch off%s", ErrUnknown, device.Program, code, said)
	}
	return nil
}

func (r *Runner) isOff(ctx context.Context, device model.FenceDevice) error {
	on, err := r.On(ctx, device)
	switch {
	case err != nil:
		return fmt.Errorf("after it was switched off: %w", err)
	case on:
		return fmt.Errorf("%w: %s said that it has switched the machine off, and then that it is on", ErrUnknown, device.Program)
	}
	return nil
}

// On asks one device whether its machine is on. With an error, nothing is known.
func (r *Runner) On(ctx context.Context, device model.FenceDevice) (on bool, err error) {
	code, said, err := r.run(ctx, device, "status")
	switch {
	case err != nil:
		return false, err
	case code == exitDone:
		return true, nil
	case code == exitOff:
		return false, nil
	}
	return false, fmt.Errorf("%w: %s ended with code %d when it was asked for the power state%s", ErrUnknown, device.Program, code, said)
}

// Reach is the first of some addresses (HOST:PORT) that takes a connection from this machine; empty: none does.
func (r *Runner) Reach(ctx context.Context, addresses []string) string {
	return reach.Any(ctx, addresses)
}

// run runs the program once. What it said is in words, to be put after a sentence.
func (r *Runner) run(ctx context.Context, device model.FenceDevice, action string) (code int, said string, err error) {
	// What may be set was checked when it was. A device of an earlier release goes on to work as it was set.
	if err := model.RunnableFenceDevice(device); err != nil {
		return 0, "", err
	}
	if r.Socket != "" {
		answer, err := r.ask(ctx, request{Device: device, Action: action}, device.Within())
		return answer.Code, answer.Said, err
	}
	path, err := r.find(device.Program)
	if err != nil {
		return 0, "", err
	}
	within := device.Within()
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %s", within))
	defer cancel()
	output := &tail{}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(input(device, action))
	cmd.Stdout, cmd.Stderr = output, output
	// A fence agent starts others (ssh, ipmitool): none of them may go on when Berth believes that the call is over.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	err = cmd.Run()
	said = output.said(device)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, "", fmt.Errorf("%w: %s: %w%s", ErrUnknown, device.Program, context.Cause(ctx), said)
	case err == nil:
		return exitDone, said, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), said, nil
	default:
		return 0, "", fmt.Errorf("%w: %s: %w%s", ErrUnknown, device.Program, err, said)
	}
}

// input is what the program reads.
func input(device model.FenceDevice, action string) string {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(device.Arguments)) {
		fmt.Fprintf(&lines, "%s=%s\n", name, device.Arguments[name])
	}
	fmt.Fprintf(&lines, "action=%s\n", action)
	return lines.String()
}

func (r *Runner) find(program string) (string, error) {
	directories := r.Directories
	if len(directories) == 0 {
		directories = Directories
	}
	for _, directory := range directories {
		path := filepath.Join(directory, program)
		about, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("look for the fence agent: %w", err)
		case about.Mode().IsRegular() && about.Mode()&0o111 != 0:
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s is in none of %s", ErrNoAgent, program, strings.Join(directories, ", "))
}

// maxOutput is how much of a program's output is kept, in bytes: the end of it, where it says what went wrong.
const maxOutput = 2048

// tail keeps the end of what is written to it.
type tail struct{ text bytes.Buffer }

func (t *tail) Write(data []byte) (int, error) {
	t.text.Write(data)
	if over := t.text.Len() - maxOutput; over > maxOutput { // not at each write
		t.text.Next(over)
	}
	return len(data), nil
}

// said is the end of the output in one line, without the device's secrets; empty if there was none.
func (t *tail) said(device model.FenceDevice) string {
	text := t.text.String()
	for name, value := range device.Arguments {
		if model.Secret(name) && value != "" {
			text = strings.ReplaceAll(text, value, model.Masked)
		}
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if text == "" {
		return ""
	}
	const most = 300
	if len(text) > most {
		text = "..." + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return ": it said " + fmt.Sprintf("%q", text)
}
