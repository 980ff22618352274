// Package bound has what keeps guests of the simulator where they are, as leaders know it, and the rules that compare what is begun with
// what there really is: guests that libvirt does not migrate, jobs of others, and pools that are declared as shared and are not.
package bound

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/binding"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
	"berth/shared/domxml"
)

// Begin is somebody who gives a guest a device of its host, or begins a backup of it.
func Begin(site *machine.Site, machines []*machine.Machine, vm string, what script.Happening) {
	bind, fault := domxml.Binding{Kind: domxml.HostDeviceBinding, What: "pci", Name: "0000:01:00.0"}, script.BoundGuest
	if what.What == script.Backup {
		bind, fault = domxml.Binding{Kind: domxml.JobBinding, What: "backup"}, script.ForeignJob
	}
	for _, h := range machines {
		if d, did := machine.Bind(h, vm, bind); did {
			site.Draw(fault)
			if fault == script.ForeignJob {
				site.After(what.For, func() { machine.Release(h, d) })
			}
		}
	}
}

// Lay gives some machines another storage under the name of a pool that is declared as shared, and declares it.
func Lay(site *machine.Site, machines []*machine.Machine, played *script.Script, command *state.Command) {
	site.Local = map[string]bool{}
	for i := range played.Local {
		site.Local[script.UUIDOf(played.VMs-1-i)] = true
	}
	site.Sizes = played.Sizes
	if site.Drifts = played.Drifts; len(played.Liars) == 0 && !played.Drifts {
		return
	}
	site.Wide, site.OldFiles = true, played.OldFiles
	for _, liar := range played.Liars {
		h := machines[liar%len(machines)]
		h.Side = h.ID
	}
	pool := model.Resource{
		ID: machine.WidePool, Kind: model.KindPool, Name: machine.WidePool,
		Settings: map[string]string{model.SettingScope: string(model.PoolShared)},
	}
	command.Resources = append(command.Resources, pool)
	command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: pool.ID})
}

// Every is the pause between two trials, as control's.
const Every = 3 * time.Second

// Pools are the trials of one leader.
type Pools struct {
	Site     *machine.Site
	Machines []*machine.Machine // of the nodes
	// Moment is what the leader knows now, and Ask has a node do something; then is called if it has.
	Moment func() evidence.Moment
	Ask    func(what, node string, task func(*machine.Machine) error, then func())
	// OneTrial is a planted bug: what one pair of nodes has shown counts for all.
	OneTrial bool

	trials evidence.LockTrials
	trying int // of all trials, the one that is under way; 0: none is
	made   int
	apart  model.PoolsApart
	since  time.Time // when that began to be so
}

// lookLimit is how long a trial may take.
const lookLimit = 30 * time.Second

// Try makes the trial that is due, if one is.
func (p *Pools) Try() {
	if p.trials == nil {
		p.trials = evidence.LockTrials{}
	}
	moment := p.Moment()
	p.trials.Keep(moment)
	p.tell(moment)
	trial, due := p.trials.Next(moment)
	if !due || p.trying > 0 {
		return
	}
	p.made++
	turn := p.made
	p.trying = turn
	end := func(verdict evidence.LockVerdict, why string) {
		if p.trying != turn {
			return
		}
		p.trying = 0
		now := p.Moment()
		p.trials.Note(moment, trial, verdict, why, now.At)
		p.tell(now)
	}
	p.Site.After(lookLimit, func() { end(evidence.LocksUnknown, "no answer") })
	var made, seen string
	p.Ask("holds a lock", trial.Holder, func(at *machine.Machine) error {
		made = at.Side
		return here(at)
	}, func() {
		p.Ask("looks at a lock", trial.Witness, func(at *machine.Machine) error {
			seen = at.Side
			return here(at)
		}, func() {
			if made == seen {
				end(evidence.LocksReach, "")
			} else {
				end(evidence.NotShared, "")
			}
		})
	})
}

func here(at *machine.Machine) error {
	if !at.Up || at.Hung {
		return hypervisor.ErrUnavailable
	}
	return nil
}

func (p *Pools) tell(moment evidence.Moment) {
	now := p.trials.Apart(moment)
	if pool := now[machine.WidePool]; pool != nil && p.OneTrial {
		for node := range pool.Sides {
			pool.Sides[node] = node
		}
		pool.Each = true
	}
	same := func(a, b *model.PoolApart) bool { return maps.Equal(a.Sides, b.Sides) }
	if maps.EqualFunc(now, p.apart, same) {
		return
	}
	p.apart, p.since = now, moment.At
	if wrong := p.wrong(); wrong != "" {
		p.Site.Broken("apart", machine.WidePool, "%s", wrong)
	}
}

// Bars tells whether a VM's disk is not what a node has under the pool's name, as far as the leader knows.
func (p *Pools) Bars(records binding.Records, vm *model.VM, node string) bool {
	for _, one := range binding.Apart(records, p.apart, vm, model.DefaultCluster) {
		if one.Node == node {
			return true
		}
	}
	return false
}

// Binds tells whether a VM cannot move while it runs, as its node has told.
func Binds(snapshot *state.Snapshot, vm *model.VM, facts *model.NodeFacts) bool {
	return len(binding.Of(snapshot, vm, model.DefaultCluster, facts)) > 0
}

// Held tells whether somebody's job holds a VM, as its node has told.
func Held(vm *model.VM, facts *model.NodeFacts) bool { return len(binding.Jobs(vm, facts)) > 0 }

// late is how old a listing may be that has just come: messages are late and double while things go wrong, and a decision takes a while to
// be in the log.
const late = time.Minute

// Breach compares an operation that begins with what binds its guest; empty: nothing did that the leader had been told of.
func Breach(op *operation.Operation, d *machine.Domain, facts *model.NodeFacts) (rule, text string) {
	if d == nil || d.BoundAt.IsZero() || len(d.Bindings) == 0 || d.Epoch != op.SourceEpoch && d.Epoch != op.Epoch {
		return "", ""
	}
	shown := facts.Domain(op.VM)
	if shown == nil || shown.Epoch != d.Epoch || !facts.DomainsKnown || !facts.InventoryAt.After(d.BoundAt.Add(late)) {
		return "", ""
	}
	switch {
	case op.Kind == operation.Migrate:
		return "movable", fmt.Sprintf("a move is tried, and %s binds the guest to %s", d.Bindings[0].Kind, d.At.ID)
	case op.Kind == operation.Stop && !op.Force && d.HasJob():
		return "job", fmt.Sprintf("a stop is ordered on %s while somebody's backup holds the guest", d.At.ID)
	default:
		return "", ""
	}
}

// settled is how long a leader may be without following what it has found: that long takes a decision which was made before.
const settled = 15 * time.Second

// Strays tells that an operation goes to a node which is proven apart from the one that had the VM last, and does not have the VM's newest
// file.
func (p *Pools) Strays(op *operation.Operation, vm *model.VM) string {
	pool := p.apart[machine.WidePool]
	if pool == nil || p.Site.Now.Sub(p.since) < settled || len(vm.Spec.Disks) != 1 {
		return ""
	}
	file, at := vm.Spec.Disks[0].Path, slices.IndexFunc(p.Machines, func(h *machine.Machine) bool { return h.ID == op.Target })
	if at < 0 || machine.HasNewest(p.Machines[at], file) {
		return ""
	}
	if home := cmp.Or(op.Source, vm.LastNode); pool.Apart(home, op.Target) {
		return fmt.Sprintf("goes to %s, and its file is what %s has", op.Target, home)
	}
	return ""
}

// wrong is a pair of machines that is said to be apart and is not; empty: there is none.
func (p *Pools) wrong() string {
	pool := p.apart[machine.WidePool]
	if pool == nil {
		return ""
	}
	for _, one := range p.Machines {
		for _, other := range p.Machines {
			if pool.Apart(one.ID, other.ID) && one.Side == other.Side {
				return fmt.Sprintf("%s and %s are said to have different storage: %v", one.ID, other.ID, evidence.SideNames(pool))
			}
		}
	}
	return ""
}
