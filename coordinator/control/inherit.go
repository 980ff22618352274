package control

import (
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/state"
)

// inherited is what a VM has from the estate, as of one snapshot.
type inherited struct {
	estate.Resolved
	settings cluster.Settings // of its cluster
	policy   placement.Policy // likewise
	vdc      string           // ID; empty: none
}

// inherit walks up from a VM. The error is an *Error: the estate does not hold together above it.
func inherit(snapshot *state.Snapshot, vm cluster.VM) (inherited, error) {
	resolved, err := estate.Resolve(snapshot, vm)
	if err != nil {
		return inherited{}, unlinked(vm, err)
	}
	policy, _, err := estate.PolicyOf(snapshot, resolved.Record)
	if err != nil {
		return inherited{}, unlinked(vm, err)
	}
	return inherited{Resolved: resolved, settings: cluster.SettingsOf(&resolved.Record), policy: policy, vdc: vm.VDC}, nil
}

func unlinked(vm cluster.VM, err error) *Error {
	return &Error{Code: Invalid, Subject: "vm/" + vm.Name, Message: err.Error(), NextStep: "link it to what there is, see 'berth vm --help'"}
}

// local tells whether the VM's cluster has local storage.
func (i *inherited) local() bool { return i.settings.Storage == cluster.LocalStorage }

// unchanged expects what a decision has read of the estate: the cluster with its settings, node keys and keys, the VDC
// that leads to it, and its policy. The default cluster has no record until it is declared, and a built-in policy has none.
func (i *inherited) unchanged(snapshot *state.Snapshot) []state.Expectation {
	expect := []state.Expectation{{Table: state.Resources, ID: i.Record.ID, Revision: i.Record.Revision}}
	for _, id := range []string{i.vdc, i.Record.Links[estate.LinkPolicy]} {
		if record, found := snapshot.Resource(id); found {
			expect = append(expect, state.Expectation{Table: state.Resources, ID: record.ID, Revision: record.Revision})
		}
	}
	return expect
}

// target is the node that a decision found for a start, with what the start does to the VM.
func (i *inherited) target(snapshot *state.Snapshot, decision placement.Decision) operation.Target {
	node, _ := snapshot.Node(decision.Winner)
	return operation.Target{
		Node: decision.Winner, Name: decision.WinnerName, Decision: decision.ID, Sticky: cluster.StickyCopies(&i.Record, &node),
		Resident: key.ResidentsOf(decision.Request.CustomerKeys), Owner: i.Owner,
	}
}

// decide runs the engine on the present view, by the policy of the VM's cluster. The decision is of the view's moment.
//
// The VM has no part in the figures it is judged by: its record still names the node that it ran on when it is started
// after its guest switched itself off.
func (c *Control) decide(
	snapshot *state.Snapshot, from inherited, request placement.Request, caller string,
) placement.Decision {
	at := c.Now()
	view := c.Inventory.View(snapshot, at)
	if vm, there := snapshot.VM(request.VM); there {
		view = view.Without(vm.ID, vm.Holder)
	}
	decision := placement.Place(view, request, from.policy, c.Random())
	decision.ID, decision.Caller = cluster.NewID(at, c.Random()), caller
	if c.Logger.IsDebug() {
		if table := placement.RankCSV(decision); table != "" {
			c.Logger.Debug("ranks", "decision", decision.ID, "vm", request.VMName, "table", "\n"+table)
		}
	}
	return decision
}
