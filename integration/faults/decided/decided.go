// Package decided is a person of the simulator who decides what Berth leaves to people: about operations that are parked, and about copies
// of disks.
package decided

import (
	"hash/fnv"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Person knows what Berth shows, and does what Berth says.
type Person struct {
	Records  *state.Snapshot
	At       time.Time
	Key      func() string
	Propose  func(command state.Command, drive string) // the ID of the operation that goes on once it is stored; empty: none
	HasDisk  func(node, vm string) bool
	Observed func(node, vm string) operation.Observation // nil: nobody tells, and nothing is decided about operations
	IsWhole  func(node, vm string) bool                  // a copy has all that the guest has done: its owner knows that, and Berth may not
	End      func(node, vm string)                       // virsh destroy
}

// Decide tells whether there was something to be decided, or to be done first.
func (p *Person) Decide() bool {
	copies := p.copies()
	return p.parked() || copies
}

// copies takes whole copies of disks where the disks are gone.
func (p *Person) copies() (did bool) {
	for _, vm := range p.Records.VMs() {
		if vm.Copies == nil || vm.Operation+vm.Holder != "" || !vm.Copies.Whole || vm.Home == "" || p.HasDisk(vm.Home, vm.ID) {
			continue
		}
		did = true
		before := vm.Revision
		vm.Home, vm.Copies, vm.Restarts = vm.Copies.Node, nil, 0
		p.Propose(state.Command{
			Key: p.Key(), Kind: "resolve operation", Caller: "sim", At: p.At,
			Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: before}}, VMs: []model.VM{vm},
		}, "")
	}
	return did
}

// parked resolves operations, each in a way that its ID draws, of those that Berth lets it be resolved in.
func (p *Person) parked() (did bool) {
	if p.Observed == nil {
		return false
	}
	for _, op := range p.Records.LiveOperations() {
		vm, known := p.Records.VM(op.VM)
		if op.Result != operation.Parked || !known {
			continue
		}
		drawn := fnv.New32a()
		_, _ = drawn.Write([]byte(op.ID))
		keeps := []string{operation.KeepSource, operation.KeepTarget, operation.KeepNone}
		for i := range keeps {
			if p.resolve(op, vm, keeps[(int(drawn.Sum32()%3)+i)%3]) {
				did = true
				break
			}
		}
	}
	return did
}

// resolve keeps a copy, or neither, and ends first what is in the way. False: that cannot be done, or nobody would: a guest that runs is
// ended only where another one is kept.
func (p *Person) resolve(op operation.Operation, vm model.VM, keep string) bool {
	seen, kept := map[string]operation.Observation{}, map[string]string{operation.KeepSource: op.Source, operation.KeepTarget: op.Target}[keep]
	for _, node := range []string{op.Source, op.Target} {
		if node == "" {
			continue
		}
		seen[node] = p.Observed(node, op.VM)
		if keep == operation.KeepNone && seen[node].State == model.DomainRunning || node == kept &&
			(!seen[node].State.Holds() || !p.IsWhole(node, op.VM)) {
			return false
		}
	}
	next, obstacle := operation.Resolve(op, vm, keep, seen, "somebody", p.At)
	switch {
	case obstacle == nil:
		p.Propose(state.Command{
			Key: p.Key(), Kind: "resolve operation", Caller: "sim", At: p.At,
			Expect: []state.Expectation{
				{Table: state.Operations, ID: op.ID, Revision: op.Revision}, {Table: state.VMs, ID: vm.ID, Revision: vm.Revision},
			},
			Operations: []operation.Operation{next.Operation}, VMs: []model.VM{next.VM},
		}, op.ID)
		return true
	case obstacle.Code == operation.StillThere:
		p.End(obstacle.Node, op.VM)
		return true
	default:
		return false
	}
}
