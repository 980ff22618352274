package vm_test

import (
	"context"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// What could not be taken has its line, and the command fails.
func TestAdoptionsOfWhichSomeFail(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	said := w.Run("vm", "adopt", "--all")
	if said.Exit != term.Failed {
		t.Errorf("exit %d", said.Exit)
	}
	clitest.Golden(t, "vm-adopt-some.golden", said.Out+clitest.ErrSection(said.ErrOut))
}

// Waiting ends with what is known of each domain, and with what goes on.
func TestAdoptionsThatAreNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		watch []func(context.Context, *berthv1.WatchOperationRequest, clitest.Send) error // one for each adoption
		says  string
	}{
		"the first": {[]func(context.Context, *berthv1.WatchOperationRequest, clitest.Send) error{clitest.Never}, "and so do those after it"},
		"the last": {
			[]func(
				context.Context, *berthv1.WatchOperationRequest, clitest.Send,
			) error{clitest.EndsWell, clitest.Never}, "watch it with 'berth operation watch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Steady()
			f.OnAdoptVMs = func(r *berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error) {
				answer := clitest.CannedAdoption(r)
				for _, one := range answer.GetVms() {
					if one.GetOperation() != nil {
						one.Operation = clitest.CannedOperation("adopt", clitest.Running)
					}
				}
				return answer, nil
			}
			asked := 0
			f.OnWatchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send clitest.Send) error {
				watch := c.watch[min(asked, len(c.watch)-1)]
				asked++
				return watch(ctx, r, send)
			}
			w, _ := clitest.NewSite(t, f)
			said := w.Run("vm", "adopt", "--all", "--timeout", "300ms")
			if said.Exit != term.TimedOut || !strings.Contains(said.ErrOut, "still runs after 300ms; it goes on without this command") ||
				!strings.Contains(said.ErrOut, c.says) {
				t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
			}
			for _, line := range []string{"vm/db on node1: ", "vm/web on node2: ", "vm/old on node2: not adopted: it is paused"} {
				if !strings.Contains(said.Out, line) {
					t.Errorf("it does not say %q: %q", line, said.Out)
				}
			}
		})
	}
}

func TestAdoptAndResolveAreMeant(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for line, say := range map[string]string{
		"vm adopt":               "name domains, or give --all",
		"vm adopt web1 --all":    "names and --all exclude each other",
		"vm adopt web1 web1":     `"web1" is there twice`,
		"vm release":             "NAME is missing",
		"operation resolve 3nqk": `required flag(s) "keep" not set`,
	} {
		if said := w.Run(strings.Fields(line)...); said.Exit == term.Done || !strings.Contains(said.ErrOut, say) {
			t.Errorf("%s: exit %d, %q", line, said.Exit, said.ErrOut)
		}
	}
}
