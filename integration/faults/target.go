package faults

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/heard"
	"berth/integration/faults/machine"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

// How long a target is waited for that something can befall.
const (
	targetEvery = time.Second
	targetTries = 60
)

func init() {
	beyond[script.JournalFull] = func(w *World, what script.Happening, _ *host) {
		w.atTarget(operation.Preparing, targetTries, func(_ *operation.Operation, h *host) {
			w.Draw(script.AilingJournal)
			w.Later(w.Between(0, 3*time.Second), func() { // before the ticket or after it
				h.FillJournal()
				w.Later(what.For, h.EmptyJournal)
			})
		})
	}
	beyond[script.TargetCut] = func(w *World, what script.Happening, _ *host) {
		w.atTarget(operation.Copying, targetTries, func(op *operation.Operation, h *host) {
			w.Draw(script.DeafTarget)
			for _, m := range w.members {
				w.Cut(h.ID, m.id, what.For)
			}
			h.breakSession(w.Between(time.Second, 5*time.Second))
			w.Slow(op.VM, what.For*3/4)
		})
	}
}

// atTarget lets something befall the target of a migration that is in a phase from this one to the copy, as soon as there is one.
func (w *World) atTarget(from operation.Phase, tries int, do func(op *operation.Operation, h *host)) {
	for _, op := range w.store.Snapshot().LiveOperations() {
		if op.Kind == operation.Migrate && (op.Phase == from || op.Phase == operation.Copying) && op.Result == operation.Pending {
			do(&op, w.host(op.Target))
			return
		}
	}
	if tries > 0 {
		w.Later(targetEvery, func() { w.atTarget(from, tries-1, do) })
	}
}

// suspect is why the target of a migration should get no guest, as this leader knows.
func (m *member) suspect(snapshot *state.Snapshot, op *operation.Operation) string {
	w := m.world
	if op.Kind != operation.Migrate || w.bug == plant.TargetUnwatched {
		return ""
	}
	if w.fencing {
		if !m.keeper.facts.Settled(snapshot, w.Now) {
			return ""
		}
		return evidence.Unfit(op.TargetName, m.keeper.facts.Facts(op.Target, w.Now), w.Now)
	}
	s := m.sessions[op.Target]
	facts := heard.Facts(w.Now, s != nil, m.since, m.lost[op.Target])
	if s != nil {
		facts.Ailing = s.life.ailing()
	}
	return evidence.Unfit(op.TargetName, facts, w.Now)
}

// ailing is why the host should get no VMs, as its agent reports it.
func (l *life) ailing() string {
	if l.jobs == nil {
		return ""
	}
	if err := l.jobs.Ailing(); err != nil {
		return err.Error()
	}
	return ""
}

// How long a target may be deaf before a guest is not handed over to it, and how long a guest that was handed over may stand still
// while nothing is in the way of letting it run.
const (
	deafLimit  = evidence.SuspectPatience + 25*time.Second
	standEvery = 5 * time.Second
	standLimit = 45 * time.Second
)

// Stands is told when a guest stands still to be handed over: not to a target that has heard no leader for long, if the leader can
// tell the source.
func (r *rules) Stands(d *machine.Domain, target *machine.Machine, disks bool) {
	if disks {
		r.standsWithDisks(d)
	}
	m := r.leader
	if m == nil || m.sessions[target.ID] != nil || m.lost[target.ID].IsZero() || r.Now.Sub(m.lost[target.ID]) < deafLimit || r.IsWild() {
		return
	}
	source := r.host(d.At.ID)
	s := m.sessions[source.ID]
	if s == nil || source.Frozen || source.Hung || r.Now.Sub(m.since) < deafLimit || r.Now.Sub(s.began) < deafLimit {
		return
	}
	r.Broken("target", d.UUID, "stands still to be handed over to %s, which hears no leader for %s", target.ID, r.Now.Sub(m.lost[target.ID]))
}

// watchHandOver watches a guest that was handed over, until it runs.
func (r *rules) watchHandOver(op *operation.Operation, fine time.Duration) {
	r.After(standEvery, func() {
		now, known := r.store.Snapshot().Operation(op.ID)
		h := r.host(op.Target)
		d := h.Domains[op.VM]
		if !known || now.Phase != operation.HandedOver || d == nil || d.ByOwner {
			return
		}
		m := r.leader
		if m == nil || r.IsWild() || h.Frozen || h.Hung || !h.Up || h.life.dead || m.frozen || m.sessions[h.ID] == nil ||
			m.sessions[h.ID].life != h.life || r.IsCut(h.ID, m.id) || d.JobActive {
			fine = 0
		} else {
			fine += standEvery
		}
		if fine > standLimit {
			r.Broken("target", op.VM, "was handed over to %s, and stands still there for %s with nothing in the way", h.ID, fine)
			return
		}
		r.watchHandOver(op, fine)
	})
}

// checkTicket asks whether the target of a migration that begins to copy has journalled that it will resume the guest.
func (r *rules) checkTicket(op *operation.Operation) {
	if !r.host(op.Target).Keeps("tickets", op.ID) {
		r.Broken("target", op.ID, "begins to copy, and %s has no ticket for it", op.Target)
	}
}
