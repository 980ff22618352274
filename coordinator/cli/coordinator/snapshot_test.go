package coordinator_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestSnapshots(t *testing.T) {
	content := bytes.Repeat([]byte("berth"), 200_000)
	f := clitest.Steady()
	f.OnSave = func(send func(*berthv1.SaveSnapshotResponse) error) error {
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 300_000)
			if err := send(&berthv1.SaveSnapshotResponse{Chunk: rest[:n]}); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	}
	var restored []byte
	f.OnRestore = func(data []byte) (*berthv1.RestoreSnapshotResponse, error) {
		restored = data
		return &berthv1.RestoreSnapshotResponse{Index: 1043, Nodes: 3, Vms: 1}, nil
	}
	w, _ := clitest.NewSite(t, f)
	path := filepath.Join(filepath.Dir(w.Config), "berth.snapshot")
	said := w.Run("coordinator", "snapshot", "save", path)
	if said.Exit != term.Done || said.ErrOut != "snapshot of 976.6 KiB saved to CONFIG/berth.snapshot\n" {
		t.Errorf("exit %d, %q", said.Exit, said.ErrOut)
	}
	if saved, err := os.ReadFile(path); err != nil || !bytes.Equal(saved, content) {
		t.Errorf("saved %d bytes (%v), want %d", len(saved), err, len(content))
	}
	if said := w.Run("coordinator", "snapshot", "save", "-"); said.Out != string(content) {
		t.Errorf("the standard output got %d bytes", len(said.Out))
	}
	said = w.Run("coordinator", "snapshot", "restore", path, "--yes")
	if said.Exit != term.Done || !strings.HasPrefix(
		said.Out, "restored 3 nodes and 1 VM at index 1043\nquarantine: no VM is started",
	) || !bytes.Equal(restored, content) {
		t.Errorf("exit %d, %q, %q, sent %d bytes", said.Exit, said.Out, said.ErrOut, len(restored))
	}
}

// A snapshot that breaks off leaves neither a file nor a piece of one, and never replaces an older one.
func TestSnapshotThatBreaksOff(t *testing.T) {
	f := clitest.Steady()
	f.OnSave = func(send func(*berthv1.SaveSnapshotResponse) error) error {
		if err := send(&berthv1.SaveSnapshotResponse{Chunk: []byte("half")}); err != nil {
			return err
		}
		return connect.NewError(connect.CodeUnavailable, errors.New("the coordinator stops"))
	}
	w, _ := clitest.NewSite(t, f, clitest.Steady())
	folder := t.TempDir()
	path := filepath.Join(folder, "berth.snapshot")
	clitest.WriteFile(t, path, []byte("the old one"))
	if said := w.Run("coordinator", "snapshot", "save", path); said.Exit != term.Failed || !strings.Contains(said.ErrOut, "broke") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "the old one" {
		t.Errorf("the old snapshot is now %q (%v)", kept, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}

// A refused snapshot shows the coordinator's reason, not that the stream ended.
func TestSnapshotThatIsRefused(t *testing.T) {
	f := clitest.Steady()
	f.OnRestore = func([]byte) (*berthv1.RestoreSnapshotResponse, error) {
		return nil, rpc.Errorf(
			connect.CodeInvalidArgument, &berthv1.ErrorDetail{Code: rpc.Invalid, NextStep: "use another file"}, "not a snapshot of berth",
		)
	}
	w, _ := clitest.NewSite(t, f)
	w.In = strings.NewReader("nonsense")
	if said := w.Run(
		"coordinator", "snapshot", "restore", "-", "--yes",
	); said.Exit != term.Failed || said.ErrOut != "berth: not a snapshot of berth\nnext step: use another file\n" {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}
