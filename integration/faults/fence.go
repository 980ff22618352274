package faults

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/bound"
	"berth/integration/faults/heard"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/resized"
	"berth/integration/faults/setup"
	"berth/integration/faults/sized"
)

// How often a leader looks, as control does.
const (
	silenceEvery = time.Second
	restartEvery = time.Second
	leaseEvery   = 2 * time.Second
	disarmAfter  = 30 * time.Second
	followEvery  = 5 * time.Second

	reconcileEvery = 2 * time.Second
)

// keeper is what a leader knows and does where nodes are fenced: it hears what they report, proves silent ones off, and keeps VMs
// running that are to be highly available.
type keeper struct {
	*member
	facts     *inventory.Store
	heard     heard.Nodes
	fencer    *fencing.Fencer
	touched   [2]func(*state.Snapshot, time.Time) evidence.Touched // nodes, and VMs
	restarter evidence.Restarter
	follower  evidence.Follower
	strayed   strayed
	asking    map[string]bool // tasks about VMs that agents are asked for, by what, node and VM
	open      int             // commands of its loops that are under way
	pools     *bound.Pools    // nil: there is none to be tried
}

// every does something again and again as long as the member leads.
func (k *keeper) every(pause time.Duration, do func()) {
	w, term := k.world, k.term
	var due func()
	due = func() {
		k.awake(func() {
			if k.term == term {
				do()
				w.After(pause, due)
			}
		})
	}
	w.After(w.Between(0, pause), due)
}

// watch does from now on what a leader does about nodes that are silent, and about VMs that are to be highly available.
func (k *keeper) watch() {
	w := k.world
	k.facts = inventory.New(func() time.Time { return w.Now }, hclog.NewNullLogger())
	k.facts.Doubt = func(id string, machine model.Machine) string {
		if node, known := k.view().Node(id); known && w.bug != plant.CloneBelieved {
			return node.Doubt(machine)
		}
		return ""
	}
	k.heard = heard.New()
	k.fencer, k.touched[0], k.touched[1] = fencing.NewFencer(w.bug.LeadsSince(w.Now), w.newKey), k.facts.NodesTouched(), k.facts.VMsTouched()
	k.restarter, k.follower = evidence.Restarter{}, evidence.Follower{}
	k.open, k.asking, k.strayed = 0, map[string]bool{}, strayed{}
	k.every(silenceEvery, k.lookAtSilence)
	k.every(leaseEvery, k.giveLeases)
	k.every(restartEvery, k.restart)
	k.every(reconcileEvery, k.reconcile)
	k.every(followEvery, k.follow)
	k.every(silenceEvery, k.suspendRemoved)
	k.every(restampEvery, k.restamp)
	k.every(bound.LocalEvery, k.bindLocal)
	k.tryPools()
	if w.Drifts || w.Sizes {
		k.followDrifts()
	}
	if w.resized.Happens {
		k.every(resized.Every, func() {
			for _, grown := range w.resized.Grown(k.view(), k.factsOf, w.newKey, k.now()) {
				k.try(grown, func(bool) {})
			}
		})
	}
	if w.Sizes {
		k.every(sized.Every, func() { lookAtSizes(k) })
	}
}

// try commits a command that a loop of the leader has made. While any is under way the loop of silence waits, as control's
// does.
func (k *keeper) try(command state.Command, done func(stored bool)) {
	k.open++
	k.propose(command, func(result state.Result, err error) {
		k.open--
		if result.Refusal != nil && result.Refusal.Code != state.Stale {
			k.world.Broken("refused", command.Kind, "%s", result.Refusal.Message)
		}
		done(err == nil && result.Refusal == nil)
	})
}

func (k *keeper) lookAtSilence() {
	if k.open > 0 {
		return
	}
	moment := k.moment(k.view())
	k.fencer.Take(moment, k.touched[0](k.view(), moment.At))
	for _, notice := range k.fencer.Notice(moment) {
		if k.world.bug == plant.ReturnUnnoticed && len(notice.Back) > 0 {
			continue
		}
		if k.world.bug == plant.DisarmedUnsaid && !plant.StillArmed(moment, &notice) {
			continue
		}
		k.try(notice.Command, func(stored bool) {
			if stored && len(notice.Back) > 0 {
				k.wakeAll()
			}
		})
	}
	if k.open > 0 || lead.Quarantined(k.view()) != nil {
		return // in a quarantine nothing is switched off, and nothing is let go
	}
	for _, verdict := range k.world.bug.Verdicts(k.fencer, moment, k.world.Now.Sub(k.since), setup.RackLabel) {
		node, _ := moment.Node(verdict.Node)
		switch verdict.Act {
		case evidence.FenceAsk:
			k.askDevice(node, "berth", verdict.Why)
		case evidence.FenceProven:
			k.endFencing(k.fencer.ByWatchdog(node, k.world.Now), verdict.Why, true, func() {})
		}
	}
	if k.open > 0 {
		return
	}
	for _, command := range k.fencer.Release(moment) {
		k.try(command, func(bool) {})
	}
}

// askDevice commits that a node's device is asked, and has it asked.
func (k *keeper) askDevice(node model.Node, caller, why string) {
	command, node, free := k.fencer.Ask(node, caller, why, k.world.Now)
	if !free {
		return
	}
	fencer, term := k.fencer, k.term
	release := func() { fencer.Free(node.ID) }
	k.try(command, func(stored bool) {
		if !stored {
			release()
			return
		}
		if late := fencer.TooLate(&node, k.world.Now); late != "" && k.world.bug != plant.AsksLate {
			k.endFencing(node, late, false, release)
			return
		}
		fencer.Witness(k.moment(k.view()), node.ID)
		other := k.answering(node.ID) // one that was heard when the device was asked: of others nothing is promised
		instead := func() *machine.Machine {
			if other == nil || !other.On || other.Frozen {
				return nil
			}
			return other
		}
		reached := func() bool { return k.term == term && !k.frozen && k.alive && k.reachedBy(fencer, &node) != "" }
		k.world.host(node.ID).SwitchOff(node.Fencing.AskedAt, instead, reached, func(err error) {
			if who := k.reachedBy(fencer, &node); err == nil && who != "" && k.world.bug != plant.VetoUnasked {
				err = fmt.Errorf("%s reaches it: %w", who, machine.ErrReached)
			}
			k.hearWitnesses(fencer, node, err, func(node model.Node, err error) {
				if k.term != term {
					return
				}
				fencer.Answered(&node, err == nil, k.world.Now)
				message := ""
				if err != nil {
					message = err.Error()
				}
				k.endFencing(node, message, err == nil, release)
			})
		})
	})
}

// hearWitnesses waits, as control does, until all that answered when a node's device was asked have answered again.
func (k *keeper) hearWitnesses(fencer *fencing.Fencer, node model.Node, err error, done func(model.Node, error)) {
	said := k.world.Now
	var look func()
	look = func() {
		k.awake(func() {
			if (err == nil || errors.Is(err, machine.ErrReached)) && k.world.bug != plant.BelievesTheDevice {
				wait, struck := fencer.Doubt(k.moment(k.view()), &node, said)
				if wait {
					k.world.After(500*time.Millisecond, look)
					return
				}
				if struck != "" {
					err = machine.ErrStruck
				}
			}
			done(node, err)
		})
	}
	look()
}

// reachedBy is a node that this leader hears and that reaches another one now; empty: none does.
func (k *keeper) reachedBy(fencer *fencing.Fencer, node *model.Node) string {
	there := k.world.host(node.ID)
	for _, id := range fencer.Peers(k.moment(k.view()), node) {
		h := k.world.host(id)
		asked := k.sessions[id] != nil && h.On && !h.Frozen && !k.world.IsCut(id, k.id)
		if asked && there.On && !there.Frozen && !k.world.IsCut(id, there.ID) {
			return id
		}
	}
	return ""
}

// answering is a machine other than that of a node which this leader hears now; nil: there is none.
func (k *keeper) answering(node string) *machine.Machine {
	for _, h := range k.world.hosts {
		facts := k.facts.Facts(h.ID, k.world.Now)
		if h.ID != node && h.On && !h.Frozen && facts.Liveness == model.Up {
			return h.Machine
		}
	}
	return nil
}

// endFencing commits what came of a fencing, and then lets the device be asked again if it was.
func (k *keeper) endFencing(node model.Node, message string, proven bool, free func()) {
	command, open := k.fencer.End(k.moment(k.view()), node, message, proven)
	k.world.bug.Outlive(&command, node, message, proven)
	if !open {
		free()
		return
	}
	k.try(command, func(stored bool) {
		if !stored {
			k.endFencing(node, message, proven, free)
			return
		}
		free()
		if proven {
			k.wakeAll()
		}
	})
}

// fenceByHand is an operator who asks for a node to be fenced: by its device, or by the word of who has seen that it is off.
func (k *keeper) fenceByHand(h *host, request fencing.FenceNode) {
	request.Node, request.Caller = h.ID, "sim"
	moment := k.moment(k.view())
	node, err := k.fencer.Fenceable(moment, request)
	if err != nil || node.Fenced() {
		return
	}
	if request.ConfirmedOff {
		k.endFencing(k.fencer.ByHand(node, request.Caller, k.world.Now), "somebody has seen that it is off", true, func() {})
		return
	}
	for _, one := range k.fencer.Silences(moment) {
		if one.Node.ID == h.ID && one.Left > 0 {
			return
		}
	}
	k.askDevice(node, request.Caller, "asked for by hand")
}

// giveLeases keeps the nodes alive that live by leases. That it leads is made sure of before, and then it may stand still for
// as long as it likes.
func (k *keeper) giveLeases() {
	w := k.world
	if w.leader != k.member || k.stale != nil {
		return
	}
	guarded := k.moment(k.view()).Guarded()
	for _, node := range k.view().Nodes() {
		if guarded[node.ID] {
			w.host(node.ID).Dog.Needed = w.Now
		}
		guarded[node.ID] = guarded[node.ID] || w.bug == plant.ArmedForNobody
		s := k.sessions[node.ID]
		if s == nil || s.taken.IsZero() || node.Fence.Method != model.FenceWatchdog || node.Fenced() {
			continue
		}
		if s.needed.IsZero() || guarded[node.ID] || node.Watchdog > 0 && w.bug != plant.DisarmedUnsaid {
			s.needed = w.Now
		}
		armed := k.facts.Facts(node.ID, w.Now).Watchdog > 0
		if !guarded[node.ID] && (!armed || w.Now.Sub(s.needed) >= disarmAfter) {
			if armed {
				k.fencer.Leased(node.ID, false, w.Now)
				s.inOrder(func() {
					if s.life.session == s {
						s.life.host.Dog.Release()
					}
				})
			}
			continue
		}
		until, term := s.taken.Add(evidence.LeaseDuration), k.term
		w.After(w.Between(0, 100*time.Millisecond), func() {
			k.awake(func() {
				if k.term != term {
					return
				}
				k.fencer.Leased(node.ID, true, w.Now)
				s.inOrder(func() { s.life.host.Dog.Lease(until) })
			})
		})
	}
}

// inOrder carries a message about a lease. It comes to nothing after a later one: on a real stream it would not come then.
func (s *session) inOrder(arrive func()) {
	s.leases++
	turn := s.leases
	s.down(func() {
		if turn >= s.leased {
			s.leased = turn
			arrive()
		}
	})
}
