package console_test

import (
	"net/http"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	berthv1 "berth/shared/gen/berth/v1"
)

// The pages of a VM and of its node say what waits there, and that of a migration what it was expected to take beside what it took.
func TestPagesTellWhatWaitsAndWhatWasExpected(t *testing.T) {
	h := newHall(t)
	op := clitest.CannedOperation("migrate", clitest.Done)
	op.Predicted = &berthv1.MigrationPrediction{ElapsedSeconds: 12, DataProcessedBytes: 3 << 30, DowntimeSeconds: 0.08, Of: 1}
	h.fake.OnGetOp = func(*berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error) {
		return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
	}
	for path, wants := range map[string][]string{
		"/vms/web1": {
			"300 MiB of memory, 0.42 CPUs", "a thread of it for a CPU 1.2 %, for memory 0.0 %, for disks 7.5 % of the last 10 s",
		},
		"/nodes/node1":              {"<dt>Waits</dt><dd>not known: its kernel does not tell, or its agent is silent</dd>"},
		"/operations/" + op.GetId(): {"<dt>Expected</dt><dd>12 s, 3 GiB sent, downtime 0.08 s, as by 1 migration before</dd>"},
	} {
		_, body := h.ask(http.MethodGet, path, "good", nil)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, body)
			}
		}
	}
	node := &berthv1.Node{Name: "node1", Telemetry: &berthv1.NodeTelemetry{
		CpuPressure: &berthv1.Pressure{SomeAvg10: 1.5}, MemoryPressure: &berthv1.Pressure{SomeAvg10: 0.5},
		IoPressure: &berthv1.Pressure{SomeAvg10: 3},
	}}
	h.fake.OnGetNode = func(*berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
		return &berthv1.GetNodeResponse{SchemaVersion: "1", Node: node}, nil
	}
	const want = "some work for a CPU 1.5 %, for memory 0.5 %, for disks 3.0 % of the last 10 s"
	if _, body := h.ask(http.MethodGet, "/nodes/node1", "good", nil); !strings.Contains(body, want) {
		t.Errorf("the node's page lacks %q:\n%s", want, body)
	}
}
