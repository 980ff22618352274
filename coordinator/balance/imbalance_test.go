package balance

import (
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// lopsided has three nodes: all VMs are on the first, of 8 GiB and one vCPU each.
func lopsided(balancer string, vms int) *site {
	s := newSite("hv1", "hv2", "hv3")
	for i := range vms {
		s.vm("hv1", "vm"+string(rune('a'+i)), func(vm *model.VM) { vm.Spec.Memory = 8 * units.GiB })
	}
	s.Balancer = Chosen{Balancer: balancer, Parameters: map[string]float64{}}
	return s
}

func TestImbalanceMovesUntilTheThresholdAndNoFurther(t *testing.T) {
	s := lopsided("imbalance", 4)
	offered, _ := s.propose(t, true)
	expect(t, "the proposal", offered, []string{
		"vma to hv2: the imbalance goes from 1.414 to 0.935; memory promised: hv1 from 50 to 38 %, hv2 from 0 to 12 %",
	})
	plan := Even(s.fleet(), 100)
	expect(t, "the moves", told(plan.Moves), []string{"vma hv1>hv2", "vmb hv1>hv3"})
	expect(t, "the reason", plan.Reason, "2 moves, 16 GiB: from 1.414 to 0.354 (standard deviation over mean)")
	s.carryOut(plan.Moves)
	s.later(time.Hour)
	expect(t, "the next plan", Even(s.fleet(), 100).Reason, "the imbalance is 0.354, no more than 1 - Imbalance 0.4")

	s = lopsided("imbalance", 4)
	s.Balancer.Parameters[MostMoves] = 1
	expect(t, "the moves of a short plan", told(Even(s.fleet(), 100).Moves), []string{"vma hv1>hv2"})
	s.Balancer.Parameters[MinimumBenefit] = 100
	expect(t, "a plan that must bring much", Even(s.fleet(), 100).Reason,
		"the imbalance is 1.414, and no move of a VM that may be moved would better it")
}

func TestImbalanceCountsWhatTheMetricSays(t *testing.T) {
	s := lopsided("imbalance", 4)
	for i := range 2 { // hv2 has many vCPUs, and hardly any memory
		s.vm("hv2", "cpu"+string(rune('a'+i)), func(vm *model.VM) { vm.Spec.VCPUs, vm.Spec.Memory = 6, units.MiB })
	}
	figure := func(parameters map[string]float64) float64 {
		s.Balancer.Parameters = parameters
		balancer, situation, err := s.fleet().Situation()
		if err != nil {
			t.Fatal(err)
		}
		return float64(int(balancer.Figure(situation)*1000)) / 1000
	}
	expect(t, "the imbalance of memory", figure(nil), 1.414)
	expect(t, "the imbalance of CPU", figure(map[string]float64{Metric: metricCPU}), 0.935)
	expect(t, "the worse of both", figure(map[string]float64{Metric: metricBoth}), 1.414)
	expect(t, "the imbalance of what is free", figure(map[string]float64{Free: 1}), 0.282)
	expect(t, "the imbalance in bytes", figure(map[string]float64{Absolute: 1}), 1.414)
	s.Balancer.Balancer = "condense"
	expect(t, "the better of both, when it is to grow", figure(map[string]float64{Metric: metricBoth}), 0.064)
}

func TestCondenseEmptiesNodes(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3")
	s.fill("hv1", 3).fill("hv2", 1).fill("hv3", 2)
	for i := range s.vms {
		s.vms[i].Spec.Memory = 8 * units.GiB
	}
	s.Balancer = Chosen{Balancer: "condense", Parameters: map[string]float64{}}
	plan := Even(s.fleet(), 100)
	expect(t, "the moves", told(plan.Moves), []string{"hv2-01 hv2>hv1"})
	expect(t, "the reason", plan.Reason, "1 move, 8 GiB: from 0.592 to 0.184 (1 less the standard deviation over mean)")
	expect(t, "the move", plan.Moves[0].Reason,
		"the imbalance goes from 0.408 to 0.816; memory promised: hv2 from 12 to 0 %, hv1 from 38 to 50 %")
	s.carryOut(plan.Moves)
	s.later(time.Hour)
	expect(t, "the next plan", Even(s.fleet(), 100).Reason, "the imbalance is 0.816, no less than 1 - Imbalance 0.4")

	s.Balancer.Parameters[Imbalance] = 0
	plan = Even(s.fleet(), 100)
	expect(t, "the moves without a limit", told(plan.Moves), []string{"hv3-01 hv3>hv1"})

	s = newSite("hv1", "hv2", "hv3")
	s.fill("hv1", 7).fill("hv2", 1).fill("hv3", 1)
	for i := range s.vms {
		s.vms[i].Spec.Memory = 8 * units.GiB
	}
	s.Balancer = Chosen{Balancer: "condense", Parameters: map[string]float64{}}
	expect(
		t, "a plan beside a node that is nearly full", Even(s.fleet(), 100).Reason,
		"the imbalance is 0.943, no less than 1 - Imbalance 0.4",
	)
	s.Balancer.Parameters[SkipThreshold] = 0.8
	expect(t, "the moves beside one that counts as full", told(Even(s.fleet(), 100).Moves), []string{"hv2-01 hv2>hv3"})
	// Where what is free counts, the threshold is of that: hv1 has an eighth free.
	s.Balancer.Parameters[Free], s.Balancer.Parameters[SkipThreshold], s.Balancer.Parameters[Imbalance] = 1, 0.2, 0.6
	expect(t, "the moves beside one with little free", told(Even(s.fleet(), 100).Moves), []string{"hv2-01 hv2>hv3"})
	s.Balancer.Parameters[SkipThreshold] = 0.05
	expect(t, "the moves where enough is free", told(Even(s.fleet(), 100).Moves), []string(nil))
}

// Of both metrics the worse one decides whether anything is moved, and what both gain together which move comes first.
func TestImbalanceGainsOfBothAddUp(t *testing.T) {
	s := newSite("hv1", "hv2")
	s.vm("hv1", "a", func(vm *model.VM) { vm.Spec.VCPUs, vm.Spec.Memory = 10, 512*units.MiB })
	s.vm("hv2", "b", func(vm *model.VM) { vm.Spec.VCPUs, vm.Spec.Memory = 10, 512*units.MiB })
	s.vm("hv2", "c", func(vm *model.VM) { vm.Spec.VCPUs, vm.Spec.Memory = 10, 1536*units.MiB })
	s.Balancer = Chosen{Balancer: "imbalance", Parameters: map[string]float64{Metric: metricBoth}}
	_, situation, err := s.fleet().Situation()
	if err != nil {
		t.Fatal(err)
	}
	figure, gain, memory := situation.tally(toEven).moved(&situation.VMs[1], 1, 0)
	rounded := func(f float64) string { return number(float64(int(f*1000+0.5)) / 1000) }
	expect(t, "the figure", rounded(figure), "0.333")
	expect(t, "the gain of memory", rounded(memory), "0.4")
	expect(t, "the gain", rounded(gain), "0.4")
}
