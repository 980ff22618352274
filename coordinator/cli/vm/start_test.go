package vm_test

import (
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

// A dry run that finds no node shows the whole decision and still says so by its exit code.
func TestDryRunThatIsRefused(t *testing.T) {
	f := clitest.Steady()
	refused := clitest.CannedRefusal()
	refused.DryRun = true
	f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.NoNodeFits, Decision: refused}, "no node fits")
	}
	f.OnMigrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
		return &berthv1.MigrateVMResponse{Decision: refused}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for _, args := range [][]string{
		{"vm", "start", "big", "--memory", "256G", "--dry-run"}, {"vm", "migrate", "big", "--best", "--dry-run"},
	} {
		said := w.Run(args...)
		if said.Exit != term.NoNodeFits || !strings.HasPrefix(said.Out, "dry run 3nqk7d2m0d9zz: nothing was changed\n") ||
			!strings.HasPrefix(said.ErrOut, "berth: no node fits: ") || strings.Contains(said.ErrOut, "NODE") {
			t.Errorf("%v: exit %d, %q, %q", args, said.Exit, said.Out, said.ErrOut)
		}
	}
}

// A migration on trial says what it would take, also where it would be the first.
func TestADryRunTellsWhatAMigrationTakes(t *testing.T) {
	f := clitest.Steady()
	f.OnMigrateVM = func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
		decision := clitest.CannedDecision()
		decision.Purpose, decision.DryRun = "migrate", true
		return &berthv1.MigrateVMResponse{Decision: decision, Predicted: &berthv1.MigrationPrediction{
			ElapsedSeconds: 20, LeastSeconds: 10, MostSeconds: 160, DataProcessedBytes: 2 << 30,
			By: []string{"its limit", "the memory that it uses"},
		}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "migrate", "web1", "--best", "--dry-run", "--bandwidth", "100M")
	const want = "\nexpected: 2 GiB sent in 20s (10s to 2m40s), by its limit, the memory that it uses\n"
	if said.Exit != term.Done || !strings.HasSuffix(said.Out, want) {
		t.Errorf("exit %d, %s, %s", said.Exit, said.Out, said.ErrOut)
	}
}

// A start that is let in with a warning says so beside its answer, in JSON in it only.
func TestStartTellsWarnings(t *testing.T) {
	f := clitest.Steady()
	f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		decision := clitest.CannedDecision()
		decision.Warnings = []string{"more vCPUs than CPUs"}
		return &berthv1.StartVMResponse{Decision: decision, Operation: &berthv1.Operation{Id: "o1", Vm: "web1"}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	if said := w.Run("vm", "start", "web1", "--wait=false"); said.Exit != term.Done || said.ErrOut != "warning: more vCPUs than CPUs\n" {
		t.Errorf("%+v", said)
	}
	said := w.Run("vm", "start", "web1", "--wait=false", "-o", "json")
	if said.ErrOut != "" || !strings.Contains(said.Out, "more vCPUs than CPUs") {
		t.Errorf("%+v", said)
	}
	if said := w.Run("vm", "start", "web1", "--dry-run"); !strings.Contains(said.Out, "warning") {
		t.Errorf("%+v", said)
	}
}

// What stands on the line is what the coordinator is asked.
func TestStartSendsWhatWasDescribed(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	document := filepath.Join(t.TempDir(), "vm.xml")
	if err := os.WriteFile(document, []byte("<domain/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		want *berthv1.StartVMRequest
	}{
		{"web1", &berthv1.StartVMRequest{Name: "web1"}},
		{"web1 --node node3", &berthv1.StartVMRequest{Name: "web1", Node: "node3"}},
		{
			"tiny --memory 1.5G",
			&berthv1.StartVMRequest{Name: "tiny", Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: 3 * clitest.Gib / 2, Vcpus: 1}}},
		},
		{
			"db1 --memory 8G --vcpus 4 --disk /b.raw,bus=scsi,format=qcow2 --disk /c.iso,readonly --image /a.qcow2 " +
				"--network default --network bridge:br0",
			&berthv1.StartVMRequest{
				Name: "db1",
				Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{
					MemoryBytes: 8 * clitest.Gib, Vcpus: 4, Networks: []string{"default", "bridge:br0"},
					Disks: []*berthv1.Disk{
						{Path: "/a.qcow2", Format: "qcow2", Bus: "virtio"},
						{Path: "/b.raw", Format: "qcow2", Bus: "scsi"},
						{Path: "/c.iso", Format: "raw", Bus: "virtio", ReadOnly: true},
					},
				}},
			},
		},
		{
			"k --memory 128M --kernel /k --initrd /i --cmdline console=ttyS0",
			&berthv1.StartVMRequest{
				Name: "k",
				Vm: &berthv1.NewVM{
					Spec: &berthv1.VMSpec{MemoryBytes: 128 << 20, Vcpus: 1, Kernel: "/k", Initrd: "/i", Cmdline: "console=ttyS0"},
				},
			},
		},
		{
			"c --memory 1G --image debian --root-size 20G --pool fast --keep-root --root-bus scsi --pod fra-1 --machine q35 --firmware efi " +
				"--cpu host-passthrough --user-data -",
			&berthv1.StartVMRequest{
				Name: "c",
				Vm: &berthv1.NewVM{Within: "pod/fra-1", Root: &berthv1.RootDisk{
					Image: "debian", SizeBytes: 20 * clitest.Gib, Pool: "fast", Bus: "scsi", Keep: true,
				}, Spec: &berthv1.VMSpec{
					MemoryBytes: clitest.Gib, Vcpus: 1, Machine: "q35", Firmware: "efi", Cpu: "host-passthrough", UserData: "<domain type='kvm'/>",
				}},
			},
		},
		{"--xml " + document, &berthv1.StartVMRequest{Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: "<domain/>"}}}},
		{"web1 --xml -", &berthv1.StartVMRequest{Name: "web1", Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{Xml: "<domain type='kvm'/>"}}}},
	} {
		w.In = strings.NewReader("<domain type='kvm'/>")
		said := w.Run(append([]string{"vm", "start"}, strings.Fields(c.line)...)...)
		sent := clitest.Asked[berthv1.StartVMRequest](f)
		if said.Exit != term.Done || len(sent) == 0 {
			t.Errorf("%s: exit %d, %s", c.line, said.Exit, said.ErrOut)
			continue
		}
		last := sent[len(sent)-1]
		if len(last.GetRequestId()) < 16 {
			t.Errorf("%s: request ID %q", c.line, last.GetRequestId())
		}
		last.RequestId = ""
		if diff := cmp.Diff(c.want, last, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

func TestStartRefusesABadDocument(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.xml")
	if err := os.WriteFile(huge, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, say := range map[string]string{
		filepath.Join(folder, "none.xml"): "no such file", huge: "is longer than 256 KiB", "-": "is empty", folder: "is a directory",
	} {
		w.In = strings.NewReader(" \n")
		if said := w.Run("vm", "start", "--xml", path); said.Exit != term.Failed || !strings.Contains(said.ErrOut, say) {
			t.Errorf("%s: exit %d, %s", path, said.Exit, said.ErrOut)
		}
	}
}
