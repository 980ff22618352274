package moves

import (
	"fmt"
	"slices"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// firmware starts a VM without a system: cheap, and enough where its inside does not matter.
func (s *site) firmware(name string, flags ...string) {
	s.Helper()
	if !slices.Contains(flags, "--memory") {
		flags = append(flags, "--memory", "64M")
	}
	s.does(append([]string{"vm", "start", name}, flags...)...)
}

// guest starts a VM that counts, and returns its first sign of life.
func (s *site) guest(name, node string) lab.Tick {
	s.Helper()
	s.does("vm", "start", name, "--memory", "128M", "--node", node, "--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline)
	return s.tick(name)
}

// tick is the next sign of life of a guest, wherever it runs.
func (s *site) tick(name string) lab.Tick {
	s.Helper()
	var tick lab.Tick
	s.comes(name+" ticks", func() (err error) {
		tick, err = s.lab.ReadTick(s.Context(), name)
		return err
	})
	return tick
}

// sameGuests checks that these are the guests of earlier ticks, whole and without a break.
func (s *site) sameGuests(earlier map[string]lab.Tick) {
	s.Helper()
	for name, before := range earlier {
		if err := s.tick(name).After(before); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
}

// hosts are those that run each of these VMs, as their processes show it; Berth has to show the same.
func (s *site) hosts(names ...string) []string {
	s.Helper()
	hosts := make([]string, len(names))
	s.comes("Berth shows VMs where their processes are", func() error {
		var list berthv1.ListVMsResponse
		if err := s.lab.Ask(s.Context(), &list, "vm", "list"); err != nil {
			return err
		}
		for i, name := range names {
			host, err := s.lab.HostOf(name)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(list.GetVms(), func(vm *berthv1.VM) bool { return vm.GetName() == name })
			if at < 0 || list.GetVms()[at].GetNode() != host.Name {
				return fmt.Errorf("%s has its process on %s, and the list is %v", name, host.Name, list.GetVms())
			}
			hosts[i] = host.Name
		}
		return nil
	})
	return hosts
}

// host is the host of one VM.
func (s *site) host(name string) string {
	s.Helper()
	return s.hosts(name)[0]
}

// hostNamed is a host of the lab.
func (s *site) hostNamed(name string) *lab.Host {
	s.Helper()
	host, err := s.lab.Host(name)
	if err != nil {
		s.Fatal(err)
	}
	return host
}

// plan is one plan with its moves.
func (s *site) plan(id string) *berthv1.Plan {
	s.Helper()
	var answer berthv1.GetPlanResponse
	s.must(s.lab.Ask(s.Context(), &answer, "plan", "show", id))
	return answer.GetPlan()
}

// plans are those of a kind, with their moves, oldest first.
func (s *site) plans(kind string) []*berthv1.Plan {
	s.Helper()
	var list berthv1.ListPlansResponse
	s.must(s.lab.Ask(s.Context(), &list, "plan", "list"))
	var plans []*berthv1.Plan
	for _, plan := range slices.Backward(list.GetPlans()) {
		if plan.GetKind() == kind {
			plans = append(plans, s.plan(plan.GetId()))
		}
	}
	return plans
}

// moving waits until a move of a plan copies.
func (s *site) moving(id string) {
	s.Helper()
	s.comes("a move of plan "+id+" copies", func() error {
		var answer berthv1.GetPlanResponse
		if err := s.lab.Ask(s.Context(), &answer, "plan", "show", id); err != nil {
			return err
		}
		for _, move := range answer.GetPlan().GetMoves() {
			if move.GetState() == "moving" && move.GetCopiedBytes() > 0 {
				return nil
			}
		}
		return fmt.Errorf("the plan is %s, its moves are %v", answer.GetPlan().GetState(), answer.GetPlan().GetMoves())
	})
}

// moved counts the moves of a plan that came to their end.
func moved(plan *berthv1.Plan) (n int) {
	for _, move := range plan.GetMoves() {
		if move.GetState() == "moved" {
			n++
		}
	}
	return n
}

// group is a group as it is now.
func (s *site) group(name string) *berthv1.Group {
	s.Helper()
	var answer berthv1.GetGroupResponse
	s.must(s.lab.Ask(s.Context(), &answer, "group", "show", name))
	return answer.GetGroup()
}

// passes waits until the leader has looked so many times at a group since now.
func (s *site) passes(name string, times int) *berthv1.Group {
	s.Helper()
	group := s.group(name)
	for range times {
		before := group.GetStatus().GetLookedAt()
		s.comes("a pass over group "+name, func() error {
			if group = s.group(name); !group.GetStatus().GetLookedAt().AsTime().After(before.AsTime()) {
				return fmt.Errorf("its status is %v", group.GetStatus())
			}
			return nil
		})
	}
	return group
}
