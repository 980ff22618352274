package hostile

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/integration/bench/report"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// How long things may take on a busy machine. None is a promise.
const (
	raiseLimit = 5 * time.Minute
	startLimit = 5 * time.Minute
	patience   = 3 * time.Minute
)

const (
	callers = 3  // start VMs at a time
	starts  = 12 // alone, and as many beside the hostile one
	least   = 100
)

// site is a lab of three hosts and three coordinators. The last host is taken over.
type site struct {
	*testing.T
	lab   *lab.Lab
	watch *lab.Observer
	pids  []int // of the coordinators

	mu      sync.Mutex
	running []string // VMs that were started, by name
}

func raise(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
	defer cancel()
	l, err := lab.Up(ctx, lab.Options{Name: "hostile", Hosts: 3, Coordinators: 3, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, lab: l, watch: l.Observe()}
	t.Cleanup(func() {
		for _, fault := range append(s.watch.Faults(), l.Down()) {
			if fault != nil {
				t.Error(fault)
			}
		}
	})
	for _, c := range l.Coordinators {
		s.pids = append(s.pids, c.Pid(lab.Berth))
	}
	return s
}

func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// does runs a command as the operator that has to work.
func (s *site) does(args ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := s.lab.Berth(ctx, args...)
	s.check(err)
}

func (s *site) eventually(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not in time", what)
		}
	}
}

// start starts VMs, a few at a time, and returns how many a second ran. Each has to, on a host that nobody has taken over.
func (s *site) start(prefix string, tell func(name string)) float64 {
	s.Helper()
	var all sync.WaitGroup
	begun, taken := time.Now(), s.lab.Hosts[len(s.lab.Hosts)-1]
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < starts; i += callers {
				name := fmt.Sprint(prefix, i)
				ctx, cancel := context.WithTimeout(s.Context(), startLimit)
				_, err := s.lab.Berth(ctx, "vm", "start", name, "--memory", "64M")
				cancel()
				if err != nil {
					s.Errorf("%s does not start: %v", name, err)
					continue
				}
				if host, err := s.lab.HostOf(name); err != nil || host.Name == taken.Name {
					s.Errorf("%s runs on %v: %v", name, host, err)
				}
				s.mu.Lock()
				s.running = append(s.running, name)
				s.mu.Unlock()
				tell(name)
			}
		})
	}
	all.Wait()
	return starts / time.Since(begun).Seconds()
}

// takeOver puts the hostile agent in the place of a host's own.
func (s *site) takeOver(host *lab.Host) {
	s.Helper()
	s.copyProgram(host.Machine, program)
	s.check(host.StopAgent())
	argv := []string{program}
	for _, c := range s.lab.Coordinators {
		argv = append(argv, c.Address+":7421")
	}
	s.check(host.Start(s.Context(), "hostile", argv...))
}

// saidOn is how many things the hostile agent has said.
func (s *site) saidOn(host *lab.Host) int {
	text, _ := os.ReadFile(host.Path(said)) // there is none at first
	count, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return count
}

// vms are those that the coordinators know, by name.
func (s *site) vms() map[string]*berthv1.VM {
	s.Helper()
	var list berthv1.ListVMsResponse
	s.check(s.lab.Ask(s.Context(), &list, "vm", "list"))
	all := map[string]*berthv1.VM{}
	for _, vm := range list.GetVms() {
		all[vm.GetName()] = vm
	}
	return all
}

// One of three hosts belongs to somebody else, who has its agent's certificate and uses it against all coordinators. Each start beside it
// comes to its end on a host that is not his, at no small part of the rate without him, and no coordinator has ended. An operator ends the
// rest: once the node is revoked its lies are forgotten, and once it is removed as well what it lied about can be started again, whatever
// it goes on saying.
func TestStartsGoOnBesideAHostThatWasTakenOver(t *testing.T) {
	s := raise(t)
	taken := s.lab.Hosts[2]
	s.does("node", "maintenance", taken.Name, "on", "--reason", "nothing of it is to be his")
	alone := s.start("alone", func(string) {})

	var told []string
	tell := func(name string) {
		id := s.vms()[name].GetId()
		s.mu.Lock()
		defer s.mu.Unlock()
		told = append(told, id)
		if err := os.WriteFile(taken.Path(others), []byte(strings.Join(told, "\n")), 0o644); err != nil {
			s.Error(err)
		}
	}
	for i := range starts {
		tell(fmt.Sprint("alone", i))
	}
	s.takeOver(taken)
	s.does("node", "maintenance", taken.Name, "off")
	s.eventually("what he says", func() bool { return s.saidOn(taken) > least })
	before := s.saidOn(taken)
	prefix := "beside"
	beside, err := report.Left(alone, func() float64 {
		defer func() { prefix += "-again" }()
		return s.start(prefix, tell)
	})
	if err != nil {
		t.Errorf("beside a hostile agent: %v", err)
	}
	count := s.saidOn(taken)
	if count-before < least {
		t.Errorf("beside the starts he has said only %d things", count-before)
	}
	for i, c := range s.lab.Coordinators {
		if c.Pid(lab.Berth) != s.pids[i] {
			t.Errorf("%s was ended", c.Name)
		}
	}
	t.Logf("%.2f starts a second alone, %.2f beside a hostile agent that has said %d things (%.0f %%)",
		alone, beside, count, 100*beside/alone)

	s.does("identity", "revoke", "node/"+taken.Name, "--reason", "somebody else's by now", "--yes")
	s.eventually("each VM running as before", func() bool {
		all := s.vms()
		for _, name := range s.running {
			vm := all[name]
			if vm.GetState() != berthv1.VMState_VM_STATE_RUNNING || vm.GetCondition() != "" {
				t.Logf("%s is %s: %v", name, vm.GetState(), vm.GetCondition())
				return false
			}
		}
		return true
	})
	s.does("node", "delete", taken.Name, "--yes")
	for _, name := range s.running[:callers] {
		s.does("vm", "stop", name, "--force")
		s.does("vm", "start", name)
	}
	if taken.Pid("hostile") == 0 {
		t.Error("he has ended before, so the rest has shown nothing")
	}
}
