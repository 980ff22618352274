package balance

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// balanced is a balance plan that ended some time ago, newest first in Recent.
func balanced(ago time.Duration, before, predicted, observed float64) model.Plan {
	return model.Plan{
		Kind: model.PlanBalance, State: model.PlanDone, Unit: evenLoad.Unit, Before: before, Predicted: predicted, Observed: observed,
		EndedAt: noon.Add(-ago), ObservedAt: noon.Add(-ago), Moves: []model.Move{{
			VM: "vm", Source: "hv1", Target: "hv2", Result: model.MoveMoved,
		}},
	}
}

func TestTheBalancerBacksOffWherePredictionsFail(t *testing.T) {
	kept, missed := balanced(time.Minute, 0.4, 0.3, 0.34), balanced(time.Minute, 0.4, 0.3, 0.39)
	failed, unseen := balanced(time.Minute, 0.4, 0.3, 0), balanced(time.Minute, 0.4, 0.3, 0)
	failed.State, failed.ObservedAt = model.PlanFailed, time.Time{}
	unseen.ObservedAt = time.Time{}
	lost := unseen
	lost.EndedAt = noon.Add(-time.Hour)
	other := missed
	other.Unit = evenVMCount.Unit
	at := func(ago time.Duration, plan model.Plan) model.Plan {
		plan.EndedAt = noon.Add(-ago)
		if !plan.ObservedAt.IsZero() {
			plan.ObservedAt = plan.EndedAt
		}
		return plan
	}
	came := "the last plan was to take the cluster from 0.400 to 0.300, and it came to 0.390"
	for _, test := range []struct {
		name   string
		recent []model.Plan
		want   string
	}{
		{"nothing", nil, ""},
		{"kept", []model.Plan{kept, missed, missed}, ""},
		{"missed", []model.Plan{missed, kept}, came + ": nothing is balanced until 2026-01-01 12:01:00 UTC"},
		{"missed a while ago", []model.Plan{at(2*time.Minute, missed)}, ""},
		{
			"twice",
			[]model.Plan{at(2*time.Minute, missed), missed},
			came + ", the 2nd disappointment in a row: nothing is balanced until 2026-01-01 12:02:00 UTC",
		},
		{
			"often",
			[]model.Plan{at(time.Minute, missed), missed, missed, missed, missed, missed, missed, missed, missed, missed, missed, kept},
			came + ", the 11th disappointment in a row: nothing is balanced until 2026-01-01 12:59:00 UTC",
		},
		{"failed", []model.Plan{failed}, "the last plan failed: nothing is balanced until 2026-01-01 12:01:00 UTC"},
		{"unseen", []model.Plan{unseen}, "what came of the last move is not known yet; it is waited for until 2026-01-01 12:03:00 UTC at most"},
		{"never seen", []model.Plan{lost}, ""},
		{"of another balancer", []model.Plan{other}, ""},
	} {
		s := loaded(14)
		s.Recent = test.recent
		why, holds := BackOff(s.fleet())
		expect(t, test.name, why, test.want)
		expect(t, test.name+" holds", holds, test.want != "")
	}
	s := loaded(14)
	s.Recent = []model.Plan{missed}
	expect(t, "the pass", s.pass(), came+": nothing is balanced until 2026-01-01 12:01:00 UTC")
}

func TestWhatCameOfAPlanIsObservedOnceItIsMeasured(t *testing.T) {
	s := loaded(6, 4, 3, 1)
	plan := balanced(0, 0.5, 0.4, 0)
	plan.EndedAt = noon
	look := func() (float64, bool) { return Observe(s.fleet(), &plan) }
	if _, known := look(); known {
		t.Error("it is known at once")
	}
	s.later(2 * time.Minute)
	if _, known := look(); known {
		t.Error("it is known before the loads have settled")
	}
	s.later(time.Second)
	observed, known := look()
	g, err := survey(s.fleet())
	if err != nil {
		t.Fatal(err)
	}
	balancer, situation := g.situation()
	if want := balancer.Figure(situation); !known || observed != want {
		t.Errorf("%v %v, want %v", observed, known, want)
	}
	s.change("hv2", func(f *model.NodeFacts) { f.TelemetryAt = noon })
	if _, known := look(); known {
		t.Error("it is known though the target has not reported since")
	}
	s.later(time.Second)
	for name, change := range map[string]func(*model.Plan){
		"another balancer's": func(p *model.Plan) { p.Unit = evenVMCount.Unit },
		"one that was not made": func(p *model.Plan) {
			p.Moves = []model.Move{{VM: "vm", Source: "hv1", Target: "hv2", Result: model.MoveFailed}}
		},
		"one that runs": func(p *model.Plan) { p.State = model.PlanRunning },
		"a drain":       func(p *model.Plan) { p.Kind = model.PlanDrain },
	} {
		changed := plan
		change(&changed)
		if _, known := Observe(s.fleet(), &changed); known {
			t.Errorf("%s is observed", name)
		}
	}
}

// For VM counts the prediction is exact: what a pass predicted is what is observed.
func TestThePredictionOfVMCountsIsExact(t *testing.T) {
	s := counts(14, 2, 7)
	found := Pass(s.fleet())
	s.carryOut(found.Moves)
	plan := model.Plan{
		Kind: model.PlanBalance, State: model.PlanDone, Unit: found.Unit, Before: found.Before, Predicted: found.Predicted, EndedAt: s.At,
		Moves: found.Moves,
	}
	plan.Moves[0].Result = model.MoveMoved
	s.later(time.Second)
	observed, known := Observe(s.fleet(), &plan)
	if !known || observed != found.Predicted || observed >= found.Before {
		t.Errorf("observed %v %v, predicted %v, before %v", observed, known, found.Predicted, found.Before)
	}
}
