package inventory_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestOneFormIsWanted(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for _, line := range []string{"", "--ansible --netbox", "--ansible --prometheus", "--netbox --prometheus", "--ansible=false"} {
		said := w.Run(append([]string{"inventory"}, strings.Fields(line)...)...)
		if said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, "give one of --ansible, --prometheus and --netbox") {
			t.Errorf("%q: %d, %s", line, said.Exit, said.ErrOut)
		}
	}
}

// Ansible runs what looks like a template on its own machine, and a node says its agent's release itself.
func TestNothingOfANodeIsATemplate(t *testing.T) {
	const evil = "{{ lookup('pipe', 'id') }}"
	f := clitest.Steady()
	f.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		return &berthv1.ListNodesResponse{SchemaVersion: "1", Nodes: []*berthv1.Node{
			{Name: "n1", AgentRelease: evil, Labels: []string{"{% raw %}", "a"}, Vms: []string{"{# #}"}, Cluster: "c-1"},
		}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("inventory", "--ansible")
	var told struct {
		Meta struct {
			Hosts map[string]map[string]any `json:"hostvars"`
		} `json:"_meta"`
		Cluster struct{ Hosts []string } `json:"berth_cluster_c_1"`
	}
	if err := json.Unmarshal([]byte(said.Out), &told); err != nil || said.Exit != term.Done {
		t.Fatalf("%v, %s", err, said.ErrOut)
	}
	if text, err := json.Marshal(told.Meta.Hosts["n1"]); err != nil || strings.Count(string(text), "{") != 1 {
		t.Errorf("%v: %s", err, text)
	}
	if len(told.Cluster.Hosts) != 1 || told.Cluster.Hosts[0] != "n1" {
		t.Errorf("the group of the cluster has %v", told.Cluster.Hosts)
	}
}

func TestAnEmptySiteIsAList(t *testing.T) {
	f := clitest.Steady()
	f.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		return &berthv1.ListNodesResponse{SchemaVersion: "1"}, nil
	}
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{SchemaVersion: "1"}, nil
	}
	f.OnMembers = func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error) {
		return &berthv1.ListMembersResponse{SchemaVersion: "1"}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for _, form := range []string{"--prometheus", "--netbox"} {
		if said := w.Run("inventory", form); strings.TrimSpace(said.Out) != "[]" {
			t.Errorf("%s: %q, %s", form, said.Out, said.ErrOut)
		}
	}
	if said := w.Run("inventory", "--ansible", "-o", "yaml"); said.Exit != term.Done || !strings.Contains(said.Out, "berth_coordinators") {
		t.Errorf("%q, %s", said.Out, said.ErrOut)
	}
}

// Without a leader another coordinator tells what it last knew, and it is said who does and how old that is. What it was never told is no
// empty list.
func TestWithoutALeaderTheInventoryIsDated(t *testing.T) {
	refusal := rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start the others"}, "no leader")
	f := clitest.Steady()
	f.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) { return nil, refusal }
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) { return nil, refusal }
	known := &berthv1.LastKnown{
		AnsweredBy: "coord2", AgeSeconds: 40, At: timestamppb.New(time.Date(2026, 11, 21, 11, 59, 20, 0, time.UTC)),
	}
	f.OnLastNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		return &berthv1.ListNodesResponse{Nodes: []*berthv1.Node{{Name: "n1", MetricsAddress: "n1:7425"}}, LastKnown: known}, nil
	}
	f.OnLastVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{Vms: []*berthv1.VM{{Name: "web1"}}, LastKnown: known}, nil
	}
	f.OnStatus = func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
		return &berthv1.StatusResponse{Stale: true, Members: []*berthv1.Member{{Name: "coord2", MetricsAddress: "coord2:7424"}}}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for form, want := range map[string]string{
		"--ansible": `"berth_answered_by": "coord2",
      "berth_as_of": "2026-11-21T11:59:20Z"`,
		"--netbox": `"name": "web1"`,
	} {
		said := w.Run("inventory", form)
		if said.Exit != term.Done || !strings.Contains(said.Out, want) || strings.Contains(said.Out, "berth_healthy") ||
			!strings.Contains(said.ErrOut, "40s ago, no quorum: this is what coord2 last knew") {
			t.Errorf("%s: exit %d\n%s\n%s", form, said.Exit, said.Out, said.ErrOut)
		}
	}
	said := w.Run("inventory", "--prometheus")
	if said.Exit == term.Done || said.Out != "" || !strings.Contains(said.ErrOut, "coord2 has never been told where figures are read") {
		t.Errorf("exit %d\n%s\n%s", said.Exit, said.Out, said.ErrOut)
	}
	known.Targets = true
	said = w.Run("inventory", "--prometheus", "-o", "json")
	if said.Exit != term.Done || !strings.Contains(said.Out, "n1:7425") || !strings.Contains(said.Out, "coord2:7424") ||
		!strings.Contains(said.ErrOut, "coord2 last knew") {
		t.Errorf("exit %d\n%s\n%s", said.Exit, said.Out, said.ErrOut)
	}
	if said := w.Run("inventory", "--netbox", "-q"); said.ErrOut != "" {
		t.Errorf("with -q: %s", said.ErrOut)
	}
}
