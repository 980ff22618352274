package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

var (
	long = flag.Bool("long", os.Getenv("RELEASE") == "1", "every fault at every moment; RELEASE=1 asks for it, too")
	labs = flag.Int("labs", 2, "how many labs there are, and so how many tests at a time")
)

// idle has the labs that no test uses now. One that is nil has to be raised: it was not needed before, or a test has spoiled it.
var idle chan *lab.Lab

func TestMain(m *testing.M) {
	lab.Child()
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(*labs)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	idle = make(chan *lab.Lab, *labs)
	for range *labs {
		idle <- nil
	}
	code := m.Run()
	close(idle)
	for l := range idle {
		if l == nil {
			continue
		}
		if err := l.Down(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	goals()
	os.Exit(code)
}

// How long things may take on two busy CPUs. None of these is a promise; a promise is named where it is tested.
const (
	raiseLimit   = 4 * time.Minute
	commandLimit = 3 * time.Minute
	restoreLimit = 2 * time.Minute
)

// site is a lab in the hands of one test.
type site struct {
	*testing.T
	lab   *lab.Lab
	watch *lab.Observer
}

// begin gives the test a whole and empty lab of three hosts and three coordinators, beside the tests that have another one.
// At the end of the test no guest may ever have run twice, and the lab is put back as it was.
func begin(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	s := &site{T: t, lab: <-idle}
	t.Cleanup(func() { idle <- s.lab })
	if s.lab == nil {
		ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
		defer cancel()
		var err error
		if s.lab, err = lab.Up(ctx, lab.Options{Name: "chaos", Hosts: 3, Coordinators: 3, Log: t.Output()}); err != nil {
			t.Fatal(err)
		}
	}
	s.watch = s.lab.Observe()
	t.Cleanup(s.end)
	return s
}

// end checks what holds after every test, and restores the lab.
func (s *site) end() {
	if s.Failed() {
		s.explain()
	}
	s.watch.Stop()
	for _, overlap := range s.watch.Overlaps() {
		tally.add(&tally.twice)
		s.Error(overlap)
	}
	for _, err := range s.watch.Errors() {
		s.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreLimit)
	defer cancel()
	begun := time.Now()
	err := s.restore(ctx)
	s.Logf("the lab is as it was: after %s", time.Since(begun).Round(100*time.Millisecond))
	if err != nil {
		s.Errorf("the lab cannot be put back as it was: %v", err)
		s.explain()
		if err := s.lab.Down(); err != nil {
			s.Error(err)
		}
		s.lab = nil
	}
}

// sub runs a part of the test under a name of its own.
func (s *site) sub(name string, part func(*site)) {
	s.Run(name, func(t *testing.T) { part(&site{T: t, lab: s.lab, watch: s.watch}) })
}

// explain shows what somebody wants to know about a test that failed.
func (s *site) explain() {
	for _, args := range [][]string{{"status"}, {"vm", "list", "-o", "wide"}, {"operation", "list"}, {"events"}} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		result, err := s.lab.CLI(ctx, args...)
		cancel()
		s.Logf("berth %s: %v\n%s%s", strings.Join(args, " "), err, result.Stdout, result.Stderr)
	}
	for _, m := range s.lab.Machines() {
		for _, service := range []string{lab.Berth, lab.Agent, lab.Libvirtd} {
			if text := m.Log(service); text != "" {
				s.Logf("%s on %s ends:\n%s", service, m.Name, text[max(0, len(text)-3000):])
			}
		}
	}
	for _, host := range s.lab.Hosts {
		for _, guest := range host.QEMUs() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			state, stateErr := host.Virsh(ctx, "domstate", "--reason", guest.Name)
			job, jobErr := host.Virsh(ctx, "domjobinfo", guest.Name)
			migration, err := host.Migration(guest.Name)
			cancel()
			s.Logf("%s on %s: %s%sits QEMU says of a migration: %+v; %v", guest.Name, host.Name, state, job, migration,
				errors.Join(stateErr, jobErr, err))
		}
	}
	for _, run := range s.watch.Runs() {
		s.Logf("%s ran on %s from %s to %s", run.Name, run.Host, run.From.Format(time.TimeOnly), run.To.Format(time.TimeOnly))
	}
}

// restore mends everything that a test may have broken, and removes every VM.
func (s *site) restore(ctx context.Context) error {
	if err := s.mend(ctx); err != nil {
		return err
	}
	var list berthv1.ListVMsResponse
	if err := s.lab.Ask(ctx, &list, "vm", "list"); err != nil {
		return err
	}
	for _, vm := range list.GetVms() {
		if err := s.remove(ctx, vm.GetName()); err != nil {
			return err
		}
	}
	for _, host := range s.lab.Hosts {
		if guests := host.QEMUs(); len(guests) > 0 {
			return fmt.Errorf("%s still has %d guests of no VM, %s is the first", host.Name, len(guests), guests[0].Name)
		}
	}
	return s.lab.ForgetSerialLogs()
}

// mend brings every machine, link and service back, and waits until Berth has them all.
func (s *site) mend(ctx context.Context) error {
	all, together := errgroup.WithContext(ctx)
	for _, c := range s.lab.Coordinators {
		all.Go(func() error { return s.mendCoordinator(together, c) })
	}
	for _, h := range s.lab.Hosts {
		all.Go(func() error { return s.mendHost(together, h) })
	}
	if err := errors.Join(s.lab.Heal(ctx), all.Wait()); err != nil {
		return err
	}
	return s.lab.AwaitReady(ctx)
}

func (s *site) mendCoordinator(ctx context.Context, c *lab.Coordinator) error {
	if err := c.PowerOn(ctx); err != nil {
		return err
	}
	if err := c.RestoreLink(ctx); err != nil {
		return err
	}
	if c.Pid(lab.Berth) != 0 {
		return c.Continue()
	}
	return c.Start(ctx)
}

func (s *site) mendHost(ctx context.Context, h *lab.Host) error {
	if err := h.PowerOn(ctx); err != nil {
		return err
	}
	if err := h.RestoreLink(ctx); err != nil {
		return err
	}
	if h.Pid(lab.Libvirtd) != 0 {
		if err := h.Continue(lab.Libvirtd); err != nil {
			return err
		}
	} else if err := h.StartLibvirtd(ctx); err != nil {
		return err
	}
	if h.Pid(lab.Agent) != 0 {
		return h.Continue(lab.Agent)
	}
	return h.StartAgent(ctx)
}

// remove ends what works on a VM, stops and deletes it.
func (s *site) remove(ctx context.Context, name string) error {
	var last error
	err := poll(ctx, restoreLimit, func() error {
		var answer berthv1.GetVMResponse
		if err := s.lab.Ask(ctx, &answer, "vm", "show", name); err != nil {
			return err
		}
		vm := answer.GetVm()
		switch {
		case vm.GetOperationId() != "":
			_, last = s.lab.Berth(ctx, "operation", "cancel", vm.GetOperationId())
			return fmt.Errorf("operation %s works on it", vm.GetOperationId())
		case vm.GetState() != berthv1.VMState_VM_STATE_STOPPED && vm.GetNode() != "":
			_, last = s.lab.Berth(ctx, "vm", "stop", name, "--force")
			return fmt.Errorf("it is %s", vm.GetState())
		}
		_, err := s.lab.Berth(ctx, "vm", "delete", name, "--yes")
		return err
	})
	if err != nil {
		return fmt.Errorf("remove VM %s: %w", name, errors.Join(err, last))
	}
	return nil
}

// poll asks until the answer is no error, or time runs out; the error is then the last one.
func poll(ctx context.Context, limit time.Duration, ask func() error) error {
	begun := time.Now()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := ask()
		if err == nil {
			return nil
		}
		left := limit - time.Since(begun)
		if left <= 0 {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(min(pause, left)):
		}
	}
}

// within waits until what is promised holds. A promise that is not kept in time ends the test.
func (s *site) within(limit time.Duration, promise string, holds func() error) {
	s.Helper()
	begun := time.Now()
	if err := poll(s.Context(), limit, holds); err != nil {
		s.Fatalf("%s: %v", promise, err)
	}
	if took := time.Since(begun); took > time.Second {
		s.Logf("%s: after %s", promise, took.Round(100*time.Millisecond))
	}
}

// must ends the test at an error that is not what it is about.
func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}
