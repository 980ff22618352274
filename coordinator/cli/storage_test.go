package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/testing/protocmp"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestGoldenStorage(t *testing.T) {
	f := steady()
	f.deleteVM = func(r *berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error) {
		if r.GetKeepDisks() {
			return &berthv1.DeleteVMResponse{SchemaVersion: "1"}, nil
		}
		return &berthv1.DeleteVMResponse{SchemaVersion: "1", Operation: cannedOperation("delete", running)}, nil
	}
	f.watchOp = func(_ context.Context, r *berthv1.WatchOperationRequest, send func(*berthv1.WatchOperationResponse) error) error {
		kind := r.GetId()
		if kind == cannedOperation("delete", running).GetId() {
			kind = "delete"
		}
		return send(&berthv1.WatchOperationResponse{Operation: cannedOperation(kind, done)})
	}
	w, _ := newWorld(t, f)
	image := filepath.Join(filepath.Dir(w.config), "debian-12.qcow2")
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
			said := w.run(args...)
			if said.exit != Done {
				t.Errorf("exit %d", said.exit)
			}
			golden(t, name+".golden", said.out+errSection(said.errOut))
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
	f := steady()
	var came []byte
	taken := f.importImage
	f.importImage = func(start *berthv1.ImportImageStart, file []byte) (*berthv1.ImportImageResponse, error) {
		came = file
		if start.GetName() == "full" {
			return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.Unavailable, NextStep: "free some space"}, "the leader's disk is full")
		}
		return taken(start, file)
	}
	w, _ := newWorld(t, f)
	dir := filepath.Dir(w.config)
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("debian.img", imageFile())
	if said := w.run("image", "import", good, "--pool", "fast", "--offer", "gold", "-q"); said.exit != Done || said.errOut != "" {
		t.Fatalf("%+v", said)
	}
	want := &berthv1.ImportImageStart{
		Name: "debian", Pool: "fast", Format: "qcow2", SizeBytes: 1 << 20, Offer: "gold",
	}
	got := asked[berthv1.ImportImageStart](f)[0]
	if len(got.GetSha256()) != 64 || got.GetRequestId() == "" {
		t.Errorf("sum %q, request %q", got.GetSha256(), got.GetRequestId())
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(got, "request_id", "sha256")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !bytes.Equal(came, imageFile()) {
		t.Errorf("%d bytes came", len(came))
	}
	said := w.run("image", "import", good, "--pool", "fast", "--name", "full")
	if said.exit != Failed || !strings.Contains(said.errOut, "berth: the leader's disk is full\nnext step: free some space") {
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
		before := len(asked[berthv1.ImportImageStart](f))
		said := w.run(append([]string{"image", "import", "--pool", "fast"}, c.args...)...)
		if said.exit != Failed || !strings.Contains(said.errOut, c.say) || !strings.Contains(said.errOut, "next step: ") {
			t.Errorf("%s: %+v, want %q", name, said, c.say)
		}
		if len(asked[berthv1.ImportImageStart](f)) != before {
			t.Errorf("%s: it was sent", name)
		}
	}
}

// What is piped in is typed, and what the guest answers is printed as it is.
func TestAConsoleInAPipe(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	w.in = strings.NewReader("uname\r\x1dnot this")
	said := w.run("vm", "console", "web1", "--force")
	if said.exit != Done || !strings.HasPrefix(said.out, "uname\r") || strings.Contains(said.out, "not this") {
		t.Errorf("%+v", said)
	}
	if !strings.Contains(said.errOut, "Ctrl-] leaves it") {
		t.Errorf("the way out is not told: %q", said.errOut)
	}
	if first := asked[berthv1.ConsoleRequest](f)[0]; first.GetVm() != "web1" || !first.GetForce() {
		t.Errorf("asked for %v", first)
	}
	w.in = strings.NewReader("stop\r")
	if said := w.run("vm", "console", "web1", "-q"); said.exit != Done || said.out != "bye" || said.errOut != "" {
		t.Errorf("the guest ends it: %+v", said)
	}
	f.console = func(*connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
		return rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Busy, NextStep: "--force takes it"}, "somebody has it")
	}
	w.in = strings.NewReader("")
	if said := w.run("vm", "console", "web1"); said.exit != Failed || !strings.Contains(said.errOut, "berth: somebody has it\nnext step: --force takes it") {
		t.Errorf("a refusal: %+v", said)
	}
	f.console = func(stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
		return errors.Join(stream.Send(&berthv1.ConsoleResponse{Data: []byte("login: ")}), connect.NewError(connect.CodeUnavailable, errors.New("gone")))
	}
	if said := w.run("vm", "console", "web1"); said.exit != Failed || said.out != "login: " || !strings.Contains(said.errOut, "the console was cut off") {
		t.Errorf("cut off: %+v", said)
	}
}

// On a terminal every key goes to the guest, Ctrl-C too; afterwards the terminal is as it was, whoever ended it.
func TestAConsoleOnATerminal(t *testing.T) {
	for name, last := range map[string]string{"the person leaves": "\x1d", "the guest stops": "stop\r"} {
		t.Run(name, func(t *testing.T) {
			user, tty := openTerminal(t)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := newWorld(t, steady())
			w.in = tty
			shown := &screen{}
			ended := make(chan Exit, 1)
			go func() { ended <- w.runTo(t.Context(), shown, io.Discard, "vm", "console", "web1") }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for now := before; now.Lflag&unix.ICANON != 0; { // what is typed too early would not come as keys
				if !pause(ctx, 10*time.Millisecond) {
					t.Fatal("the terminal was not set up")
				}
				if now, err = unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := user.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
			if err := shown.await(ctx, "\x03"); err != nil {
				t.Fatalf("Ctrl-C did not reach the guest: %q", shown)
			}
			if _, err := user.WriteString(last); err != nil {
				t.Fatal(err)
			}
			select {
			case exit := <-ended:
				if exit != Done {
					t.Errorf("exit %d", exit)
				}
			case <-ctx.Done():
				t.Fatal("it did not end")
			}
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the terminal is not as it was (-before +after):\n%s", diff)
			}
			_, _ = user.WriteString("\n") // for whoever still reads
		})
	}
}

func TestTheProgressOfCopiedDisks(t *testing.T) {
	stats := &berthv1.MigrationStats{
		ElapsedSeconds: 12, DataTotalBytes: 5 << 30, DataProcessedBytes: 3 << 30, DataRemainingBytes: 2 << 30, MemoryBps: 100 << 20,
		DiskTotalBytes: 4 << 30, DiskProcessedBytes: 5 << 29, DiskRemainingBytes: 3 << 29,
	}
	if got, want := transfer(stats), "disks 2.5 GiB of 4 GiB, memory 512 MiB sent, 512 MiB left, 100 MiB/s, 12s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := moved(stats); !strings.HasPrefix(got, "3 GiB sent, 2.5 GiB of it from disks, ") {
		t.Errorf("%q", got)
	}
}
