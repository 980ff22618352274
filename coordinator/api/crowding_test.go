package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// By affinity CPU refuses no node, so everybody who looks is told what vCPUs come to.
func TestVCPUsBeyondTheCPUsAreTold(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	m.addNode("n1", "hv1")
	m.addVM(model.VM{
		ID: "v1", Name: "wide", Desired: model.Running, Holder: "n1", Epoch: 1, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 129},
	})
	m.reportIdle("n1", 16*units.GiB) // 16 CPUs, and cpu_ratio is 8
	const (
		passed = "more vCPUs are promised than the CPUs times cpu_ratio: hv1 129 of 128"
		wide   = "more vCPUs in one VM than its node has CPUs: wide 129 on hv1, which has 16"
	)
	node, err := client.GetNode(t.Context(), connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv1"}))
	if err != nil || strings.Join(node.Msg.GetNode().GetWarnings(), "\n") != passed+"\n"+wide {
		t.Errorf("the node is shown with %v, %v", node.Msg.GetNode().GetWarnings(), err)
	}
	status, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{passed + "; move or stop some; ", wide + "; move or stop some; "} {
		if problems := strings.Join(status.Msg.GetProblems(), "\n"); !strings.Contains(problems, want) {
			t.Errorf("the problems lack %q:\n%s", want, problems)
		}
	}
	m.reportIdle("n1", 16*units.GiB)
	request := &berthv1.CapacityRequest{MemoryBytes: int64(units.GiB), Vcpus: 200, Most: 1}
	answer, err := client.Capacity(t.Context(), connect.NewRequest(request))
	want := "more vCPUs are promised than the CPUs times cpu_ratio: hv1 329 of 128\n" +
		"more vCPUs in one VM than its node has CPUs: 200 on hv1, which has 16"
	if err != nil || answer.Msg.GetMore() != 1 || strings.Join(answer.Msg.GetWarnings(), "\n") != want {
		t.Errorf("capacity %v, %v", answer, err)
	}
}
