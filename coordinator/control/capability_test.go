package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// What an old agent would obey in part only is refused before anything begins, and the answer says how it is updated.
func TestAnOldAgentRefusesAMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Release = "0.6" })
		w.agents.mu.Lock()
		w.agents.lacks = map[operation.Action][]string{operation.ActMigrate: {"accounted-ends"}}
		w.agents.mu.Unlock()
		_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), RequestID: "m"})
		var refusal *lead.Error
		if !errors.As(err, &refusal) || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, "(release 0.6)") ||
			!strings.Contains(refusal.Message, "accounted-ends") || !strings.Contains(refusal.NextStep, "apt-get install berth-agent") {
			t.Errorf("the migration was answered with %v", err)
		}
		synctest.Wait()
		if now := w.vm("web1"); now.Operation != "" || len(w.agents.ordered(operation.ActMigrate)) > 0 {
			t.Errorf("operation %q works on it", now.Operation)
		}
	})
}
