package inventory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// agent speaks for one node, with sequences of its own.
type agent struct {
	t        testing.TB
	store    *Store
	node     string
	session  *Session
	boot     string
	sequence uint64
}

func connect(t testing.TB, store *Store, node string) *agent {
	t.Helper()
	a := &agent{t: t, store: store, node: node, boot: "boot-1"}
	a.reconnect()
	return a
}

func (a *agent) reconnect() {
	a.t.Helper()
	a.sequence++
	session, err := a.store.OpenSession(a.node, &berthv1.Hello{NodeId: a.node, Incarnation: a.boot}, a.sequence)
	if err != nil {
		a.t.Fatal(err)
	}
	a.session = session
}

func (a *agent) report(message *berthv1.SessionRequest) bool {
	a.sequence++
	message.Sequence = a.sequence
	return a.session.Report(message)
}

func (a *agent) inventory(domains ...*berthv1.Domain) bool {
	return a.inventoryOf(hostOf(a.node), domains...)
}

func (a *agent) inventoryOf(host *berthv1.NodeInventory, domains ...*berthv1.Domain) bool {
	return a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: host, Domains: domains,
	}}})
}

// hostOf is a host that nothing is wrong with.
func hostOf(node string) *berthv1.NodeInventory {
	return &berthv1.NodeInventory{
		MemoryBytes: 64 << 30, Cpus: 16, DomainTypes: []string{"kvm"}, MigrationUri: "qemu+tls://" + node + "/system",
		CollectedAt: timestamppb.Now(),
	}
}

func (a *agent) telemetry(sample *berthv1.NodeTelemetry) bool {
	return a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: sample}})
}

func (a *agent) change(event string, domain *berthv1.Domain) bool {
	return a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{
		DomainChange: &berthv1.DomainChange{Domain: domain, Event: event},
	}})
}

func (a *agent) libvirt(connected bool, text string) bool {
	return a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Libvirt{
		Libvirt: &berthv1.LibvirtStatus{Connected: connected, Error: text},
	}})
}

func running(uuid string) *berthv1.Domain {
	return inState(uuid, berthv1.DomainState_DOMAIN_STATE_RUNNING)
}

func inState(uuid string, state berthv1.DomainState) *berthv1.Domain {
	return &berthv1.Domain{Uuid: uuid, Name: "vm-" + uuid, State: state, MemoryBytes: 1 << 30, Vcpus: 2}
}

func newStore() *Store { return New(time.Now, hclog.NewNullLogger()) }

func TestLivenessFollowsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		is := func(want model.Liveness, why string) {
			t.Helper()
			facts := store.Facts("n1", time.Now())
			if facts.Liveness != want || facts.LivenessReason != why {
				t.Errorf("at %v: %s (%q), want %s (%q)", time.Now(), facts.Liveness, facts.LivenessReason, want, why)
			}
		}
		is(model.Suspect, "not heard in the 0s that this coordinator leads")
		time.Sleep(10 * time.Second)
		is(model.Unreachable, "not heard in the 10s that this coordinator leads")
		a := connect(t, store, "n1")
		is(model.Up, "")
		time.Sleep(6 * time.Second)
		is(model.Up, "")
		time.Sleep(time.Second)
		is(model.Suspect, "silent for 7s")
		time.Sleep(24 * time.Second)
		is(model.Unreachable, "silent for 31s")
		a.libvirt(false, "connection refused")
		is(model.Degraded, "libvirt cannot be used: connection refused")
		a.libvirt(true, "")
		is(model.Up, "")
		a.session.Close("connection reset")
		is(model.Suspect, "no session for 0s: connection reset")
		time.Sleep(10 * time.Second)
		is(model.Unreachable, "no session for 10s: connection reset")
		store.Reset()
		is(model.Suspect, "not heard in the 0s that this coordinator leads")
	})
}

func TestReportsThatAreNotNewerAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		a.inventory(running("u1"))
		a.sequence--
		if a.inventory() {
			t.Error("a report with the sequence of the last one was taken")
		}
		old := a.session
		a.reconnect()
		stale := &berthv1.SessionRequest{Sequence: 99, Message: &berthv1.SessionRequest_Inventory{
			Inventory: &berthv1.InventoryReport{},
		}}
		if old.Report(stale) {
			t.Error("a report of a replaced session was taken")
		}
		old.Close("late")
		if facts := store.Facts("n1", time.Now()); facts.Liveness != model.Up || len(facts.Domains) != 1 {
			t.Errorf("facts are %+v, want up with one domain", facts)
		}
		if _, err := store.OpenSession("n1", &berthv1.Hello{Incarnation: "boot-1"}, 1); !errors.Is(err, ErrStaleSession) {
			t.Errorf("a hello from before: %v, want ErrStaleSession", err)
		}
		a.boot, a.sequence = "boot-2", 0
		a.reconnect()
		if !a.inventory() {
			t.Error("a new incarnation, which counts from the beginning, was not heard")
		}
	})
}

// What an agent was at work on when it came is not in its inventory before it has told the end.
func TestOrdersOfBeforeTheSessionAreKnownUntilTheyEnd(t *testing.T) {
	store := newStore()
	a := connect(t, store, "n1")
	check := func(want ...string) {
		t.Helper()
		if got := store.Facts("n1", time.Now()).Working; !slices.Equal(got, want) {
			t.Errorf("at work on %q, want %q", got, want)
		}
	}
	check()
	a.sequence++
	var err error
	if a.session, err = store.OpenSession(
		"n1", &berthv1.Hello{Incarnation: a.boot, RunningOperations: []string{"op2", "op1"}}, a.sequence,
	); err != nil {
		t.Fatal(err)
	}
	a.inventory()
	check("op1", "op2")
	a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{OperationId: "op1"}}})
	check("op2")
	a.reconnect()
	check()
}

func TestDomainsAreUnknownUntilTheSessionListsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		check := func(known bool, domains int) {
			t.Helper()
			if facts := store.Facts("n1", time.Now()); facts.DomainsKnown != known || len(facts.Domains) != domains {
				t.Errorf("known %t, %d domains, want %t, %d", facts.DomainsKnown, len(facts.Domains), known, domains)
			}
		}
		check(false, 0)
		a.inventory(running("u1"), running("u2"))
		check(true, 2)
		a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{}, DomainsUnknown: true, DomainsError: "timeout",
		}}})
		check(false, 2) // a failed listing says nothing, least of all that nothing runs
		a.inventory()
		check(true, 0)
		a.inventory(running("u1"))
		a.reconnect()
		check(false, 1)
	})
}

func TestDomainChangesCountAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		a.inventory(running("u1"))
		time.Sleep(time.Minute)
		a.change("started", running("u2"))
		started := time.Now()
		time.Sleep(time.Minute)
		a.change("resumed", running("u1")) // as it was: nothing began
		a.change("suspended", inState("u2", berthv1.DomainState_DOMAIN_STATE_PAUSED))
		paused := time.Now()
		facts := store.Facts("n1", paused)
		if len(facts.Domains) != 2 || facts.Domains[1].State != model.DomainPaused || !facts.Domains[1].Since.Equal(paused) {
			t.Errorf("domains are %+v, want u2 paused since now", facts.Domains)
		}
		if since := facts.Domains[0].Since; !since.Equal(started.Add(-time.Minute)) {
			t.Errorf("u1 runs since %v, want since its listing", since)
		}
		a.change("destroyed", inState("u2", berthv1.DomainState_DOMAIN_STATE_ABSENT))
		if facts := store.Facts("n1", time.Now()); len(facts.Domains) != 1 {
			t.Errorf("domains are %+v, want only u1", facts.Domains)
		}
		if domains := store.Domains("n1"); len(domains) != 1 || domains[0].GetUuid() != "u1" {
			t.Errorf("domains are %v, want only u1", domains)
		}
	})
}

// Events of single domains change the readers' list and the copies only where they have to. What that comes to is what making
// both anew comes to, and what a reader was given stays as it was.
func TestDomainsThatChangeOneByOneAreCountedAsIfListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, random := newStore(), rand.New(rand.NewPCG(1, 2))
		agents := []*agent{connect(t, store, "n1"), connect(t, store, "n2")}
		for _, a := range agents {
			a.inventory(running("u05"), running("u10"))
			a.telemetry(&berthv1.NodeTelemetry{Domains: []*berthv1.DomainTelemetry{{Uuid: "u07", RssBytes: new(int64(7))}}})
		}
		states := []berthv1.DomainState{
			berthv1.DomainState_DOMAIN_STATE_RUNNING, berthv1.DomainState_DOMAIN_STATE_ABSENT, berthv1.DomainState_DOMAIN_STATE_SHUTOFF,
			berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION,
		}
		var lent, kept []model.Domain
		for range 500 {
			if random.IntN(3) == 0 {
				lent = store.Facts("n1", time.Now()).Domains
				kept = slices.Clone(lent)
			}
			agents[random.IntN(2)].change("", inState(fmt.Sprintf("u%02d", random.IntN(15)), states[random.IntN(len(states))]))
			time.Sleep(2 * copyGrace)
			if diff := cmp.Diff(kept, lent); diff != "" {
				t.Fatalf("what a reader has was changed:\n%s", diff)
			}
			shown, copied := store.Facts("n1", time.Now()).Domains, store.Copied()
			anew := newStore()
			for i, a := range agents {
				connect(t, anew, a.node).inventory()
				anew.nodes[a.node].domains, anew.nodes[a.node].telemetry = store.nodes[a.node].domains, store.nodes[a.node].telemetry
				anew.nodes[a.node].show()
				anew.recount(a.node, anew.nodes[a.node])
				if i == 0 {
					if diff := cmp.Diff(anew.nodes[a.node].shown, shown); diff != "" {
						t.Fatalf("one by one the domains are others than at once:\n%s", diff)
					}
				}
			}
			time.Sleep(2 * copyGrace)
			if diff := cmp.Diff(anew.Copied(), copied); diff != "" {
				t.Fatalf("one by one the copies are others than at once:\n%s", diff)
			}
		}
	})
}

func TestAListedDomainBeganWhenItsNodeSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		old := running("u1")
		old.StartedAt = timestamppb.New(time.Now().Add(-time.Hour))
		future := running("u2")
		future.StartedAt = timestamppb.New(time.Now().Add(time.Hour))
		a.inventory(old, future)
		domains := store.Facts("n1", time.Now()).Domains
		if got := time.Since(domains[0].Since); got != time.Hour {
			t.Errorf("u1 is %v old, want an hour", got)
		}
		if got := time.Since(domains[1].Since); got != 0 {
			t.Errorf("u2 is %v old, want 0: its start lies in the future", got)
		}
	})
}

// A new leader hears of every domain for the first time. They are in the first sample all the same.
func TestWhatRanBeforeTheSessionIsInItsFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		opened := time.Now()
		time.Sleep(200 * time.Millisecond)
		a.telemetry(&berthv1.NodeTelemetry{CollectSeconds: 0.1})
		time.Sleep(200 * time.Millisecond)
		a.inventory(running("u1"))
		facts := store.Facts("n1", time.Now())
		if !facts.Domains[0].Since.Equal(opened) || !facts.Domains[0].Since.Before(facts.TelemetryAt) {
			t.Errorf("u1 runs since %v, the sample is of %v", facts.Domains[0].Since, facts.TelemetryAt)
		}
		time.Sleep(time.Minute)
		a.inventory(running("u1"), running("u2"))
		if since := store.Facts("n1", time.Now()).Domains[1].Since; !since.Equal(time.Now()) {
			t.Errorf("u2, which no event told of, runs since %v, want since now", since)
		}
	})
}

func TestTelemetryThatCannotBeIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		a.inventory(running("u1"), running("u2"))
		ptr := func(n int64) *int64 { return &n }
		float := func(f float64) *float64 { return &f }
		a.telemetry(&berthv1.NodeTelemetry{
			MemoryAvailableBytes: ptr(-1), KsmSavedBytes: ptr(5), Load1: float(math.NaN()), CpuBusyRatio: float(math.Inf(1)),
			CpuPressure: &berthv1.Pressure{SomeAvg10: math.NaN()},
			Domains: []*berthv1.DomainTelemetry{
				{
					Uuid: "u1", RssBytes: ptr(7), CpuRatio: float(0.5), BalloonBytes: ptr(6),
					Pressure: &berthv1.DomainPressure{CpuSome: 3, MemorySome: 2, IoSome: 1},
				},
				{Uuid: "u2", Pressure: &berthv1.DomainPressure{CpuSome: 3, MemorySome: math.NaN()}},
				{Uuid: "not listed", RssBytes: ptr(1)},
			},
			CollectSeconds: 1.5,
		})
		facts := store.Facts("n1", time.Now())
		if facts.Available != nil || facts.Load1 != nil || facts.CPUBusy != nil || facts.CPUPressure != nil {
			t.Errorf("facts are %+v, want available, load, busy share and pressure unknown", facts)
		}
		if facts.KSMSaved == nil || *facts.KSMSaved != 5 {
			t.Errorf("KSM saved is %v, want 5", facts.KSMSaved)
		}
		if age := time.Since(facts.TelemetryAt); age != 1500*time.Millisecond {
			t.Errorf("the sample is %v old, want as old as its collection was long", age)
		}
		if d := facts.Domains[0]; len(facts.Domains) != 2 || d.Resident == nil || *d.Resident != 7 || *d.CPU != 0.5 ||
			d.Balloon == nil || *d.Balloon != 6 {
			t.Errorf("domains are %+v, want u1 with its figures, and u2", facts.Domains)
		}
		if got := facts.Domains[0].Pressure; got == nil || *got != (model.DomainPressure{CPU: 3, Memory: 2, IO: 1}) {
			t.Errorf("what u1 waits for is %+v", got)
		}
		if got := facts.Domains[1].Pressure; got != nil {
			t.Errorf("what u2 waits for cannot be, and is %+v", got)
		}
		a.telemetry(&berthv1.NodeTelemetry{MemoryFreeBytes: ptr(3)})
		if facts := store.Facts("n1", time.Now()); facts.Available == nil || *facts.Available != 3 {
			t.Errorf("available is %v, want the free memory in its stead", facts.Available)
		}
	})
}

func TestSubscribersHearOfTransitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		subscription := store.Subscribe()
		defer subscription.Close()
		ctx, cancel := context.WithCancel(t.Context())
		records := state.NewStore()
		apply(t, records, enrol("n1"))
		apply(t, records, enrol("n2"))
		go store.Watch(ctx, records.Snapshot)
		var heard []string
		drain := func() {
			synctest.Wait()
			for len(subscription.C) > 0 {
				switch e := <-subscription.C; e.Kind {
				case LivenessChanged:
					heard = append(heard, e.Node+" "+string(e.LivenessWas)+">"+string(e.Liveness))
				case DomainChanged:
					heard = append(heard, e.Node+" "+e.Domain.Name+" "+string(e.DomainWas)+">"+string(e.Domain.State)+" "+e.What)
				default:
					heard = append(heard, string(e.Kind))
				}
			}
		}
		a := connect(t, store, "n1")
		a.inventory(running("u1"))
		a.change("started", running("u2"))
		a.change("started", running("u2"))
		drain()
		a.inventory(running("u2")) // the event of u1's end was lost
		drain()
		time.Sleep(40 * time.Second)
		drain()
		a.telemetry(&berthv1.NodeTelemetry{})
		drain()
		cancel()
		synctest.Wait()
		want := []string{
			"n1 >up",
			"n1 vm-u1 absent>running ", "n1 vm-u2 absent>running started",
			"n1 vm-u1 running>absent ",
			"n1 up>suspect", "n2 >unreachable", "n1 suspect>unreachable",
			"n1 unreachable>up",
		}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

func TestASlowSubscriberIsToldThatItMissedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		subscription := store.Subscribe()
		a := connect(t, store, "n1")
		for range subscriberBuffer {
			a.change("started", running("u1"))
			a.change("stopped", inState("u1", berthv1.DomainState_DOMAIN_STATE_ABSENT))
		}
		for range subscriberBuffer {
			if e := <-subscription.C; e.Kind == EventsLost {
				t.Fatal("events were lost before the buffer was full")
			}
		}
		store.look(state.NewStore().Snapshot())
		if e := <-subscription.C; e.Kind != EventsLost {
			t.Errorf("heard %+v, want that events were lost", e)
		}
		subscription.Close()
		a.change("started", running("u1"))
		if len(subscription.C) != 0 {
			t.Error("a closed subscription still gets events")
		}
	})
}

func TestLastingCopiesOfAVMAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		subscription := store.Subscribe()
		defer subscription.Close()
		a, b := connect(t, store, "n1"), connect(t, store, "n2")
		a.inventory(running("u1"), running("u2"))
		b.inventory(inState("u1", berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION))
		time.Sleep(time.Minute)
		if found := store.Duplicates(); len(found) != 0 {
			t.Errorf("a migration on its way counts as %+v", found)
		}
		b.change("resumed", running("u1"))
		if found := store.Duplicates(); len(found) != 0 {
			t.Errorf("a migration that has just ended counts as %+v", found)
		}
		time.Sleep(time.Second)
		want := []Duplicate{{VM: "u1", Name: "vm-u1", Nodes: []string{"n1", "n2"}, Since: time.Now().Add(-time.Second)}}
		if diff := cmp.Diff(want, store.Duplicates()); diff != "" {
			t.Errorf("duplicates (-want +got):\n%s", diff)
		}
		store.look(state.NewStore().Snapshot())
		store.look(state.NewStore().Snapshot())
		told := 0
		for len(subscription.C) > 0 {
			if e := <-subscription.C; e.Kind == DuplicateFound && e.Duplicate.VM == "u1" {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the duplicate was told of %d times, want once", told)
		}
		a.change("stopped", inState("u1", berthv1.DomainState_DOMAIN_STATE_ABSENT))
		if found := store.Duplicates(); len(found) != 0 {
			t.Errorf("after one copy went: %+v", found)
		}
		b.session.Close("")
		a.change("started", running("u1"))
		time.Sleep(time.Minute)
		if found := store.Duplicates(); len(found) != 0 {
			t.Errorf("what a node without a session last said counts: %+v", found)
		}
	})
}

func TestProgressIsKeptUntilTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		progress := func(operation string, step uint32, done int64) {
			a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Progress{Progress: &berthv1.CommandProgress{
				OperationId: operation, Step: step, Stats: &berthv1.MigrationStats{DataProcessedBytes: done},
			}}})
		}
		progress("op", 2, 10)
		progress("op", 1, 99)
		if got := store.Progress("op").GetDataProcessedBytes(); got != 10 {
			t.Errorf("progress is %d, want 10: the other report is of an earlier step", got)
		}
		a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{
			Result: &berthv1.CommandResult{OperationId: "op", Step: 2},
		}})
		if store.Progress("op") != nil {
			t.Error("progress outlives the result")
		}
		for i := range maxProgress + 10 {
			progress(string(rune('a'+i%26))+time.Duration(i).String(), 1, 1)
		}
		if len(store.progress) > maxProgress {
			t.Errorf("progress of %d operations is kept, want at most %d", len(store.progress), maxProgress)
		}
	})
}

func TestAViewJoinsStateAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := state.NewStore()
		const migrating = "00000000-0000-4000-8000-000000000001"
		spec := model.VMSpec{Memory: 4 * units.GiB, VCPUs: 2}
		command := state.Command{
			Key: "setup", Kind: "setup", Caller: "test", At: time.Now(),
			Nodes: []model.Node{{ID: "n1", Name: "a"}, {ID: "n2", Name: "b"}},
			VMs: []model.VM{{
				ID: migrating, Name: "web", Spec: spec, Desired: model.Running, Holder: "n1", Epoch: 1, Operation: "op",
			}},
			Operations: []operation.Operation{{
				ID: "op", Kind: operation.Migrate, VM: migrating, VMName: "web", Source: "n1", Target: "n2",
				Phase: operation.Copying, Epoch: 2, Memory: spec.Memory, VCPUs: spec.VCPUs,
			}},
			Expect: []state.Expectation{
				{Table: state.Nodes, ID: "n1"},
				{Table: state.Nodes, ID: "n2"},
				{Table: state.VMs, ID: migrating},
				{Table: state.Operations, ID: "op"},
			},
		}
		data, err := command.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if result := records.FSM().Apply(&raft.Log{Index: 1, Data: data}).(state.Result); result.Refusal != nil {
			t.Fatal(result.Refusal)
		}
		store := newStore()
		a := connect(t, store, "n1")
		domain := running(migrating)
		domain.MemoryBytes = int64(spec.Memory)
		a.inventory(domain, running("foreign"))
		time.Sleep(time.Second)
		available := int64(50 << 30)
		a.telemetry(&berthv1.NodeTelemetry{MemoryAvailableBytes: &available})

		if store.Settled(records.Snapshot(), time.Now()) {
			t.Error("settled, though n2 may still come")
		}
		time.Sleep(9 * time.Second)
		if !store.Settled(records.Snapshot(), time.Now()) {
			t.Error("not settled, though n2 had its time to come")
		}
		view := store.View(records.Snapshot(), time.Now())
		if err := view.Check(); err != nil {
			t.Error(err)
		}
		n1, n2 := view.Node("n1"), view.Node("n2")
		if n1.PromisedUsed != 5*units.GiB || n1.PhysicalFree != 50*units.GiB || view.Index != 1 {
			t.Errorf("n1 has %v promised and %v free at %d, want 5 GiB, 50 GiB at 1", n1.PromisedUsed, n1.PhysicalFree, view.Index)
		}
		if held, found := n2.Holds(migrating); !found || !held.InFlight || n2.PhysicalKnown {
			t.Errorf("n2 has %+v (physical known %t), want the reservation and nothing known", held, n2.PhysicalKnown)
		}
	})
}
