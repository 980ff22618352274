package forecast_test

import (
	"strconv"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestCapacityInWords(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	var many []*berthv1.CapacityNode
	for i := range 40 {
		many = append(many, &berthv1.CapacityNode{Node: "hv" + strconv.Itoa(i+1), More: int32(i % 2)})
	}
	for _, c := range []struct {
		answer *berthv1.CapacityResponse
		want   string
	}{
		{&berthv1.CapacityResponse{}, "none fits\n"},
		{
			&berthv1.CapacityResponse{RunsOutOf: "pin", RunsOutFirst: "no node fits", Nodes: []*berthv1.CapacityNode{{Node: "hv1"}}},
			"none fits: hv1 0\npin runs out first: no node fits\n",
		},
		{
			&berthv1.CapacityResponse{More: 10, AtLeast: true, Nodes: []*berthv1.CapacityNode{{Node: "hv1", More: 10}}},
			"at least 10 more fit: hv1 10\n",
		},
		{
			&berthv1.CapacityResponse{More: 1, Nodes: []*berthv1.CapacityNode{{Node: "hv1", More: 1}}, Warnings: []string{"many vCPUs"}},
			"1 more fit: hv1 1\nwarning: many vCPUs\n",
		},
		{&berthv1.CapacityResponse{More: 20, Nodes: many}, "20 more fit on 20 of 40 nodes\n"},
	} {
		f.OnRoomFor = func(*berthv1.CapacityRequest) (*berthv1.CapacityResponse, error) { return c.answer, nil }
		if said := w.Run("capacity", "--memory", "1G"); said.Exit != term.Done || said.Out != c.want {
			t.Errorf("exit %d, %q, want %q", said.Exit, said.Out, c.want)
		}
	}
}
