package document_test

import (
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What the groups of a document contradict is said beside the changes, and in JSON among them.
func TestApplyWarnsOfContradictions(t *testing.T) {
	f := clitest.Steady()
	f.OnApplyEstate = func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return &berthv1.ApplyEstateResponse{
			SchemaVersion: "1", Changes: clitest.CannedChanges()[2:], Warnings: clitest.CannedConflicts()[1:],
		}, nil
	}
	w, _ := clitest.NewSite(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	clitest.WriteFile(t, path, []byte("format: berth/estate/v1\n"))
	want := "warning: group web keeps 3 VMs apart on 3 nodes: it holds now, not after one node fails\n" +
		"  next step: add a node, or make the rule soft\n"
	if said := w.Run("apply", "-f", path); said.Exit != term.Done || said.ErrOut != want {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
	if said := w.Run("apply", "-f", path, "-o", "json"); said.ErrOut != "" || !strings.Contains(said.Out, `"kind": "too-few-nodes"`) {
		t.Errorf("%q, %q", said.Out, said.ErrOut)
	}
}

func TestApply(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	clitest.WriteFile(t, path, []byte("format: berth/estate/v1\n"))
	for name, args := range map[string][]string{
		"apply": {"apply", "-f", path}, "apply-dry-run": {
			"apply", "-f", path, "--dry-run", "--prune",
		}, "apply-name": {"apply", "-f", path, "-o", "name"},
		"apply-json": {"apply", "-f", path, "-o", "json"},
	} {
		said := w.Run(args...)
		if said.Exit != term.Done || said.ErrOut != "" {
			t.Errorf("%s: exit %d, %s", name, said.Exit, said.ErrOut)
		}
		clitest.Golden(t, name+".golden", said.Out)
	}
	w.In = strings.NewReader("format: berth/estate/v1 # stdin\n")
	if said := w.Run("apply", "-f", "-"); said.Exit != term.Done {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	sent := f.Last(&berthv1.ApplyEstateRequest{}).(*berthv1.ApplyEstateRequest)
	if sent.GetFile() != "<stdin>" || string(sent.GetDocument()) != "format: berth/estate/v1 # stdin\n" || sent.GetDryRun() ||
		sent.GetPrune() || len(sent.GetRequestId()) < 16 {
		t.Errorf("sent %v", sent)
	}
	f.OnApplyEstate = func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return &berthv1.ApplyEstateResponse{SchemaVersion: "1"}, nil
	}
	if said := w.Run("apply", "-f", path, "--prune"); said.Exit != term.Done || said.Out != "nothing to change\n" {
		t.Errorf("exit %d, %q, %s", said.Exit, said.Out, said.ErrOut)
	}
}

// What a document leaves out is deleted only by somebody who was told what that is, or said --yes.
func TestPruneAsks(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	clitest.WriteFile(t, path, []byte("format: berth/estate/v1\n"))
	said := w.Run("apply", "-f", path, "--prune")
	if said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, "repeat it with --yes") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	for _, request := range clitest.Asked[berthv1.ApplyEstateRequest](f) {
		if !request.GetDryRun() {
			t.Error("something was applied without an answer")
		}
	}
	if said := w.Run("apply", "-f", path, "--prune", "--yes"); said.Exit != term.Done {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if sent := f.Last(&berthv1.ApplyEstateRequest{}).(*berthv1.ApplyEstateRequest); sent.GetDryRun() || !sent.GetPrune() {
		t.Errorf("sent %v", sent)
	}
}

// Every problem of a document is shown with its place, and nothing was changed.
func TestProblemsHavePlaces(t *testing.T) {
	f := clitest.Steady()
	f.OnApplyEstate = func(r *berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
			Code: rpc.Invalid, NextStep: "correct the document; nothing was changed",
			Problems: []*berthv1.Problem{
				{
					File: r.GetFile(), Line: 12, Subject: "customer/acme", Message: `unknown field "biling_entity"`,
					NextStep: "use name, billing_entity, offer, keys",
				},
				{File: r.GetFile(), Line: 31, Message: "an alias to an anchor that it stands in"},
				{File: r.GetFile(), Subject: "disk/d1", Message: "is used by vm/a and vm/b"},
			},
		}, "3 problems in %s", r.GetFile())
	}
	w, _ := clitest.NewSite(t, f)
	w.In = strings.NewReader("x")
	said := w.Run("apply", "-f", "-")
	if said.Exit != term.Failed || said.Out != "" {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
	clitest.Golden(t, "error-problems.golden", said.ErrOut)

	f.OnChangeResource = func(*berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
			Code: rpc.Invalid, NextStep: "correct it and try again",
			Problems: []*berthv1.Problem{{Subject: "vdc/acme-prod", Message: `the customer "nobody" does not exist`, NextStep: "add it first"}},
		}, "the message says the same")
	}
	want := "berth: vdc/acme-prod: the customer \"nobody\" does not exist: add it first\nnext step: correct it and try again\n"
	if said := w.Run("vdc", "set", "acme-prod", "--customer", "nobody"); said.Exit != term.Failed || said.ErrOut != want {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}

func TestApplyRefusesABadFile(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.yaml")
	clitest.WriteFile(t, huge, make([]byte, 16<<20+1))
	for path, say := range map[string]string{
		filepath.Join(folder, "none.yaml"): "no such file", huge: "has 16777217 bytes, at most 16 MiB are read",
		"-": "is empty", folder: "is a directory",
	} {
		w.In = strings.NewReader(" \n")
		if said := w.Run("apply", "-f", path); said.Exit != term.Failed || !strings.Contains(said.ErrOut, say) ||
			!strings.Contains(said.ErrOut, "next step: ") {
			t.Errorf("%s: exit %d, %s", path, said.Exit, said.ErrOut)
		}
	}
}
