package webhook

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"berth/coordinator/history"
	"berth/coordinator/state"
	"berth/shared/pause"
)

const (
	// saveEvery is how often it is written how far a webhook is, if it has come further. What is given up is written sooner.
	saveEvery     = time.Minute
	saveDeadEvery = 5 * time.Second
	// holePatience is how long is waited for entries of the log that this member's history lacks and others may have.
	holePatience = 10 * time.Minute
)

// worker sends to one receiver.
type worker struct {
	*Sender
	hook   Webhook
	jitter *rand.Rand

	revision uint64 // of the record; of the Sender alone

	mu      sync.Mutex // what follows
	queue   queue
	problem string // why nothing can be sent; empty: it can
	lost    uint64 // entries of the log that are not on record as lost yet

	// Of the goroutine that runs the worker alone:
	client  *client
	stale   bool // the secret is sealed with an old key
	answers chan answered
	buried  []Dead // given up, and not on record yet
	raised  []string
	saved   time.Time
	written history.Place // how far it is, on record
	seen    uint64        // revision of the record of which all was taken up
	hole    uint64        // entry at which a hole ends that is waited for
	holeAt  time.Time
}

type answered struct {
	of  *delivery
	err error
}

func newWorker(s *Sender, hook Webhook) *worker {
	return &worker{
		queue:  queue{patience: cmp.Or(s.patience, patience)},
		Sender: s, hook: hook, jitter: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), answers: make(chan answered, inFlight),
	}
}

// run sends until the context ends, with the leadership or with the webhook.
func (w *worker) run(ctx context.Context) {
	_, progress, known := Of(w.State(), w.hook.Name)
	if !known {
		return
	}
	w.queue.read, w.written, w.saved = progress.After, progress.After, time.Now()
	for !w.open() {
		if !pause.For(ctx, saveDeadEvery) {
			return
		}
	}
	defer w.client.close()
	defer w.settle()
	for ctx.Err() == nil {
		w.save(ctx)
		wait := w.step(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case answer := <-w.answers:
			w.take(answer)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// open makes the client, which needs the secret.
func (w *worker) open() bool {
	secret, stale, err := w.reveal(&w.hook)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.problem == "" {
			w.Log.Error("nothing can be sent to a webhook", "webhook", w.hook.Name, "error", err)
		}
		w.problem = err.Error()
		return false
	}
	w.client, w.stale, w.problem = newClient(&w.hook, secret, w.fresh), stale, ""
	return true
}

// settle waits for the tries that are on their way: they end with the context.
func (w *worker) settle() {
	w.mu.Lock()
	flying := w.queue.flying
	w.mu.Unlock()
	for range flying {
		<-w.answers
	}
}

// step reads on and sends what may be sent, and tells how long there is nothing to do if no answer comes.
func (w *worker) step(ctx context.Context) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fill()
	for {
		now := time.Now()
		d, at := w.queue.pick(now)
		switch {
		case d == nil && at.IsZero():
			return lookEvery
		case d == nil:
			return min(lookEvery, max(time.Millisecond, at.Sub(now)))
		}
		w.queue.begin(d, now)
		body, err := d.body(w.Cluster)
		if err != nil { // it never can be sent
			w.queue.end(d)
			w.bury(d, err.Error(), now)
			continue
		}
		go func() { w.answers <- answered{d, w.client.post(ctx, d.id, now, body)} }()
	}
}

// take notes what came of a try.
func (w *worker) take(answer answered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, now := answer.of, time.Now()
	if answer.err == nil {
		if failing := w.queue.since; !failing.IsZero() {
			w.Log.Info("a webhook's receiver takes deliveries again", "webhook", w.hook.Name, "failed since", failing)
		}
		w.queue.landed(d)
		if d.again {
			w.raised = append(w.raised, d.id)
		}
		return
	}
	if w.queue.since.IsZero() && !errors.Is(answer.err, context.Canceled) {
		w.Log.Warn("a webhook's receiver does not take a delivery; it is tried again", "webhook", w.hook.Name, "error", answer.err)
	}
	if w.queue.refused(d, answer.err.Error(), now, w.jitter) {
		w.bury(d, answer.err.Error(), now)
	}
}

func (w *worker) bury(d *delivery, reason string, now time.Time) {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	w.Log.Warn("a delivery to a webhook was given up", "webhook", w.hook.Name, "id", d.id, "kind", d.kind, "subject", d.subject,
		"tries", d.tries, "error", reason)
	w.buried = append(w.buried, Dead{
		Place: d.Place, ID: d.id, Kind: d.kind, Subject: d.subject, At: now.UTC(), Tries: d.tries, Reason: reason,
	})
}

// fill reads what has happened, as far as there is room for it.
func (w *worker) fill() {
	for room := w.queue.room(); room > 0; room = w.queue.room() {
		part, err := w.Past.After(w.queue.read, room)
		if err != nil {
			w.problem = err.Error()
			return
		}
		w.problem = ""
		for i := range part.Rows {
			if t, ok := tell(w.Cluster, &part.Rows[i]); ok && w.hook.Wants(t.kind) {
				w.queue.add(t)
			}
		}
		if part.Next == w.queue.read && !w.over(&part) {
			return
		}
		if part.Next != w.queue.read {
			w.queue.read = part.Next
		}
	}
}

// over passes over entries of the log that this member's history lacks, once nobody is expected to give them any more.
func (w *worker) over(part *history.Part) bool {
	switch {
	case part.Lacks == 0:
		w.hole = 0
		return false
	case part.Gone:
	case part.Lacks != w.hole:
		w.hole, w.holeAt = part.Lacks, time.Now()
		return false
	case time.Since(w.holeAt) < holePatience:
		return false
	}
	n := part.Lacks - part.Next.Index
	w.Log.Error("a webhook's receiver is not told of entries of the log that no coordinator has any more", "webhook", w.hook.Name,
		"after", part.Next.Index, "through", part.Lacks)
	w.lost += n
	part.Next, w.hole = history.EndOf(part.Lacks), 0
	w.queue.read = part.Next
	return true
}

// save writes how far it is, if it is time for that, and takes up what somebody wants tried again.
func (w *worker) save(ctx context.Context) {
	x, now := w.State(), time.Now()
	seen := x.MetaRevision(progressPrefix + w.hook.Name)
	if seen == w.seen && !w.due(now) {
		return // nothing to read and nothing to write
	}
	hook, progress, known := Of(x, w.hook.Name)
	if !known || !hook.CreatedAt.Equal(w.hook.CreatedAt) {
		return
	}
	w.mu.Lock()
	if w.takeUp(&progress) {
		w.seen = seen
	}
	if !w.due(now) {
		w.mu.Unlock()
		return
	}
	w.saved = now
	after := w.queue.after()
	if after.Compare(progress.After) > 0 {
		progress.After = after
	}
	lost := w.lost
	w.mu.Unlock()
	progress.Lost += lost
	for _, dead := range w.buried {
		progress.bury(dead)
	}
	for _, id := range w.raised {
		progress.raise(id)
	}
	command := state.Command{Kind: "note the progress of a webhook"}
	err := w.reseal(&hook)
	if err == nil {
		err = Put(x, &command, &hook, &progress)
	}
	if err == nil {
		err = w.propose(ctx, command)
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errStale) {
			w.Log.Warn("the progress of a webhook was not written", "webhook", w.hook.Name, "error", err)
		}
		return // what was not written is written with the next one, and what was taken is sent once more by the next leader at worst
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost -= lost
	w.buried, w.raised, w.stale, w.written = nil, nil, false, after
}

// due tells that there is something to write, and that it is time for that.
func (w *worker) due(now time.Time) bool {
	if len(w.buried)+len(w.raised) > 0 && now.Sub(w.saved) >= saveDeadEvery {
		return true
	}
	return (w.stale || w.queue.after().Compare(w.written) > 0) && now.Sub(w.saved) >= saveEvery
}

// reseal seals the secret with the newest key, because the older ones are not known to coordinators that join later.
func (w *worker) reseal(hook *Webhook) error {
	if !w.stale {
		return nil
	}
	keys, err := w.Keys()
	if err != nil {
		return err
	}
	secret, _, err := w.reveal(hook)
	if err != nil {
		return err
	}
	return hook.Hide(keys, secret)
}

// takeUp begins with what somebody wants tried again, a few at a time. It tells whether that is all.
func (w *worker) takeUp(progress *Progress) (all bool) {
	for i := range progress.Dead {
		dead := &progress.Dead[i]
		if dead.Again && len(w.queue.again) >= inFlight {
			return false
		}
		if !dead.Again || slices.Contains(w.raised, dead.ID) ||
			slices.ContainsFunc(w.queue.again, func(d *delivery) bool { return d.id == dead.ID }) ||
			slices.ContainsFunc(w.buried, func(d Dead) bool { return d.ID == dead.ID }) {
			continue
		}
		d := &delivery{again: true, told: told{Place: dead.Place, id: dead.ID, kind: dead.Kind, subject: dead.Subject}}
		part, err := w.Past.After(dead.Previous(), 1)
		if err == nil && len(part.Rows) == 1 && part.Rows[0].Place == dead.Place {
			if t, ok := tell(w.Cluster, &part.Rows[0]); ok && t.id == dead.ID {
				d.told = t
				w.queue.again = append(w.queue.again, d)
				continue
			}
		}
		if err == nil {
			w.bury(d, "the history does not have it any more", time.Now())
		}
	}
	return true
}

func (w *worker) health() Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := Health{Taken: w.queue.taken, Waiting: w.queue.waiting(), Since: w.queue.since, Problem: w.queue.reason}
	if w.problem != "" {
		h.Problem = w.problem
	}
	if last := w.Past.Whole(); last > w.queue.read.Index {
		h.Behind = last - w.queue.read.Index
	}
	return h
}
