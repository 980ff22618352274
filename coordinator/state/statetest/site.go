// Package statetest is a state with a log of its own, for tests of what reads a state and makes changes of it.
package statetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Noon is when everything happens that a test does not put elsewhere.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Site is a state with a log of its own.
type Site struct {
	testing.TB
	Store *state.Store
	index uint64
}

// New is a site with node n1 and coordinator m1.
func New(t testing.TB) *Site {
	t.Helper()
	s := &Site{TB: t, Store: state.NewStore()}
	s.Apply(state.Command{
		Expect:  []state.Expectation{{Table: state.Nodes, ID: "n1"}, {Table: state.Members, ID: "m1"}},
		Nodes:   []model.Node{{ID: "n1", Name: "n1", Cluster: model.DefaultCluster}},
		Members: []model.Member{{ID: "m1", Name: "m1"}},
	})
	return s
}

// Apply makes a change. A change that is refused ends the test.
func (s *Site) Apply(command state.Command) {
	s.Helper()
	s.index++
	command.Key, command.At = fmt.Sprint("k", s.index), Noon
	data, err := command.Encode()
	if err != nil {
		s.Fatal(err)
	}
	if result := s.Store.FSM().Apply(&raft.Log{Index: s.index, Data: data}).(state.Result); result.Refusal != nil {
		s.Fatal(result.Refusal)
	}
}

// Snapshot is the state now.
func (s *Site) Snapshot() *state.Snapshot { return s.Store.Snapshot() }
