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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/shared/units"
)

// Options says what to raise.
type Options struct {
	Name         string        // letters and digits; part of the directory's name; default "lab"
	Hosts        int           // hypervisors, 0 to 200
	Coordinators int           // 0 for a lab of hypervisors only, at most 5
	HostMemory   []units.Bytes // of the hosts in turn, over and over; default 4 GiB each
	HostReserve  units.Bytes   // part of it that is never free, default 512 MiB
	Binaries     string        // directory of berth and berth-agent, default bin/ of the module
	Bare         bool          // raise coordinators and hosts, but leave Berth on them unconfigured and stopped
	Keep         bool          // the lab outlives this process, until Down or `berth-lab down`
	Log          io.Writer     // what is being done, a line each; default none
}

// Lab is a raised lab.
type Lab struct {
	Name         string
	Dir          string
	Hosts        []*Host
	Coordinators []*Coordinator
	Operator     *Machine // where the CLI runs
	// VirtType is "kvm" where KVM has booted a probe guest, else "qemu" (TCG).
	VirtType string

	options Options
	reaper  *exec.Cmd // nil in a process that has not raised the lab
	owner   io.Closer // the pipe to the reaper
}

// record is what a kept lab leaves for Open.
type record struct {
	Name         string
	VirtType     string
	Hosts        int
	Coordinators int
}

const recordFile = "lab.json"

var validName = regexp.MustCompile(`^[A-Za-z0-9]{1,20}$`)

// complete fills in the defaults and refuses what cannot be raised.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = "lab"
	}
	if len(o.HostMemory) == 0 {
		o.HostMemory = []units.Bytes{4 * units.GiB}
	}
	if o.HostReserve == 0 {
		o.HostReserve = 512 * units.MiB
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	switch {
	case !validName.MatchString(o.Name):
		return o, fmt.Errorf("lab name %q: want up to 20 letters and digits", o.Name)
	case o.Hosts < 0 || o.Hosts > 200 || o.Coordinators < 0 || o.Coordinators > 5:
		return o, fmt.Errorf("a lab of %d hosts and %d coordinators is out of range", o.Hosts, o.Coordinators)
	case o.HostReserve < 0 || slices.Min(o.HostMemory) <= o.HostReserve:
		return o, fmt.Errorf("a host of %v with %v reserved has no memory", slices.Min(o.HostMemory), o.HostReserve)
	case os.Geteuid() != 0:
		return o, errors.New("a lab needs root: it makes namespaces and mounts")
	}
	for _, tool := range []string{"ip", "nft", "nsenter", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			return o, fmt.Errorf("%w; install what a lab needs with: make deps", err)
		}
	}
	if o.Binaries == "" {
		root, err := moduleRoot()
		if err != nil {
			return o, err
		}
		o.Binaries = filepath.Join(root, "bin")
	}
	var err error
	if o.Binaries, err = filepath.Abs(o.Binaries); err != nil {
		return o, err
	}
	for _, binary := range []struct {
		name   string
		wanted bool
	}{{"berth", o.Coordinators > 0}, {"berth-agent", o.Coordinators > 0 && o.Hosts > 0}} {
		if _, err := os.Stat(filepath.Join(o.Binaries, binary.name)); binary.wanted && err != nil {
			return o, fmt.Errorf("%w; build it with: make build", err)
		}
	}
	return o, nil
}

// moduleRoot is the directory of go.mod, upwards from the working directory.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", fmt.Errorf("no go.mod in %s or above it: say where the binaries are", start)
		}
	}
}

// Up raises a lab and returns when every node and coordinator is ready. On an error nothing is left of it, but the
// error has the ends of the logs that explain it.
func Up(ctx context.Context, options Options) (*Lab, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	l := &Lab{Name: options.Name, options: options}
	if err := l.startReaper(); err != nil {
		return nil, fmt.Errorf("raise lab %s: %w", l.Name, err)
	}
	if err := l.raise(ctx); err != nil {
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
func (l *Lab) initPid() int { return findRole(roleInit, l.Dir) }

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

// raise builds the lab from nothing.
func (l *Lab) raise(ctx context.Context) error {
	l.layOut(l.options.Coordinators, l.options.Hosts)
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	if err := errors.Join(l.build(authority), l.prepareGuests()); err != nil {
		return err
	}
	if err := l.boot(ctx); err != nil {
		return err
	}
	l.logf("%d hosts and %d coordinators have booted; guests run under %s", len(l.Hosts), len(l.Coordinators), l.VirtType)
	if len(l.Coordinators) > 0 && !l.options.Bare {
		if err := l.enrolHosts(ctx); err != nil {
			return err
		}
		l.logf("%d coordinators and %d nodes are ready", len(l.Coordinators), len(l.Hosts))
	}
	return l.leaveRecord()
}

// boot brings the machines and what runs on them up, as much as possible at once.
func (l *Lab) boot(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return l.raiseCoordinators(ctx) })
	for _, h := range l.Hosts {
		all.Go(func() error {
			if err := h.PowerOn(ctx); err != nil {
				return err
			}
			return h.StartLibvirtd(ctx)
		})
	}
	return all.Wait()
}

// raiseCoordinators brings up what the hosts do not need to boot: the operator, the answer which virtualisation guests
// can have, and the cluster without nodes.
func (l *Lab) raiseCoordinators(ctx context.Context) error {
	power, powering := errgroup.WithContext(ctx)
	power.Go(func() error { return l.Operator.PowerOn(powering) })
	for _, c := range l.Coordinators {
		power.Go(func() error { return c.PowerOn(powering) })
	}
	if err := power.Wait(); err != nil {
		return err
	}
	rest, ctx := errgroup.WithContext(ctx)
	rest.Go(func() (err error) {
		l.VirtType, err = l.probeOnce(ctx)
		return err
	})
	if len(l.Coordinators) > 0 && !l.options.Bare {
		rest.Go(func() error { return l.foundCluster(ctx) })
	}
	return rest.Wait()
}

// build makes the directories of all machines.
func (l *Lab) build(authority *authority) error {
	for _, dir := range []string{"shared/bin", "shared/serial", "shared/images"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	hosts := "127.0.0.1 localhost\n"
	for _, m := range l.Machines() {
		hosts += m.Address + " " + m.Name + "\n"
	}
	spec := machineSpec{Binaries: l.options.Binaries, Kind: kindOperator}
	if err := l.Operator.build(spec, hosts); err != nil {
		return err
	}
	spec.Kind = kindCoordinator
	for _, c := range l.Coordinators {
		if err := c.build(spec, hosts); err != nil {
			return err
		}
	}
	spec.Kind = kindHost
	for i, h := range l.Hosts {
		if err := h.build(spec, hosts); err != nil {
			return err
		}
		memory := l.options.HostMemory[i%len(l.options.HostMemory)]
		if err := h.configure(authority, Shape{Memory: memory, Reserve: l.options.HostReserve}); err != nil {
			return err
		}
	}
	return nil
}

// leaveRecord lets other processes find the lab, and keeps it if that was asked for.
func (l *Lab) leaveRecord() error {
	text, err := json.MarshalIndent(record{l.Name, l.VirtType, len(l.Hosts), len(l.Coordinators)}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(l.Dir, recordFile), text, 0o644); err != nil {
		return err
	}
	if !l.options.Keep {
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
	if namespace != "" && len(processesIn(namespace)) > 0 {
		return fmt.Errorf("lab %s is down, but processes of it are left", l.Name)
	}
	return nil
}

// Open finds a lab that was kept, by its name or directory.
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
			l := &Lab{Name: found.Name, Dir: dir, VirtType: found.VirtType}
			l.layOut(found.Coordinators, found.Hosts)
			labs = append(labs, l)
		case lockErr == nil && holder == 0:
			labs = append(labs, &Lab{Name: filepath.Base(dir), Dir: dir})
		}
	}
	return labs, nil
}

// Alive tells whether the lab's reaper lives. One that does not has left only its directory.
func (l *Lab) Alive() bool {
	holder, err := lockHolder(filepath.Join(l.Dir, lockFile))
	return err == nil && holder != 0
}
