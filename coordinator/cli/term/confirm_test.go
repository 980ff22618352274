package term_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// What cannot be taken back is asked for where somebody can answer.
func TestConfirmation(t *testing.T) {
	for reply, want := range map[string]term.Exit{
		"y\n": term.Done, "YES\n": term.Done, "n\n": term.Failed, "\n": term.Failed, "what?\n": term.Failed,
	} {
		f := clitest.Steady()
		w, _ := clitest.NewSite(t, f)
		user, tty := clitest.OpenTerminal(t)
		if _, err := user.WriteString(reply); err != nil {
			t.Fatal(err)
		}
		w.In = tty
		said := w.Run("vm", "delete", "web1")
		if said.Exit != want || !strings.HasPrefix(said.ErrOut, "Forget vm/web1? Disks that were made for it go with it. [y/N] ") {
			t.Errorf("%q: exit %d, %q", reply, said.Exit, said.ErrOut)
		}
		if deleted := len(clitest.Asked[berthv1.DeleteVMRequest](f)) == 1; deleted != (want == term.Done) {
			t.Errorf("%q: deleted is %v", reply, deleted)
		}
	}
}

// Who interrupts at the question gets the prompt back at once, and nothing is changed.
func TestAnInterruptAnswersTheQuestion(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	_, w.In = clitest.OpenTerminal(t) // nobody types anything
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out bytes.Buffer
	errOut := clitest.Until{Word: "[y/N] ", Then: interrupt}
	exit := w.RunTo(ctx, &out, &errOut, "node", "delete", "node1")
	if exit != term.Interrupted || !strings.HasSuffix(errOut.String(), "[y/N] \nberth: interrupted: nothing was changed\n") {
		t.Errorf("exit %d, %q", exit, errOut.String())
	}
	if len(clitest.Asked[berthv1.RemoveNodeRequest](f)) > 0 {
		t.Error("the node was removed")
	}
}
