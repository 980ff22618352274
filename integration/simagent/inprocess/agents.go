// Package inprocess has agents in the process of the leader that is measured: nothing goes over a wire, and they do at once what they are
// told.
package inprocess

import (
	"context"
	"errors"
	"sync"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// Boot is what the hosts run under.
const Boot = "boot"

var errNoTasks = errors.New("an agent in the leader's process does no tasks")

// Agents are those of a site. They implement lead.Agents.
type Agents struct {
	Store     *state.Store
	Inventory *inventory.Store
	Answered  func(operation.Answer) // where the ends of orders go

	mu       sync.Mutex
	sessions map[string]*session
}

// session is one node's.
type session struct {
	reports  *inventory.Session
	sequence uint64
}

// Join opens the session of a node, which tells its inventory.
func (a *Agents) Join(node string, report *berthv1.InventoryReport) error {
	reports, err := a.Inventory.OpenSession(node, &berthv1.Hello{NodeId: node, Incarnation: Boot + "/1"}, 1)
	if err != nil {
		return err
	}
	reports.Keep(model.PaceOf(a.Store.Snapshot().CountNodes()))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions == nil {
		a.sessions = make(map[string]*session)
	}
	own := &session{reports: reports, sequence: 1}
	a.sessions[node] = own
	own.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: report}})
	return nil
}

func (s *session) say(message *berthv1.SessionRequest) {
	s.sequence++
	message.Sequence = s.sequence
	s.reports.Report(message)
}

// Count is how many nodes have joined.
func (a *Agents) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sessions)
}

// Sample has a node tell how it is. The sequence is that of its last message.
func (a *Agents) Sample(node string, made func(sequence uint64) *berthv1.NodeTelemetry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.sessions[node]
	own.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: made(own.sequence)}})
}

// Running is a VM as its node lists it.
func Running(vm, name string, epoch uint64, size model.Size) *berthv1.Domain {
	return &berthv1.Domain{
		Uuid: vm, Name: name, State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Managed: true, Epoch: epoch,
		MemoryBytes: int64(size.Memory), Vcpus: int32(size.VCPUs),
	}
}

// Order implements lead.Agents: the VM runs at once.
func (a *Agents) Order(_ uint64, order operation.Order) bool {
	go func() {
		record, _ := a.Store.Snapshot().VM(order.VM)
		a.mu.Lock()
		a.sessions[order.Node].say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{DomainChange: &berthv1.DomainChange{
			Domain: Running(order.VM, record.Name, order.Epoch, record.NextSize()), Event: "started",
		}}})
		a.mu.Unlock()
		a.Answered(operation.Answer{
			Operation: order.Operation, Node: order.Node, Step: order.Step, Outcome: operation.OutcomeDone,
			Seen: operation.Observation{State: model.DomainRunning, Epoch: order.Epoch},
		})
	}()
	return true
}

// Lacks implements lead.Agents: they know everything.
func (a *Agents) Lacks(operation.Order) []string { return nil }

// Cancel implements lead.Agents: what is ordered has ended already.
func (a *Agents) Cancel(string, string, uint32) {}

// Removed are the nodes that were removed and are heard: none.
func (a *Agents) Removed() []evidence.Removed { return nil }

// Perform implements lead.Agents.
func (a *Agents) Perform(context.Context, string, lead.Task) (lead.TaskDone, error) {
	return lead.TaskDone{}, errNoTasks
}

// SuspendRemoved implements lead.Agents.
func (a *Agents) SuspendRemoved(context.Context, string, lead.CopyOf) error { return errNoTasks }
