package api

import (
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// A member without a leader tells what passed through it last, with its age. Where nothing has, it does not know, and does not say 0.
func TestWhatWasHeardLastIsToldWithItsAge(t *testing.T) {
	var h heard
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	status := &berthv1.StatusResponse{NodesTotal: 3}
	if h.tell(status, noon); status.HeardSeconds != nil {
		t.Errorf("told %v without having heard anything", status)
	}
	h.keep(&berthv1.StatusResponse{NodesUp: 3, VmsRunning: 25}, noon)
	h.tell(status, noon.Add(40*time.Second))
	if status.GetNodesUp() != 3 || status.GetVmsRunning() != 25 || status.HeardSeconds == nil || status.GetHeardSeconds() != 40 {
		t.Errorf("told %v", status)
	}
}
