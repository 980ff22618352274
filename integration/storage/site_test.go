package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// shared is the lab of all tests, nil before the first one and after a test that has spoiled it.
var shared *lab.Lab

func TestMain(m *testing.M) {
	lab.Child()
	code := m.Run()
	if shared != nil {
		if err := shared.Down(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	fmt.Println(lab.Watched("storage"))
	os.Exit(code)
}

// How long things may take on two busy CPUs. None of these is a promise.
const (
	raiseLimit   = 3 * time.Minute
	commandLimit = 2 * time.Minute
	restoreLimit = 2 * time.Minute
	waitLimit    = 90 * time.Second
)

// localRoom is what the pool of each host can hold.
const localRoom = 192 * units.MiB

// declared is what the lab's estate begins with. libvirt calls the pools "rack" and "local" on all hosts; what is in "rack"
// differs from pod to pod.
const declared = `format: berth/estate/v1
zones:
  - {name: home, apply_planner_heuristics_to: pod, capacity_threshold: 0}
pods:
  - {name: pod-east, zone: home}
  - {name: pod-west, zone: home}
clusters:
  - {name: east, pod: pod-east, overhead: 512M, cpu_ratio: 64, enforcement: "off", balancing: "off", permit: all}
  - {name: west, pod: pod-west, overhead: 512M, cpu_ratio: 64, enforcement: "off", balancing: "off", permit: all}
pools:
  - {name: east-rack, cluster: east, scope: shared, source: rack}
  - {name: west-rack, cluster: west, scope: shared, source: rack}
  - {name: east-own, cluster: east, scope: local, source: local}
  - {name: west-own, cluster: west, scope: local, source: local}
networks:
  - {name: wire, source: lab}
offers:
  - {name: spread, for: vm, planner: user-dispersing}
customers:
  - {name: acme}
vdcs:
  - {name: acme-home, customer: acme, zone: home}
`

// site is the shared lab in the hands of one test.
type site struct {
	*testing.T
	lab    *lab.Lab
	watch  *lab.Observer
	before []string // every volume of every pool
}

// begin gives the test a whole lab without VMs.
func begin(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, lab: shared}
	if shared == nil {
		ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
		defer cancel()
		l, err := lab.Up(ctx, lab.Options{Name: "storage", Hosts: 4, Coordinators: 1, LocalPool: localRoom, Log: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		shared, s.lab = l, l
		if err := s.furnish(ctx); err != nil {
			shared = nil
			t.Fatal(errors.Join(err, l.Down()))
		}
	}
	var err error
	s.before, err = s.lab.Volumes(t.Context())
	s.must(err)
	s.watch = s.lab.Observe()
	t.Cleanup(s.end)
	return s
}

// furnish builds the two pods and puts the guests' image into the pool of the first one.
func (s *site) furnish(ctx context.Context) error {
	all, together := errgroup.WithContext(ctx)
	all.Go(func() error { return s.lab.MakeDiskImage(together) })
	for i, h := range s.lab.Hosts {
		directory := lab.SharedDir + "/racks/" + []string{"east", "west"}[i/2]
		all.Go(func() error { return h.AddPool(together, "rack", directory) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	estate := declared + "nodes:\n"
	for i, h := range s.lab.Hosts {
		estate += fmt.Sprintf("  - {name: %s, cluster: %s}\n", h.Name, []string{"east", "west"}[i/2])
	}
	if err := os.WriteFile(s.lab.Operator.Path("/var/tmp/estate.yaml"), []byte(estate), 0o644); err != nil {
		return err
	}
	if _, err := s.lab.Berth(ctx, "apply", "-f", "/var/tmp/estate.yaml"); err != nil {
		return err
	}
	return poll(ctx, 20*time.Second, func() error { // an agent may not have seen its new pool yet
		_, err := s.lab.Berth(ctx, "image", "import", lab.DiskImage, "--name", bootImage, "--pool", "east-rack")
		return err
	})
}

// bootImage is the guests' image, in the pool east-rack.
const bootImage = "boot"

// end checks that no guest has ever run twice, and puts the lab back as it was and checks that every pool has what it had.
// Otherwise the lab is taken down, so that the
// next test gets another one.
func (s *site) end() {
	for _, fault := range s.watch.Faults() {
		s.Error(fault)
	}
	if s.Failed() {
		s.explain()
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreLimit)
	defer cancel()
	err := s.restore(ctx)
	if err == nil {
		err = s.nothingLeft(ctx)
	}
	if err == nil {
		return
	}
	s.Errorf("the lab is not as it was: %v", err)
	s.explain()
	if err := s.lab.Down(); err != nil {
		s.Error(err)
	}
	shared = nil
}

// restore mends what a test has broken and takes back what it has made.
func (s *site) restore(ctx context.Context) error {
	all, together := errgroup.WithContext(ctx)
	for _, h := range s.lab.Hosts {
		all.Go(func() error {
			if h.Pid(lab.Agent) != 0 {
				return nil
			}
			return h.StartAgent(together)
		})
	}
	if err := errors.Join(all.Wait(), s.lab.AwaitReady(ctx)); err != nil {
		return err
	}
	var list berthv1.ListVMsResponse
	if err := s.lab.Ask(ctx, &list, "vm", "list"); err != nil {
		return err
	}
	all, together = errgroup.WithContext(ctx)
	all.SetLimit(4)
	for _, vm := range list.GetVms() {
		all.Go(func() error { return s.remove(together, vm.GetName()) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return errors.Join(s.forget(ctx, "disk"), s.forget(ctx, "image", bootImage), s.forget(ctx, "nic"), s.forget(ctx, "network", "wire"),
		s.forget(ctx, "offer", "spread"), s.forget(ctx, "vdc", "acme-home"), s.forget(ctx, "pod", "pod-east", "pod-west"))
}

// forget deletes all resources of a kind but those that the lab begins with.
func (s *site) forget(ctx context.Context, kind string, but ...string) error {
	listed, err := s.lab.Berth(ctx, kind, "list", "-o", "name")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(listed) {
		name = strings.TrimPrefix(name, kind+"/")
		if slices.Contains(but, name) {
			continue
		}
		if _, err := s.lab.Berth(ctx, kind, "delete", name, "--yes"); err != nil {
			return err
		}
	}
	return nil
}

// remove waits until nothing works on a VM, and stops and deletes it with its disks.
func (s *site) remove(ctx context.Context, name string) error {
	err := poll(ctx, restoreLimit, func() error {
		var answer berthv1.GetVMResponse
		if err := s.lab.Ask(ctx, &answer, "vm", "show", name); err != nil {
			return err
		}
		vm := answer.GetVm()
		switch {
		case vm.GetOperationId() != "":
			return fmt.Errorf("operation %s works on it", vm.GetOperationId())
		case vm.GetState() != berthv1.VMState_VM_STATE_STOPPED:
			_, err := s.lab.Berth(ctx, "vm", "stop", name, "--force")
			return errors.Join(fmt.Errorf("it is %s", vm.GetState()), err)
		}
		_, err := s.lab.Berth(ctx, "vm", "delete", name, "--yes")
		return err
	})
	if err != nil {
		return fmt.Errorf("remove VM %s: %w", name, err)
	}
	return nil
}

// nothingLeft tells whether every pool has the volumes that it had when the test began.
func (s *site) nothingLeft(ctx context.Context) error {
	return poll(ctx, 10*time.Second, func() error {
		now, err := s.lab.Volumes(ctx)
		if err == nil && !slices.Equal(now, s.before) {
			err = fmt.Errorf("the pools have\n%s\nand had\n%s", strings.Join(now, "\n"), strings.Join(s.before, "\n"))
		}
		return err
	})
}

// explain shows what somebody wants to know about a test that failed.
func (s *site) explain() {
	for _, args := range [][]string{
		{"status"},
		{"vm", "list", "-o", "wide"},
		{"node", "list", "-o", "wide"},
		{"pool", "list"},
		{"disk", "list", "-o", "wide"},
		{"decision", "show", "last"},
		{"events"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		result, err := s.lab.CLI(ctx, args...)
		cancel()
		s.Logf("berth %s: %v\n%s%s", strings.Join(args, " "), err, result.Stdout, result.Stderr)
	}
	for _, c := range s.lab.Coordinators {
		s.logEnd(c.Machine, lab.Berth)
	}
	for _, h := range s.lab.Hosts {
		s.logEnd(h.Machine, lab.Agent)
	}
}

func (s *site) logEnd(m *lab.Machine, service string) {
	if text := m.Log(service); text != "" {
		s.Logf("%s of %s ends:\n%s", service, m.Name, text[max(0, len(text)-2500):])
	}
}

// poll asks until the answer is no error, or time runs out; the error is then the last one.
func poll(ctx context.Context, limit time.Duration, ask func() error) error {
	begun := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 400*time.Millisecond) {
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

// comes waits until what is to come true holds. What does not ends the test.
func (s *site) comes(what string, holds func() error) {
	s.Helper()
	if err := poll(s.Context(), waitLimit, holds); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// must ends the test at an error that is not what it is about.
func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// file puts a file on the operator's machine and returns its path there.
func (s *site) file(name, text string) string {
	s.Helper()
	path := filepath.Join("/var/tmp", name)
	s.must(os.WriteFile(s.lab.Operator.Path(path), []byte(text), 0o644))
	return path
}
