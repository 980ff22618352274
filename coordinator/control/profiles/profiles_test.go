package profiles

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/profile"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
)

// agents are what tells of a week, by node.
type agents struct {
	lead.Agents

	tell map[string]func(vm string) ([]profile.Hour, error)
}

func (a *agents) Perform(_ context.Context, node string, task lead.Task) (lead.TaskDone, error) {
	hours, err := a.tell[node](task.Profile.VM)
	return lead.TaskDone{Profile: hours, Minutes: hours}, err
}

// All nodes are asked, what they tell is joined, and who is silent is named. A node whose answer is a fault of Berth keeps none of
// the others from being heard.
func TestAWeekIsWhatTheNodesTell(t *testing.T) {
	site := statetest.New(t)
	var nodes []model.Node
	n1, _ := site.Snapshot().Node("n1")
	n1.Name = "hv1"
	nodes = append(nodes, n1)
	expect := []state.Expectation{{Table: state.Nodes, ID: "n1", Revision: n1.Revision}}
	for i := 1; i < 4; i++ {
		expect = append(expect, state.Expectation{Table: state.Nodes, ID: fmt.Sprint("n", i+1)})
		nodes = append(nodes, model.Node{ID: fmt.Sprint("n", i+1), Name: fmt.Sprint("hv", i+1)})
	}
	site.Apply(state.Command{Kind: "test", Expect: expect, Nodes: nodes})
	monday := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	at := func(hour int, cpu float64) profile.Hour {
		return profile.Hour{Began: monday.Add(time.Duration(hour) * time.Hour), CPU: new(cpu)}
	}
	p := New(lead.New(lead.Config{Store: site.Store, Logger: hclog.NewNullLogger(), Agents: &agents{
		tell: map[string]func(string) ([]profile.Hour, error){
			"n1": func(string) ([]profile.Hour, error) { return []profile.Hour{at(1, 1), at(170, 2)}, nil },
			"n2": func(vm string) ([]profile.Hour, error) {
				if vm != "v1" {
					return nil, nil
				}
				return []profile.Hour{at(2, 3), at(3, 4)}, nil
			},
			"n3": func(string) ([]profile.Hour, error) { return nil, errors.New("its agent is not connected") },
			"n4": func(string) ([]profile.Hour, error) { panic("a defect") },
		},
	}}))
	said := func(nodes []string, vm string) string {
		told, silent := p.Week(t.Context(), nodes, vm)
		var parts []string
		for _, minute := range told.Minutes {
			if minute.Node == "" {
				t.Errorf("nobody has told %v", minute)
			}
		}
		if len(told.Minutes) < len(told.Hours) {
			t.Errorf("told were %d minutes and %d hours", len(told.Minutes), len(told.Hours))
		}
		for _, one := range told.Hours {
			parts = append(parts, fmt.Sprintf("%s %s %g", one.Began.Format("01-02 15h"), one.Node, *one.CPU))
		}
		for _, why := range silent {
			parts = append(parts, strings.Join(strings.Fields(why)[:2], " "))
		}
		return strings.Join(parts, "; ")
	}
	if got, want := said([]string{"n4", "n3", "n2", "n1"}, "v1"),
		"11-23 01h hv1 1; 11-30 02h hv1 2; 11-23 03h hv2 4; node hv3; node hv4"; got != want {
		t.Errorf("told was %s, want %s", got, want)
	}
	if got, want := said([]string{"n2"}, ""), ""; got != want {
		t.Errorf("told was %s", got)
	}
}
