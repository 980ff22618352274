package key_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A name without its kind is asked for, kind by kind: nothing is listed, however large the site is.
func TestWhoBearsANameIsAskedForAndNotListed(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	if said := w.Run("key", "set", "acme", "Premium=1"); said.Exit != term.Done || !strings.Contains(said.Out, "customer/acme") {
		t.Errorf("exit %d: %s%s", said.Exit, said.Out, said.ErrOut)
	}
	if set := clitest.Asked[berthv1.SetKeyRequest](f); len(set) != 1 || set[0].GetKind() != "customer" || set[0].GetName() != "acme" {
		t.Errorf("set %v", set)
	}
	if said := w.Run("key", "list", "node1"); said.Exit != term.Done {
		t.Errorf("a node: exit %d: %s", said.Exit, said.ErrOut)
	}
	if said := w.Run("key", "list", "nobody"); said.Exit != term.NotFound || !strings.Contains(said.ErrOut, `is named "nobody"`) {
		t.Errorf("nobody: exit %d: %s", said.Exit, said.ErrOut)
	}
	if n := len(clitest.Asked[berthv1.ListResourcesRequest](f)) + len(clitest.Asked[berthv1.ListVMsRequest](f)) +
		len(clitest.Asked[berthv1.ListNodesRequest](f)); n != 0 {
		t.Errorf("it has listed the site %d times", n)
	}
}
