package consensus

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestNoMemberIsAskedTwiceInATermToLead(t *testing.T) {
	var h heirs
	others := []raft.Server{{ID: "m2"}, {ID: "m3"}}
	for _, step := range []struct {
		term uint64
		want raft.ServerID
	}{{7, "m2"}, {7, "m3"}, {7, ""}, {7, ""}, {8, "m2"}, {9, "m2"}} {
		if got, found := h.choose(step.term, others); got.ID != step.want || found != (step.want != "") {
			t.Errorf("in term %d: %q, want %q", step.term, got.ID, step.want)
		}
	}
}
