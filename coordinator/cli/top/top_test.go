package top_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// What is busiest comes first, and what is not known last, by every field.
func TestTheBusiestComesFirst(t *testing.T) {
	f := clitest.Steady()
	f.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		node := func(name string, busy, delay, pressure, load float64, used, promised int64) *berthv1.Node {
			return &berthv1.Node{
				Name: name, VcpuDelayPercent: &delay, Ledgers: &berthv1.NodeLedgers{PromisedUsedBytes: promised * clitest.Gib},
				Telemetry: &berthv1.NodeTelemetry{
					CpuBusyRatio: &busy, Load1: &load, MemoryPressure: &berthv1.Pressure{SomeAvg10: pressure},
					MemoryTotalBytes: proto.Int64(64 * clitest.Gib), MemoryAvailableBytes: proto.Int64((64 - used) * clitest.Gib),
				},
			}
		}
		return &berthv1.ListNodesResponse{SchemaVersion: "1", Nodes: []*berthv1.Node{
			{Name: "silent"}, node("a", 0.1, 3, 9, 2, 5, 8), node("b", 0.2, 2, 8, 3, 6, 7), node("c", 0.3, 1, 10, 1, 4, 9),
		}}, nil
	}
	var asked []string
	f.OnListVMs = func(r *berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		asked = r.GetFilter().GetStates()
		vm := func(name string, cpu, delay float64, rss int64) *berthv1.VM {
			return &berthv1.VM{Name: name, Telemetry: &berthv1.DomainTelemetry{CpuRatio: &cpu, VcpuDelayRatio: &delay, RssBytes: &rss}}
		}
		return &berthv1.ListVMsResponse{SchemaVersion: "1", Filtered: true, Vms: []*berthv1.VM{
			{Name: "new"}, vm("a", 1.5, 0.1, 3), vm("b", 0.5, 0.3, 2), vm("c", 1, 0.2, 9),
		}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for line, want := range map[string]string{
		"nodes": "c b a silent", "nodes --sort memory": "b a c silent", "nodes --sort promised": "c a b silent",
		"nodes --sort delay":   "a b c silent",
		"nodes --sort waiting": "c a b silent", "nodes --sort load": "b a c silent", "nodes --sort name": "a b c silent",
		"vms": "a c b new", "vms --sort delay": "b c a new", "vms --sort memory": "c a b new", "vms --sort name": "a b c new",
	} {
		said := w.Run(append([]string{"top", "-o", "name"}, strings.Fields(line)...)...)
		got := strings.Join(strings.Fields(strings.NewReplacer("node/", "", "vm/", "").Replace(said.Out)), " ")
		if said.Exit != term.Done || got != want {
			t.Errorf("%s: %s, want %s; %s", line, got, want, said.ErrOut)
		}
	}
	if got := strings.Join(asked, " "); got != "running paused migrating starting stopping" {
		t.Errorf("VMs were asked for in the states %s", got)
	}
	if w.Run("top", "vms", "--state", "paused"); len(asked) != 1 || asked[0] != "paused" {
		t.Errorf("VMs were asked for in the states %s", asked)
	}
	if said := w.Run("top", "nodes", "--sort", "colour"); said.Exit != term.WrongUsage {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}
