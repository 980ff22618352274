package resource_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestGoldenStorage(t *testing.T) {
	f := clitest.Steady()
	f.OnDeleteVM = func(r *berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error) {
		if r.GetKeepDisks() {
			return &berthv1.DeleteVMResponse{SchemaVersion: "1"}, nil
		}
		return &berthv1.DeleteVMResponse{SchemaVersion: "1", Operation: clitest.CannedOperation("delete", clitest.Running)}, nil
	}
	f.OnWatchOp = func(_ context.Context, r *berthv1.WatchOperationRequest, send func(*berthv1.WatchOperationResponse) error) error {
		kind := r.GetId()
		if kind == clitest.CannedOperation("delete", clitest.Running).GetId() {
			kind = "delete"
		}
		return send(&berthv1.WatchOperationResponse{Operation: clitest.CannedOperation(kind, clitest.Done)})
	}
	w, _ := clitest.NewSite(t, f)
	image := filepath.Join(filepath.Dir(w.Config), "debian-12.qcow2")
	if err := os.WriteFile(image, imageFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"pool-list":             {"pool", "list"},
		"pool-list-wide":        {"pool", "list", "-o", "wide"},
		"pool-list-name":        {"pool", "list", "-o", "name"},
		"pool-show":             {"pool", "show", "fast"},
		"pool-show-shared":      {"pool", "show", "nfs"},
		"pool-show-json":        {"pool", "show", "nfs", "-o", "json"},
		"customer-spread":       {"customer", "spread", "acme"},
		"disk-grow":             {"disk", "grow", "web1-root", "40G"},
		"disk-grow-json":        {"disk", "grow", "web1-root", "40G", "-o", "json"},
		"image-import":          {"image", "import", image, "--pool", "fast"},
		"image-import-json":     {"image", "import", image, "--pool", "fast", "--name", "base", "-o", "json"},
		"vm-delete-disks":       {"vm", "delete", "web1", "--yes"},
		"vm-delete-disks-async": {"vm", "delete", "web1", "--yes", "--no-wait"},
		"vm-delete-keep":        {"vm", "delete", "web1", "--yes", "--keep-disks"},
		"help-image-import":     {"image", "import", "--help"},
		"help-vm-console":       {"vm", "console", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			said := w.Run(args...)
			if said.Exit != term.Done {
				t.Errorf("exit %d", said.Exit)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// imageFile is a good qcow2 image of 1 GiB, as far as its header tells.
func imageFile() []byte {
	file := make([]byte, 1<<20)
	copy(file, "QFI\xfb")
	for at, v := range map[int]uint32{4: 3, 20: 16, 36: 2, 56: 1, 96: 4, 100: 104} {
		binary.BigEndian.PutUint32(file[at:], v)
	}
	for at, v := range map[int]uint64{24: 1 << 30, 40: 3 << 16, 48: 1 << 16} {
		binary.BigEndian.PutUint64(file[at:], v)
	}
	return file
}

// The file arrives as it is, with its sum and its size; and what is no image is not even begun to be sent.
func TestImportingAnImage(t *testing.T) {
	f := clitest.Steady()
	var came []byte
	taken := f.OnImportImage
	f.OnImportImage = func(start *berthv1.ImportImageStart, file []byte) (*berthv1.ImportImageResponse, error) {
		came = file
		if start.GetName() == "full" {
			return nil, rpc.Errorf(
				connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.Unavailable, NextStep: "free some space"}, "the leader's disk is full",
			)
		}
		return taken(start, file)
	}
	w, _ := clitest.NewSite(t, f)
	dir := filepath.Dir(w.Config)
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("debian.img", imageFile())
	if said := w.Run("image", "import", good, "--pool", "fast", "--offer", "gold", "-q"); said.Exit != term.Done || said.ErrOut != "" {
		t.Fatalf("%+v", said)
	}
	want := &berthv1.ImportImageStart{
		Name: "debian", Pool: "fast", Format: "qcow2", SizeBytes: 1 << 20, Offer: "gold",
	}
	got := clitest.Asked[berthv1.ImportImageStart](f)[0]
	if len(got.GetSha256()) != 64 || got.GetRequestId() == "" {
		t.Errorf("sum %q, request %q", got.GetSha256(), got.GetRequestId())
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(got, "request_id", "sha256")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !bytes.Equal(came, imageFile()) {
		t.Errorf("%d bytes came", len(came))
	}
	said := w.Run("image", "import", good, "--pool", "fast", "--name", "full")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "berth: the leader's disk is full\nnext step: free some space") {
		t.Errorf("a refusal reads %+v", said)
	}
	backed := imageFile()
	backed[15] = 200
	for name, c := range map[string]struct {
		args []string
		say  string
	}{
		"no file":      {[]string{filepath.Join(dir, "none")}, "no such file"},
		"a directory":  {[]string{dir}, "is no regular file"},
		"empty":        {[]string{write("empty.qcow2", nil)}, "does not begin like a qcow2 image"},
		"raw as qcow2": {[]string{write("zero.raw", make([]byte, 1024))}, "does not begin like a qcow2 image"},
		"qcow2 as raw": {[]string{good, "--format", "raw"}, "begins like a qcow2 image"},
		"half a disk":  {[]string{write("odd.raw", make([]byte, 1000)), "--format", "raw"}, "whole sectors"},
		"backed":       {[]string{write("backed.qcow2", backed)}, "backing file"},
	} {
		before := len(clitest.Asked[berthv1.ImportImageStart](f))
		said := w.Run(append([]string{"image", "import", "--pool", "fast"}, c.args...)...)
		if said.Exit != term.Failed || !strings.Contains(said.ErrOut, c.say) || !strings.Contains(said.ErrOut, "next step: ") {
			t.Errorf("%s: %+v, want %q", name, said, c.say)
		}
		if len(clitest.Asked[berthv1.ImportImageStart](f)) != before {
			t.Errorf("%s: it was sent", name)
		}
	}
}

// A word of the designs goes to the coordinators as it was given, and one of nobody's goes nowhere.
func TestAPlannerIsSentAsItWasGiven(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	w.Run("offer", "add", "spread", "--for", "vm", "--planner", "UserDispersingPlanner")
	w.Run("zone", "set", "fra", "--planner", "FirstFitPlanner")
	w.Run("zone", "set", "fra", "--planner", "first-fit")
	added, changed := clitest.Asked[berthv1.AddResourceRequest](f), clitest.Asked[berthv1.ChangeResourceRequest](f)
	if len(added) != 1 || added[0].GetSettings()["planner"] != "UserDispersingPlanner" || len(changed) != 2 ||
		changed[0].GetSettings()["planner"] != "FirstFitPlanner" || changed[1].GetSettings()["planner"] != "first-fit" {
		t.Errorf("asked for %v and %v", added, changed)
	}
	if said := w.Run("zone", "set", "fra", "--planner", "SecondFitPlanner"); said.Exit != term.WrongUsage {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
}
