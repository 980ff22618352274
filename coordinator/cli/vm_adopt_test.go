package cli

import (
	"context"
	"strings"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// What could not be taken has its line, and the command fails.
func TestAdoptionsOfWhichSomeFail(t *testing.T) {
	w, _ := newWorld(t, steady())
	said := w.run("vm", "adopt", "--all")
	if said.exit != Failed {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "vm-adopt-some.golden", said.out+errSection(said.errOut))
}

// An operation that parks again has not been resolved.
func TestAResolutionThatParksAgain(t *testing.T) {
	f := steady()
	f.watchOp = func(_ context.Context, _ *berthv1.WatchOperationRequest, send send) error {
		op := cannedParked()
		op.Message = "to keep target, as was decided, could not be done: node2 does not answer"
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
	w, _ := newWorld(t, f)
	said := w.run("operation", "resolve", "migrate", "--keep", "target")
	if said.exit != Failed || !strings.Contains(said.errOut, "is parked again: to keep target") {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
	f.watchOp = endsWell
	if said = w.run("operation", "resolve", "migrate", "--keep", "target"); said.exit != Done || !strings.Contains(said.out, "is resolved: node2 has the VM") {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
}

func TestAdoptAndResolveAreMeant(t *testing.T) {
	w, _ := newWorld(t, steady())
	for line, say := range map[string]string{
		"vm adopt":               "name domains, or give --all",
		"vm adopt web1 --all":    "names and --all exclude each other",
		"vm adopt web1 web1":     `"web1" is there twice`,
		"vm release":             "NAME is missing",
		"operation resolve 3nqk": `required flag(s) "keep" not set`,
	} {
		if said := w.run(strings.Fields(line)...); said.exit == Done || !strings.Contains(said.errOut, say) {
			t.Errorf("%s: exit %d, %q", line, said.exit, said.errOut)
		}
	}
}
