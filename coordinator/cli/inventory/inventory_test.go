package inventory_test

import (
	"encoding/json"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
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
