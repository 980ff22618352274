package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What the groups of a document contradict is said beside the changes, and in JSON among them.
func TestApplyWarnsOfContradictions(t *testing.T) {
	f := steady()
	f.applyEstate = func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return &berthv1.ApplyEstateResponse{SchemaVersion: "1", Changes: cannedChanges()[2:], Warnings: cannedConflicts()[1:]}, nil
	}
	w, _ := newWorld(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	writeFile(t, path, []byte("format: berth/estate/v1\n"))
	want := "warning: group web keeps 3 VMs apart on 3 nodes: it holds now, not after one node fails\n  next step: add a node, or make the rule soft\n"
	if said := w.run("apply", "-f", path); said.exit != Done || said.errOut != want {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
	if said := w.run("apply", "-f", path, "-o", "json"); said.errOut != "" || !strings.Contains(said.out, `"kind": "too-few-nodes"`) {
		t.Errorf("%q, %q", said.out, said.errOut)
	}
}

func TestApply(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	writeFile(t, path, []byte("format: berth/estate/v1\n"))
	for name, args := range map[string][]string{
		"apply": {"apply", "-f", path}, "apply-dry-run": {"apply", "-f", path, "--dry-run", "--prune"}, "apply-name": {"apply", "-f", path, "-o", "name"},
		"apply-json": {"apply", "-f", path, "-o", "json"},
	} {
		said := w.run(args...)
		if said.exit != Done || said.errOut != "" {
			t.Errorf("%s: exit %d, %s", name, said.exit, said.errOut)
		}
		golden(t, name+".golden", said.out)
	}
	w.in = strings.NewReader("format: berth/estate/v1 # stdin\n")
	if said := w.run("apply", "-f", "-"); said.exit != Done {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	sent := f.last(&berthv1.ApplyEstateRequest{}).(*berthv1.ApplyEstateRequest)
	if sent.GetFile() != "<stdin>" || string(sent.GetDocument()) != "format: berth/estate/v1 # stdin\n" || sent.GetDryRun() || sent.GetPrune() || len(sent.GetRequestId()) < 16 {
		t.Errorf("sent %v", sent)
	}
	f.applyEstate = func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return &berthv1.ApplyEstateResponse{SchemaVersion: "1"}, nil
	}
	if said := w.run("apply", "-f", path, "--prune"); said.exit != Done || said.out != "nothing to change\n" {
		t.Errorf("exit %d, %q, %s", said.exit, said.out, said.errOut)
	}
}

// What a document leaves out is deleted only by somebody who was told what that is, or said --yes.
func TestPruneAsks(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	writeFile(t, path, []byte("format: berth/estate/v1\n"))
	said := w.run("apply", "-f", path, "--prune")
	if said.exit != WrongUsage || !strings.Contains(said.errOut, "repeat it with --yes") {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	for _, request := range asked[berthv1.ApplyEstateRequest](f) {
		if !request.GetDryRun() {
			t.Error("something was applied without an answer")
		}
	}
	if said := w.run("apply", "-f", path, "--prune", "--yes"); said.exit != Done {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	if sent := f.last(&berthv1.ApplyEstateRequest{}).(*berthv1.ApplyEstateRequest); sent.GetDryRun() || !sent.GetPrune() {
		t.Errorf("sent %v", sent)
	}
}

// Every problem of a document is shown with its place, and nothing was changed.
func TestProblemsHavePlaces(t *testing.T) {
	f := steady()
	f.applyEstate = func(r *berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
			Code: rpc.Invalid, NextStep: "correct the document; nothing was changed",
			Problems: []*berthv1.Problem{
				{File: r.GetFile(), Line: 12, Subject: "customer/acme", Message: `unknown field "biling_entity"`, NextStep: "use name, billing_entity, offer, keys"},
				{File: r.GetFile(), Line: 31, Message: "an alias to an anchor that it stands in"},
				{File: r.GetFile(), Subject: "disk/d1", Message: "is used by vm/a and vm/b"},
			},
		}, "3 problems in %s", r.GetFile())
	}
	w, _ := newWorld(t, f)
	w.in = strings.NewReader("x")
	said := w.run("apply", "-f", "-")
	if said.exit != Failed || said.out != "" {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
	golden(t, "error-problems.golden", said.errOut)

	f.changeResource = func(*berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
			Code: rpc.Invalid, NextStep: "correct it and try again",
			Problems: []*berthv1.Problem{{Subject: "vdc/acme-prod", Message: `the customer "nobody" does not exist`, NextStep: "add it first"}},
		}, "the message says the same")
	}
	want := "berth: vdc/acme-prod: the customer \"nobody\" does not exist: add it first\nnext step: correct it and try again\n"
	if said := w.run("vdc", "set", "acme-prod", "--customer", "nobody"); said.exit != Failed || said.errOut != want {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}

func TestApplyRefusesABadFile(t *testing.T) {
	w, _ := newWorld(t, steady())
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.yaml")
	writeFile(t, huge, make([]byte, int(maxDocument)+1))
	for path, say := range map[string]string{
		filepath.Join(folder, "none.yaml"): "no such file", huge: "is longer than 4 MiB", "-": "is empty", folder: "is a directory",
	} {
		w.in = strings.NewReader(" \n")
		if said := w.run("apply", "-f", path); said.exit != Failed || !strings.Contains(said.errOut, say) || !strings.Contains(said.errOut, "next step: ") {
			t.Errorf("%s: exit %d, %s", path, said.exit, said.errOut)
		}
	}
}

func TestExportWritesAWholeFile(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	folder := t.TempDir()
	path := filepath.Join(folder, "estate.yaml")
	if said := w.run("export", "--to", path); said.exit != Done || said.out != "" || said.errOut != "written to "+path+"\n" {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "format: berth/estate/v1\n") {
		t.Errorf("%v: %q", err, data)
	}
	into := filepath.Join(folder, "none", "x.yaml")
	if said := w.run("export", "--to", into, "-q"); said.exit != Failed || said.errOut != "berth: write the document to "+into+": no such file or directory\n" {
		t.Errorf("an export into no folder: %v", said)
	}
	if said := w.run("export", "--to", folder, "-q"); said.exit != Failed || !strings.Contains(said.errOut, folder+" is a directory: name a file in it") {
		t.Errorf("an export over a folder: %v", said)
	}
	f.exportEstate = func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error) {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	}
	w.patience = 0
	if said := w.run("export", "--to", filepath.Join(folder, "second.yaml"), "-q"); said.exit == Done {
		t.Error("an export without an answer is done")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
