package vm_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// What cannot be taken back is asked about first, and nothing is sent that contradicts itself.
func TestSnapshotCommandsSayWhatIsWanted(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "snapshot", "add", "web1", "web2", "--name", "weekly", "--freeze", "--description", "before", "--no-wait")
	if said.Exit != term.Done || !strings.Contains(said.Out, "vm/web2: taking snapshot weekly on node2") {
		t.Errorf("exit %d, said %q and %q", said.Exit, said.Out, said.ErrOut)
	}
	sent := clitest.Asked[berthv1.ActOnVMsRequest](f)
	if len(sent) != 1 || len(sent[0].GetVms()) != 2 || sent[0].GetSnapshot().GetName() != "weekly" ||
		sent[0].GetSnapshot().GetFreeze() != "always" || sent[0].GetSnapshot().GetDescription() != "before" {
		t.Errorf("the coordinator was asked %v", sent)
	}
	for _, args := range [][]string{
		{"vm", "snapshot", "add", "web1"},
		{"vm", "snapshot", "add", "--name", "x"},
		{"vm", "snapshot", "add", "web1", "--name", "x", "--freeze", "--no-freeze"},
		{"vm", "snapshot", "revert", "web1", "--name", "x"},
		{"vm", "snapshot", "delete", "web1", "--name", "x"},
	} {
		if said := w.Run(args...); said.Exit != term.WrongUsage {
			t.Errorf("%q: exit %d, %q", args, said.Exit, said.ErrOut)
		}
	}
	if sent := clitest.Asked[berthv1.ActOnVMsRequest](f); len(sent) != 1 {
		t.Errorf("it was asked %v", sent)
	}
	said = w.Run("vm", "snapshot", "revert", "web1", "--name", "weekly", "--yes", "--no-wait")
	sent = clitest.Asked[berthv1.ActOnVMsRequest](f)
	if said.Exit != term.Done || len(sent) != 2 || sent[1].GetRestore().GetName() != "weekly" {
		t.Errorf("exit %d, %q; asked %v", said.Exit, said.ErrOut, sent)
	}
}

func TestSnapshotListTellsHowConsistentTheyAre(t *testing.T) {
	f := clitest.Steady()
	f.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		at := timestamppb.New(time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC))
		one := func(name, consistency string) *berthv1.Snapshot {
			return &berthv1.Snapshot{
				Name: name, TakenAt: at, TakenBy: "operator/admin", Consistency: consistency,
				Disks: []*berthv1.SnapshotDisk{{Target: "vda", Source: "fast/a"}, {Target: "vdb", Source: "fast/b"}},
			}
		}
		half := one("half", "")
		half.Partial = true
		return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: &berthv1.VM{
			Name: "web1", Reverting: "crashed", Snapshots: []*berthv1.Snapshot{one("crashed", "crash"), one("whole", "frozen"), half},
		}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for _, args := range [][]string{{"vm", "snapshot", "list", "web1"}, {"vm", "show", "web1"}} {
		said := w.Run(args...)
		for _, part := range []string{"as after a power cut", "yes, frozen", "not whole: delete it", "vda,vdb", "revert web1 --name crashed"} {
			if said.Exit != term.Done || !strings.Contains(said.Out, part) {
				t.Errorf("%q: exit %d, %q has no %q", args, said.Exit, said.Out, part)
			}
		}
	}
}
