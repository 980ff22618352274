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

// Waiting ends with what is known of each domain, and with what goes on.
func TestAdoptionsThatAreNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		watch []func(context.Context, *berthv1.WatchOperationRequest, send) error // one for each adoption
		says  string
	}{
		"the first": {[]func(context.Context, *berthv1.WatchOperationRequest, send) error{never}, "and so do those after it"},
		"the last":  {[]func(context.Context, *berthv1.WatchOperationRequest, send) error{endsWell, never}, "watch it with 'berth operation watch"},
	} {
		t.Run(name, func(t *testing.T) {
			f := steady()
			f.adoptVMs = func(r *berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error) {
				answer := cannedAdoption(r)
				for _, one := range answer.GetVms() {
					if one.GetOperation() != nil {
						one.Operation = cannedOperation("adopt", running)
					}
				}
				return answer, nil
			}
			asked := 0
			f.watchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send send) error {
				watch := c.watch[min(asked, len(c.watch)-1)]
				asked++
				return watch(ctx, r, send)
			}
			w, _ := newWorld(t, f)
			said := w.run("vm", "adopt", "--all", "--timeout", "300ms")
			if said.exit != TimedOut || !strings.Contains(said.errOut, "still runs after 300ms; it goes on without this command") ||
				!strings.Contains(said.errOut, c.says) {
				t.Errorf("exit %d, %q", said.exit, said.errOut)
			}
			for _, line := range []string{"vm/db on node1: ", "vm/web on node2: ", "vm/old on node2: not adopted: it is paused"} {
				if !strings.Contains(said.out, line) {
					t.Errorf("it does not say %q: %q", line, said.out)
				}
			}
		})
	}
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

// A resolution that is not waited for goes on.
func TestAResolutionThatTakesLong(t *testing.T) {
	f := steady()
	f.watchOp = never
	w, _ := newWorld(t, f)
	said := w.run("operation", "resolve", "migrate", "--keep", "target", "--timeout", "200ms")
	if said.exit != TimedOut || !strings.Contains(said.errOut, "still runs after 200ms; it goes on without this command") {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
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
