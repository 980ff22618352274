package node_test

import (
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// Before a node is forgotten its user reads what it holds and what is lost with it, and says yes. Where there is nobody to say it, the
// command says how to.
func TestForgettingANodeIsAsked(t *testing.T) {
	const asked = "Forget node/node1? It holds 2 VMs: db1, web1. Its agent is refused from then on; to come back, the host has to join " +
		"again, as a new node. What was set on it is lost: RAM ratio 1.5, key Premium 1, label rack-7, its fence device, that it carries " +
		"the management. [y/N] "
	for reply, want := range map[string]term.Exit{"y\n": term.Done, "n\n": term.Failed} {
		f := clitest.Steady()
		w, _ := clitest.NewSite(t, f)
		user, tty := clitest.OpenTerminal(t)
		if _, err := user.WriteString(reply); err != nil {
			t.Fatal(err)
		}
		w.In = tty
		said := w.Run("node", "delete", "node1")
		if said.Exit != want || !strings.HasPrefix(said.ErrOut, asked) {
			t.Errorf("%q: exit %d, %q", reply, said.Exit, said.ErrOut)
		}
		sent := clitest.Asked[berthv1.RemoveNodeRequest](f)
		if removed := len(sent) == 1 && sent[0].GetNode() == "node1" && sent[0].GetRequestId() != ""; removed != (want == term.Done) {
			t.Errorf("%q: the coordinator was asked %v", reply, sent)
		}
	}
}

func TestForgettingANodeByAScriptNeedsYes(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	said := w.Run("node", "delete", "node1")
	if said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, "there is no terminal to ask on: repeat it with --yes") ||
		len(clitest.Asked[berthv1.RemoveNodeRequest](f)) > 0 {
		t.Errorf("without a terminal: exit %d, %q", said.Exit, said.ErrOut)
	}
	if said := w.Run("node", "remove", "node1", "--yes"); said.Exit != term.Done || len(clitest.Asked[berthv1.RemoveNodeRequest](f)) != 1 {
		t.Errorf("with --yes: exit %d, %q", said.Exit, said.ErrOut)
	}
	user, tty := clitest.OpenTerminal(t)
	if _, err := user.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	w.In = tty
	if said := w.Run("node", "delete", "ghost"); said.Exit != term.NotFound || strings.Contains(said.ErrOut, "[y/N]") {
		t.Errorf("a node that is not there: exit %d, %q", said.Exit, said.ErrOut)
	}
}
