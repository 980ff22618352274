package resource_test

import (
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
)

func TestAResourceInUseSaysByWhat(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	said := w.Run("vdc", "delete", "acme-prod", "--yes")
	if said.Exit != term.Failed || said.Out != "" {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
	clitest.Golden(t, "error-in-use.golden", said.ErrOut)
	if said := w.Run("vdc", "show", "nobody"); said.Exit != term.NotFound || !strings.Contains(
		said.ErrOut, "next step: see 'berth vdc list'",
	) {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}
