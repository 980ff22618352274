package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/plans"
	"berth/coordinator/model"
)

// VMs that are better off where they are by now stay there, and the plan ends with that as the reason.
func TestWhatIsBetterOffElsewhereDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.on("n1", "web", 1)
		w.ended(w.drain("n1").ID, 30*time.Second)
		w.show(w.vm("web"))
		if _, err := w.UndrainNode(t.Context(), plans.UndrainNode{Node: "n1", RequestID: "open", Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		w.on("n1", "big", 4)
		plan, err := w.UndrainNode(t.Context(), plans.UndrainNode{Node: "n1", Return: true, RequestID: "back", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		plan = w.ended(plan.ID, 5*time.Second)
		if plan.State != model.PlanDone || !strings.HasPrefix(results(plan), "web stays (it is better where it is") {
			t.Errorf("plan is %s: %q\n%s", plan.State, plan.Message, results(plan))
		}
		if web := w.vm("web"); web.Holder == "n1" {
			t.Error("it came back")
		}
	})
}
