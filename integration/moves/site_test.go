package moves

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
	fmt.Println(lab.Watched("moves"))
	os.Exit(code)
}

// How long things may take on two busy CPUs. None of these is a promise.
const (
	raiseLimit   = 3 * time.Minute
	commandLimit = 3 * time.Minute
	restoreLimit = 2 * time.Minute
	waitLimit    = 4 * time.Minute // a copy that hangs is given up after one, and is tried again
)

// passInterval is between two looks of the lab's leader.
const passInterval = 2 * time.Second

// site is the shared lab in the hands of one test.
type site struct {
	*testing.T
	lab   *lab.Lab
	watch *lab.Observer
}

// begin gives the test a whole and empty lab of four hosts and three coordinators.
func begin(t *testing.T) *site {
	t.Helper()
	if shared == nil {
		ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
		defer cancel()
		l, err := lab.Up(ctx, lab.Options{Name: "moves", Hosts: 4, Coordinators: 3, PassInterval: passInterval, Log: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		shared = l
	}
	s := &site{T: t, lab: shared, watch: shared.Observe()}
	t.Cleanup(s.end)
	return s
}

// end checks that no guest has ever run twice, and restores the lab, or takes it down so that the next test gets another one.
func (s *site) end() {
	for _, fault := range s.watch.Faults() {
		s.Error(fault)
	}
	if s.Failed() {
		s.explain()
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreLimit)
	defer cancel()
	if err := s.restore(ctx); err != nil {
		s.Errorf("the lab cannot be put back as it was: %v", err)
		s.explain()
		if err := s.lab.Down(); err != nil {
			s.Error(err)
		}
		shared = nil
	}
}

// explain shows what somebody wants to know about a test that failed.
func (s *site) explain() {
	for _, args := range [][]string{
		{"status"},
		{"vm", "list", "-o", "wide"},
		{"node", "list", "-o", "wide"},
		{"group", "list"},
		{"plan", "list", "-o", "wide"},
		{"plan", "show", "last", "-o", "wide"},
		{"events"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		result, err := s.lab.CLI(ctx, args...)
		cancel()
		s.Logf("berth %s: %v\n%s%s", strings.Join(args, " "), err, result.Stdout, result.Stderr)
	}
	for _, c := range s.lab.Coordinators {
		if text := c.Log(lab.Berth); text != "" {
			s.Logf("%s ends:\n%s", c.Name, text[max(0, len(text)-3000):])
		}
	}
}

// settings are those of the cluster that tests change.
const settings = "policy,enforcement,balancing,balance-window,cooldown,parallel-moves"

// restore mends what a test has broken and takes back what it has made.
func (s *site) restore(ctx context.Context) error {
	if err := s.mend(ctx); err != nil {
		return err
	}
	if _, err := s.lab.Berth(ctx, "cluster", "set", "default", "--balancing", "off", "--enforcement", "off"); err != nil {
		return err
	}
	var plans berthv1.ListPlansResponse
	if err := s.lab.Ask(ctx, &plans, "plan", "list", "--live"); err != nil {
		return err
	}
	for _, plan := range plans.GetPlans() {
		verb := "cancel"
		if plan.GetState() == "proposed" {
			verb = "discard"
		}
		_, _ = s.lab.CLI(ctx, "plan", verb, plan.GetId()) // it may have ended meanwhile
	}
	if err := errors.Join(s.forget(ctx, "group"), s.forgetVMs(ctx), s.reopen(ctx)); err != nil {
		return err
	}
	if _, err := s.lab.Berth(ctx, "cluster", "set", "default", "--unset", settings); err != nil {
		return err
	}
	return errors.Join(s.forget(ctx, "policy"), s.forget(ctx, "vdc"), s.forget(ctx, "customer"), s.forget(ctx, "cluster"))
}

// mend brings every machine and service back, and waits until Berth has them all.
func (s *site) mend(ctx context.Context) error {
	all, together := errgroup.WithContext(ctx)
	for _, c := range s.lab.Coordinators {
		all.Go(func() error {
			if c.Pid(lab.Berth) != 0 {
				return nil
			}
			return c.Start(together)
		})
	}
	for _, h := range s.lab.Hosts {
		all.Go(func() error { return powerOn(together, h) })
	}
	return errors.Join(all.Wait(), s.lab.AwaitReady(ctx))
}

// powerOn boots a host and starts what runs on it.
func powerOn(ctx context.Context, h *lab.Host) error {
	if err := h.PowerOn(ctx); err != nil {
		return err
	}
	if h.Pid(lab.Libvirtd) == 0 {
		if err := h.StartLibvirtd(ctx); err != nil {
			return err
		}
	}
	if h.Pid(lab.Agent) == 0 {
		return h.StartAgent(ctx)
	}
	return nil
}

// forget deletes all resources of a kind that somebody has made.
func (s *site) forget(ctx context.Context, kind string) error {
	listed, err := s.lab.Berth(ctx, kind, "list", "-o", "name")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(listed) {
		name = strings.TrimPrefix(name, kind+"/")
		if slices.Contains(builtin[kind], name) {
			continue
		}
		if _, err := s.lab.Berth(ctx, kind, "delete", name, "--yes"); err != nil {
			return err
		}
	}
	return nil
}

// builtin are resources that nobody can delete.
var builtin = map[string][]string{
	"policy": {"affinity", "evenly-distributed", "vm-evenly-distributed", "none"}, "cluster": {"default"},
}

func (s *site) forgetVMs(ctx context.Context) error {
	var list berthv1.ListVMsResponse
	if err := s.lab.Ask(ctx, &list, "vm", "list"); err != nil {
		return err
	}
	all, together := errgroup.WithContext(ctx)
	all.SetLimit(3)
	for _, vm := range list.GetVms() {
		all.Go(func() error { return s.remove(together, vm.GetName()) })
	}
	return all.Wait()
}

// remove waits until nothing works on a VM, and stops and deletes it.
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
			return fmt.Errorf("operation %s works on it", vm.GetOperationId())
		case vm.GetState() != berthv1.VMState_VM_STATE_STOPPED:
			_, last = s.lab.Berth(ctx, "vm", "stop", name, "--force")
			return errors.Join(fmt.Errorf("it is %s", vm.GetState()), last)
		}
		_, err := s.lab.Berth(ctx, "vm", "delete", name, "--yes")
		return err
	})
	if err != nil {
		return fmt.Errorf("remove VM %s: %w", name, err)
	}
	return nil
}

// reopen makes every node take VMs again, without labels.
func (s *site) reopen(ctx context.Context) error {
	var nodes berthv1.ListNodesResponse
	if err := s.lab.Ask(ctx, &nodes, "node", "list"); err != nil {
		return err
	}
	for _, node := range nodes.GetNodes() {
		if node.GetMaintenance() {
			if _, err := s.lab.Berth(ctx, "node", "undrain", node.GetName()); err != nil {
				return err
			}
		}
		if len(node.GetLabels()) > 0 {
			if _, err := s.lab.Berth(ctx, "node", "set", node.GetName(), "--reset", "label"); err != nil {
				return err
			}
		}
	}
	return nil
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
