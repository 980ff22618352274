package vm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What was edited goes to the coordinator with what it was made from, and a refusal keeps it.
func TestEditOfADocument(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sed -i s/524288/1048576/")
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "edit", "web1", "--dry-run")
	if said.Exit != 0 || !strings.Contains(said.Out, "vm/web1 would be changed\n-   <memory unit='KiB'>524288<") ||
		!strings.Contains(said.Out, "+   <memory unit='KiB'>1048576<") {
		t.Errorf("a dry run: exit %d, said %q and %q", said.Exit, said.Out, said.ErrOut)
	}
	if said := w.Run("vm", "edit", "web1"); said.Exit != 0 || said.Out != "vm/web1 changed: its next start uses that\n" {
		t.Errorf("exit %d, said %q and %q", said.Exit, said.Out, said.ErrOut)
	}
	sent := clitest.Asked[berthv1.SetVMDocumentRequest](f)
	if len(sent) != 2 || !sent[0].GetDryRun() || sent[1].GetDryRun() || sent[1].GetRevision() != 7 ||
		sent[1].GetXml() != strings.Replace(clitest.CannedDocument, "524288", "1048576", 1) {
		t.Fatalf("the coordinator was asked %v", sent)
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	f.OnDocument = func(*berthv1.SetVMDocumentRequest) (*berthv1.SetVMDocumentResponse, error) {
		return nil, rpc.Errorf(connect.CodeAborted, &berthv1.ErrorDetail{Code: rpc.Conflict, NextStep: "do it again"}, "it was changed")
	}
	said = w.Run("vm", "edit", "web1")
	left, _ := os.ReadDir(folder)
	if said.Exit == 0 || len(left) != 1 || !strings.Contains(said.ErrOut, "--from "+filepath.Join(folder, left[0].Name())) {
		t.Errorf("refused: exit %d, said %q, left %v", said.Exit, said.ErrOut, left)
	}
	t.Setenv("EDITOR", "false")
	if said := w.Run("vm", "edit", "web1"); said.Exit == 0 || !strings.Contains(said.ErrOut, "--from FILE") {
		t.Errorf("an editor that fails: exit %d, %q", said.Exit, said.ErrOut)
	}
}
