package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Lab is a raised lab.
type Lab struct {
	network

	Name         string
	Dir          string
	Hosts        []*Host
	Coordinators []*Coordinator
	Operator     *Machine // where the CLI runs
	// VirtType is "kvm" where KVM has booted a probe guest, else "qemu" (TCG).
	VirtType string
	// Kept tells that the lab outlives the process that has raised it.
	Kept bool

	options Options
	reaper  *exec.Cmd // nil in a process that has not raised the lab
	owner   io.Closer // the pipe to the reaper
	known   processes
}

func newLab(name string) *Lab {
	l := &Lab{Name: name}
	l.lab = l
	return l
}

// record is what a lab leaves for Open.
type record struct {
	Name         string
	VirtType     string
	Hosts        int
	Coordinators int
	Kept         bool
}

const recordFile = "lab.json"

// Up raises a lab and returns when every node and coordinator is ready. On an error nothing is left of it, but the
// error has the ends of the logs that explain it.
func Up(ctx context.Context, options Options) (*Lab, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	l := newLab(options.Name)
	l.Kept, l.options = options.Keep, options
	if err := l.startReaper(); err != nil {
		return nil, fmt.Errorf("raise lab %s: %w", l.Name, err)
	}
	if err := (raising{l}).raise(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("raise lab %s: %w", l.Name, err), l.Down())
	}
	return l, nil
}

// logf tells the owner what is being done.
func (l *Lab) logf(format string, args ...any) {
	fmt.Fprintf(l.options.Log, format+"\n", args...)
}

// startReaper starts the process that owns the lab from now on.
func (l *Lab) startReaper() error {
	alive, owner, err := os.Pipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	reaper := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{roleReaper, l.Name}, Env: environment(),
		Stdin: alive, Stdout: say, Stderr: say,
		// A session of its own keeps Ctrl-C on the terminal from it.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = reaper.Start()
	say.Close()
	if err != nil {
		return errors.Join(err, owner.Close())
	}
	line, _ := bufio.NewReader(said).ReadString('\n')
	dir, ready := strings.CutPrefix(strings.TrimSpace(line), sayReady)
	if !ready {
		return errors.Join(fmt.Errorf("the lab's init did not start: %s", strings.TrimSpace(line)), owner.Close(), reaper.Wait())
	}
	l.Dir, l.reaper, l.owner = dir, reaper, owner
	return nil
}

// initPid is process 1 of the lab as seen from outside, 0 when it is down.
func (l *Lab) initPid() int { return l.known.role(roleInit, l.Dir) }

// Machines are all of them: the operator, the coordinators, the hosts.
func (l *Lab) Machines() []*Machine {
	all := []*Machine{l.Operator}
	for _, c := range l.Coordinators {
		all = append(all, c.Machine)
	}
	for _, h := range l.Hosts {
		all = append(all, h.Machine)
	}
	return all
}

// Machine finds a machine by name.
func (l *Lab) Machine(name string) (*Machine, error) {
	var names []string
	for _, m := range l.Machines() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("lab %s has no machine %q, it has %s", l.Name, name, strings.Join(names, ", "))
}

// Host finds a host by name.
func (l *Lab) Host(name string) (*Host, error) {
	for _, h := range l.Hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("lab %s has no host %q", l.Name, name)
}

// layOut names the machines. The addresses are the same in every lab; no lab can see another one.
func (l *Lab) layOut(coordinators, hosts int) {
	machine := func(name string, number int) *Machine {
		return &Machine{Name: name, Address: fmt.Sprintf("10.77.0.%d", number), lab: l}
	}
	l.Operator = machine("operator", 2)
	for i := range coordinators {
		l.Coordinators = append(l.Coordinators, &Coordinator{machine(fmt.Sprintf("coord%d", i+1), 11+i)})
	}
	for i := range hosts {
		l.Hosts = append(l.Hosts, &Host{machine(fmt.Sprintf("node%d", i+1), 21+i)})
	}
}

// leaveRecord lets other processes find the lab, and keeps it if that was asked for.
func (l *Lab) leaveRecord() error {
	text, err := json.MarshalIndent(record{l.Name, l.VirtType, len(l.Hosts), len(l.Coordinators), l.Kept}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.Dir, recordFile), text, 0o644); err != nil {
		return err
	}
	if !l.Kept {
		return nil
	}
	if _, err := io.WriteString(l.owner.(io.Writer), sayKeep); err != nil {
		return err
	}
	return l.owner.Close()
}

// Down takes the lab away and checks that nothing is left. Taking down a lab that is down is no error.
func (l *Lab) Down() error {
	lock := filepath.Join(l.Dir, lockFile)
	first := l.initPid()
	var namespace string
	if first != 0 {
		namespace, _ = pidNamespace(first)
	}
	if l.owner != nil {
		_ = l.owner.Close() // a second close is no harm
	}
	if holder, err := lockHolder(lock); err == nil && holder != 0 {
		if err := syscall.Kill(holder, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the reaper of lab %s: %w", l.Name, err)
		}
	}
	if l.reaper != nil {
		_ = l.reaper.Wait() // the exit status of a reaper that was told to end says nothing
	}
	err := await(context.Background(), "lab "+l.Name+" to go away", 30*time.Second, func() (bool, error) {
		holder, err := lockHolder(lock)
		return holder == 0 || err != nil, nil
	})
	if err != nil {
		return err
	}
	// Only a reaper that was killed leaves its directory; the lab's init has died with it.
	if err := os.RemoveAll(l.Dir); err != nil {
		return err
	}
	if namespace == "" {
		return nil
	}
	// The kernel has told them all to end. On a busy machine that takes some of them a moment.
	return await(context.Background(), "the processes of lab "+l.Name+" to end", 30*time.Second, func() (bool, error) {
		return len(processesIn(namespace)) == 0, nil
	})
}

// Open finds a lab of this machine by its name or directory.
func Open(name string) (*Lab, error) {
	labs, err := List()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range labs {
		if l.Name == name || l.Dir == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	if len(names) == 0 {
		return nil, errors.New("no lab is up; raise one with: make lab")
	}
	return nil, fmt.Errorf("no lab is called %q, there is %s", name, strings.Join(names, ", "))
}

// List is every lab of this machine that has been raised completely, and every one whose reaper was killed.
func List() ([]*Lab, error) {
	dirs, err := filepath.Glob(dirPrefix + "*")
	if err != nil {
		return nil, err
	}
	var labs []*Lab
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, recordFile))
		var found record
		if err == nil {
			err = json.Unmarshal(text, &found)
		}
		holder, lockErr := lockHolder(filepath.Join(dir, lockFile))
		switch {
		case err == nil:
			l := newLab(found.Name)
			l.Dir, l.VirtType, l.Kept = dir, found.VirtType, found.Kept
			l.layOut(found.Coordinators, found.Hosts)
			labs = append(labs, l)
		case lockErr == nil && holder == 0:
			l := newLab(filepath.Base(dir))
			l.Dir = dir
			labs = append(labs, l)
		}
	}
	return labs, nil
}

// Alive tells whether the lab's reaper lives. One that does not has left only its directory.
func (l *Lab) Alive() bool {
	holder, err := lockHolder(filepath.Join(l.Dir, lockFile))
	return err == nil && holder != 0
}
