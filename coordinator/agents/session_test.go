package agents

import (
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func TestAFollowerSendsAgentsToTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		for leader, want := range map[string]string{"m2": "m2:7421", "": "", "m1": ""} {
			r.follow(leader)
			a := r.dial("n1")
			a.hello()
			if err := <-a.result; err != nil {
				t.Fatalf("leader %q: the stream ended with %v", leader, err)
			}
			heard := a.heard()
			if len(heard) != 1 || heard[0].GetRedirect().GetLeaderAddress() != want {
				t.Errorf("leader %q: heard %v, want a redirect to %q", leader, heard, want)
			}
			if diff := cmp.Diff([]string{"m1:7421", "m2:7421"}, heard[0].GetRedirect().GetAgentAddresses()); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		}
	})
}

// However long there was no leader: the agents that wait here are told of it within a moment.
func TestAnAgentWaitsForALeader(t *testing.T) {
	const moment = 2 * leaderPoll
	for name, tc := range map[string]struct {
		happens func(*rig, *agent)
		after   time.Duration // and a moment: when the agent is answered
		want    string
	}{
		"another member leads": {func(r *rig, _ *agent) { r.follow("m2") }, time.Second, "m2:7421"},
		"this member leads":    {func(r *rig, _ *agent) { r.Lead(3) }, time.Second, "welcome"},
		"nobody leads":         {func(*rig, *agent) {}, leaderPatience, ""},
		"this member stops":    {func(r *rig, _ *agent) { r.Stop() }, time.Second, ""},
		"the agent goes away":  {func(_ *rig, a *agent) { a.leave() }, time.Second, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "n1")
				a := r.dial("n1")
				a.hello()
				time.AfterFunc(time.Second, func() { tc.happens(r, a) })
				time.Sleep(tc.after - 1)
				synctest.Wait()
				if heard := a.heard(); len(heard) != 0 || len(a.result) != 0 {
					t.Fatalf("answered too early: %v", heard)
				}
				time.Sleep(moment)
				synctest.Wait()
				got := "nothing"
				for _, response := range a.heard() {
					got = response.GetRedirect().GetLeaderAddress()
					if response.GetWelcome() != nil {
						got = "welcome"
						a.hangUp()
					}
				}
				if got != tc.want {
					t.Errorf("heard %q, want %q", got, tc.want)
				}
				<-a.result
			})
		})
	}
}

// What a member that has just started does not know yet is no reason to send a node away.
func TestOnlyTheLeaderSaysThatANodeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.follow("m2")
		a := r.dial("n9")
		a.hello()
		if err := <-a.result; err != nil || len(a.heard()) != 1 {
			t.Errorf("a follower ended the stream with %v, want a redirect", err)
		}
		a = r.dial("n9")
		r.Lead(2)
		a.hello()
		synctest.Wait()
		if first := a.heard(); len(first) == 0 || !first[0].GetWelcome().GetRemoved() {
			t.Errorf("the leader said %v, want that the node was removed", first)
		}
		a.hangUp()
	})
}

// An agent whose session lasts would look for the next leader among coordinators of before.
func TestAnOpenSessionIsToldOfANewCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(7)
		a := r.dial("n1")
		a.hello()
		a.telemetry()
		synctest.Wait()
		r.apply(t, state.Command{
			Key: "third", Kind: "join", Members: []model.Member{{ID: "m3", Name: "name-m3", AgentAddress: "m3:7421"}},
			Expect: []state.Expectation{{Table: state.Members, ID: "m3"}},
		})
		a.telemetry()
		a.telemetry()
		synctest.Wait()
		heard := a.heard()
		if len(heard) != 2 {
			t.Fatalf("heard %v, want a welcome and the members", heard)
		}
		if diff := cmp.Diff([]string{"m1:7421", "m2:7421", "m3:7421"}, heard[1].GetMembers().GetAgentAddresses()); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
		a.hangUp()
		<-a.result
	})
}

func TestTheLeaderWelcomesAndTheInventoryHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(7)
		a := r.dial("n1")
		a.hello()
		a.telemetry()
		synctest.Wait()
		want := &berthv1.Welcome{
			ClusterId: testCluster, Term: 7, TelemetryIntervalSeconds: 2, InventoryIntervalSeconds: 30,
			AgentAddresses: []string{"m1:7421", "m2:7421"}, Digests: true,
		}
		heard := a.heard()
		if len(heard) != 1 {
			t.Fatalf("heard %v, want one welcome", heard)
		}
		if diff := cmp.Diff(want, heard[0].GetWelcome(), protocmp.Transform(), protocmp.IgnoreFields(want, "now")); diff != "" {
			t.Errorf("welcome (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"n1"}, r.connected); diff != "" {
			t.Errorf("connected (-want +got):\n%s", diff)
		}
		if facts := r.inventory.Facts("n1", time.Now()); facts.Liveness != model.Up || !facts.Telemetry {
			t.Errorf("facts %+v, want up with telemetry", facts)
		}
		a.hangUp()
		if err := <-a.result; err != nil {
			t.Errorf("the agent hung up, the stream ended with %v", err)
		}
		if facts := r.inventory.Facts("n1", time.Now()); facts.Liveness != model.Suspect {
			t.Errorf("after hanging up the node is %s, want suspect", facts.Liveness)
		}
	})
}

func TestAHelloThatDoesNotFitTheCertificateIsDenied(t *testing.T) {
	hello := func(change func(*berthv1.Hello)) *berthv1.SessionRequest {
		h := &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1", ClusterId: testCluster}
		change(h)
		return &berthv1.SessionRequest{Sequence: 1, Message: &berthv1.SessionRequest_Hello{Hello: h}}
	}
	for name, tc := range map[string]struct {
		node  string
		first *berthv1.SessionRequest
		code  string
	}{
		"another node":    {"n1", hello(func(h *berthv1.Hello) { h.NodeId = "n2" }), rpc.Denied},
		"another cluster": {"n1", hello(func(h *berthv1.Hello) { h.ClusterId = "c2" }), rpc.Denied},
		"no incarnation":  {"n1", hello(func(h *berthv1.Hello) { h.Incarnation = "" }), rpc.Invalid},
		"not a hello":     {"n1", &berthv1.SessionRequest{Sequence: 1}, rpc.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "n1", "n2")
				r.Lead(1)
				a := r.dial(tc.node)
				a.up <- tc.first
				err := <-a.result
				detail := rpc.Detail(err)
				if detail.GetCode() != tc.code || detail.GetNextStep() == "" {
					t.Errorf("ended with %v (%v), want code %s and a next step", err, detail, tc.code)
				}
				if r.session("n1") != nil || len(r.connected) != 0 {
					t.Error("a session was opened all the same")
				}
			})
		})
	}
}

func TestANewerSessionReplacesTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		older := r.dial("n1")
		older.hello()
		synctest.Wait()
		newer := r.dial("n1")
		newer.sequence = older.sequence
		newer.hello()
		if err := <-older.result; connect.CodeOf(err) != connect.CodeAborted {
			t.Errorf("the older stream ended with %v, want aborted", err)
		}
		synctest.Wait()
		if facts := r.inventory.Facts("n1", time.Now()); facts.Liveness != model.Up {
			t.Errorf("the node is %s after its agent reconnected, want up", facts.Liveness)
		}
		if !r.Order(1, operation.Order{Node: "n1", Operation: "op", Action: operation.ActInspect}) {
			t.Error("the newer session takes no orders")
		}
		synctest.Wait()
		if heard := newer.heard(); len(heard) != 2 || heard[1].GetCommand().GetOperationId() != "op" {
			t.Errorf("the newer session heard %v, want a welcome and the order", heard)
		}
		newer.hangUp()
		<-newer.result
	})
}

func TestADelayedHelloDoesNotReplaceANewerSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		newer := r.dial("n1")
		newer.sequence = 10
		newer.hello()
		synctest.Wait()
		delayed := r.dial("n1")
		delayed.sequence = 4
		delayed.hello()
		if err := <-delayed.result; connect.CodeOf(err) != connect.CodeAborted {
			t.Errorf("the delayed stream ended with %v, want aborted", err)
		}
		newer.telemetry()
		synctest.Wait()
		if facts := r.inventory.Facts("n1", time.Now()); !facts.Telemetry {
			t.Error("the newer session is not heard any more")
		}
		newer.hangUp()
		<-newer.result
	})
}

func TestLosingTheLeadershipClosesEverySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1", "n2")
		r.Lead(3)
		agents := []*agent{r.dial("n1"), r.dial("n2")}
		for _, a := range agents {
			a.hello()
		}
		synctest.Wait()
		r.Follow()
		for _, a := range agents {
			if detail := rpc.Detail(<-a.result); detail.GetCode() != rpc.NoLeader {
				t.Errorf("node %s: ended with %v, want no_leader", a.node, detail)
			}
		}
		if r.Order(3, operation.Order{Node: "n1"}) {
			t.Error("an order was taken without leading")
		}
		r.Lead(4)
		if facts := r.inventory.Facts("n1", time.Now()); facts.Liveness != model.Suspect {
			t.Errorf("at the start of a term the node is %s, want suspect", facts.Liveness)
		}
	})
}

func TestAnOrderOfAnotherTermIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(5)
		a := r.dial("n1")
		a.hello()
		synctest.Wait()
		if r.Order(4, operation.Order{Node: "n1"}) {
			t.Error("an order of an older term was sent")
		}
		if r.Order(5, operation.Order{Node: "n2"}) {
			t.Error("an order to a node without a session was sent")
		}
		a.hangUp()
		<-a.result
	})
}

func TestASilentAgentIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		mute, quiet := r.dial("n1"), r.dial("n1")
		quiet.hello()
		start := time.Now()
		if err := <-mute.result; connect.CodeOf(err) != connect.CodeDeadlineExceeded || time.Since(start) != helloWithin {
			t.Errorf("without a hello: ended with %v after %v, want a deadline after %v", err, time.Since(start), helloWithin)
		}
		if err := <-quiet.result; connect.CodeOf(err) != connect.CodeDeadlineExceeded ||
			time.Since(start) != model.UnreachableAfter {
			t.Errorf("after a hello: ended with %v after %v, want a deadline after %v",
				err, time.Since(start), model.UnreachableAfter)
		}
	})
}

func TestASlowAgentLosesItsSessionAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		a := &agent{
			node: "n1", incarnation: "boot-1", up: make(chan any, 10), interrupted: make(chan struct{}),
			result: make(chan error, 1), deaf: true,
		}
		go func() {
			a.result <- r.serve(t.Context(), a.identity(), "10.0.0.1", a, func() { a.once.Do(func() { close(a.interrupted) }) })
		}()
		a.hello()
		synctest.Wait()
		sent := 0
		for r.Order(1, operation.Order{Node: "n1", Step: uint32(sent)}) {
			sent++
			if sent > 2*queueLength {
				t.Fatal("the queue has no end")
			}
		}
		if err := <-a.result; connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("ended with %v, want resource exhausted", err)
		}
	})
}

func TestARemovedNodeLosesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		a := r.dial("n1")
		a.hello()
		synctest.Wait()
		node, _ := r.store.Snapshot().Node("n1")
		r.apply(t, state.Command{
			Key: "remove", Kind: "remove node", Caller: "test", At: time.Now(),
			Expect: []state.Expectation{{Table: state.Nodes, ID: "n1", Revision: node.Revision}},
			Delete: []state.Record{{Table: state.Nodes, ID: "n1"}},
		})
		a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{}}})
		if detail := rpc.Detail(<-a.result); detail.GetCode() != rpc.Denied {
			t.Errorf("ended with %v, want denied", detail)
		}
	})
}

func TestAnswersReachTheDriverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		a := r.dial("n1")
		a.hello()
		result := &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{
			OperationId: "op1", Step: 3, Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_DONE,
			Domain: &berthv1.Domain{Uuid: "u", State: berthv1.DomainState_DOMAIN_STATE_ABSENT, Epoch: 4, EndedHere: true},
		}}}
		a.say(result)
		a.up <- result // the same message again
		synctest.Wait()
		want := []operation.Answer{{
			Operation: "op1", Node: "n1", Step: 3, Outcome: operation.OutcomeDone,
			Seen: operation.Observation{State: model.DomainAbsent, Epoch: 4, Ended: true, Boot: "boot-1"},
		}}
		if diff := cmp.Diff(want, r.allAnswers()); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		a.hangUp()
		<-a.result
	})
}

func TestOrdersOnTheWire(t *testing.T) {
	spec := model.VMSpec{
		Memory: 512 * units.MiB, VCPUs: 2, Kernel: "/k", Networks: []string{"default"},
		Disks: []model.Disk{
			{Path: "/d", Format: "raw", Bus: "virtio", ReadOnly: true},
			{Pool: "fast", Volume: "berth-d1.qcow2", Format: "qcow2", Bus: "scsi"},
		},
		Machine: "q35", Firmware: model.FirmwareEFI, CPU: "Nehalem", UserData: "#cloud-config",
	}
	wireSpec := &berthv1.VMSpec{
		MemoryBytes: 512 << 20, Vcpus: 2, Kernel: "/k", Networks: []string{"default"},
		Disks: []*berthv1.Disk{
			{Path: "/d", Format: "raw", Bus: "virtio", ReadOnly: true},
			{Pool: "fast", Volume: "berth-d1.qcow2", Format: "qcow2", Bus: "scsi"},
		},
		Machine: "q35", Firmware: "efi", Cpu: "Nehalem", UserData: "#cloud-config",
	}
	disk := func(id, pool string) model.VolumeOrder {
		return model.VolumeOrder{
			Disk: id, DiskName: "web-" + id, Pool: "id-of-" + pool, PoolName: pool, Name: "berth-" + id + ".qcow2", Format: "qcow2",
			Capacity: units.GiB, Shared: true, BackingPool: "nfs", BackingName: "berth-i1.qcow2", BackingFormat: "qcow2",
		}
	}
	wireDisk := func(id, pool string) *berthv1.Volume {
		return &berthv1.Volume{
			DiskName: "web-" + id, Pool: pool, Name: "berth-" + id + ".qcow2", Format: "qcow2", CapacityBytes: 1 << 30,
			Shared: true, BackingPool: "nfs", BackingName: "berth-i1.qcow2", BackingFormat: "qcow2",
		}
	}
	made, wireMade := []model.VolumeOrder{disk("d1", "fast")}, []*berthv1.Volume{wireDisk("d1", "fast")}
	base := operation.Order{Node: "n1", Operation: "op", Step: 2, VM: "u", VMName: "web", Epoch: 5}
	wire := func(set func(*berthv1.Command)) *berthv1.Command {
		c := &berthv1.Command{OperationId: "op", Step: 2, Term: 9, Epoch: 5, VmId: "u", VmName: "web"}
		set(c)
		return c
	}
	for action, tc := range map[operation.Action]struct {
		set  func(*operation.Order)
		want *berthv1.Command
	}{
		operation.ActStart: {
			func(o *operation.Order) { o.Spec, o.Volumes = spec, made },
			wire(func(c *berthv1.Command) {
				c.Action = &berthv1.Command_Start{Start: &berthv1.StartCommand{Spec: wireSpec, Volumes: wireMade}}
			}),
		},
		operation.ActStop: {
			func(o *operation.Order) { o.Force, o.Grace = true, 90*time.Second },
			wire(func(c *berthv1.Command) {
				c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{Force: true, GraceSeconds: 90}}
			}),
		},
		operation.ActMigrate: {
			func(o *operation.Order) {
				o.Spec, o.TargetURI, o.TargetNode, o.TargetEpoch = spec, "qemu+tls://b/system", "n2", 6
				o.Bandwidth, o.Deadline = units.MiB, time.Minute
				o.CopyStorage, o.GivenUp = true, true
				o.Replaced = []model.VolumeOrder{disk("d1", "fast"), disk("d2", "fast")}
				o.Volumes = []model.VolumeOrder{disk("d2", "slow"), disk("d1", "fast")}
			},
			wire(func(c *berthv1.Command) {
				c.Action = &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{
					TargetUri: "qemu+tls://b/system", TargetNode: "n2", TargetEpoch: 6, BandwidthBps: 1 << 20,
					DeadlineSeconds: 60, Spec: wireSpec, CopyStorage: true, GivenUp: true,
					From: []*berthv1.Volume{wireDisk("d1", "fast"), wireDisk("d2", "fast")},
					To:   []*berthv1.Volume{wireDisk("d1", "fast"), wireDisk("d2", "slow")},
				}}
			}),
		},
		operation.ActResume: {nil, wire(func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Resume{Resume: &berthv1.ResumeCommand{}}
		})},
		operation.ActDiscard: {
			func(o *operation.Order) { o.Volumes = made },
			wire(func(c *berthv1.Command) {
				c.Action = &berthv1.Command_Discard{Discard: &berthv1.DiscardCommand{Volumes: wireMade}}
			}),
		},
		operation.ActPrepare: {
			func(o *operation.Order) { o.Spec, o.Volumes = spec, made },
			wire(func(c *berthv1.Command) {
				c.Action = &berthv1.Command_Prepare{Prepare: &berthv1.PrepareCommand{Volumes: wireMade, Spec: wireSpec}}
			}),
		},
		operation.ActClear: {
			func(o *operation.Order) { o.Volumes = made },
			wire(func(c *berthv1.Command) {
				c.Action = &berthv1.Command_Clear{Clear: &berthv1.ClearCommand{Volumes: wireMade}}
			}),
		},
		operation.ActInspect: {nil, wire(func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Inspect{Inspect: &berthv1.InspectCommand{}}
		})},
	} {
		order := base
		order.Action = action
		if tc.set != nil {
			tc.set(&order)
		}
		if diff := cmp.Diff(tc.want, Command(9, order), protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", action, diff)
		}
	}
}

// Whatever an agent can be ordered to do goes on the wire with all that it needs.
func TestEveryActionHasItsMessage(t *testing.T) {
	actions := (&berthv1.Command{}).ProtoReflect().Descriptor().Oneofs().ByName("action").Fields()
	for i := range actions.Len() {
		action := actions.Get(i)
		for k := range action.Message().Fields().Len() {
			if name := action.Message().Fields().Get(k).Name(); parameters[name] == nil {
				t.Errorf("%s: nothing of an order is its %s", action.Message().Name(), name)
			}
		}
		if got := Command(1, operation.Order{Action: operation.Action(action.Name())}); !got.ProtoReflect().Has(action) {
			t.Errorf("an order to %s became %v", action.Name(), got)
		}
	}
	if got := Command(1, operation.Order{Action: "dance"}); got.GetAction() != nil {
		t.Errorf("an order that nobody knows became %v", got)
	}
}

func TestAnAnswerThatSaysTooLittleLeavesEverythingOpen(t *testing.T) {
	got := Answer("n1", "boot", &berthv1.CommandResult{OperationId: "op"})
	if got.Outcome != operation.OutcomeAmbiguous || got.Seen.State != model.DomainUnknown {
		t.Errorf("got %+v, want an ambiguous outcome and an unknown domain", got)
	}
	downtime := 0.25
	stats := &berthv1.MigrationStats{
		ElapsedSeconds: 1.5, DataTotalBytes: 7, DowntimeSeconds: &downtime, DiskTotalBytes: 5, DiskProcessedBytes: 4, DiskRemainingBytes: 1,
	}
	got = Answer("n1", "boot", &berthv1.CommandResult{Migration: stats})
	want := 250 * time.Millisecond
	wantStats := &operation.MigrationStats{
		Elapsed: 1500 * time.Millisecond, DataTotal: 7, Downtime: &want, DiskTotal: 5, DiskProcessed: 4, DiskRemaining: 1,
	}
	if diff := cmp.Diff(wantStats, got.Migration); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// An agent is asked for its whole inventory when its digest is not of the one that is known, and only then.
func TestAWholeInventoryIsAskedForWhenItHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(7)
		a := r.dial("n1")
		a.hello()
		asked := func() (times int) { // since it was looked last
			synctest.Wait()
			for _, response := range a.heard() {
				if response.GetResync() != nil {
					times++
				}
			}
			return times
		}
		digest := func(text string) {
			a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_InventoryDigest{
				InventoryDigest: &berthv1.InventoryDigest{Digest: []byte(text)},
			}})
		}
		digest("one")
		if n := asked(); n != 1 {
			t.Fatalf("a new leader asked %d times", n)
		}
		a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30}, Digest: []byte("one"),
		}}})
		digest("one")
		if n := asked(); n != 0 {
			t.Errorf("an inventory that is known was asked for %d times", n)
		}
		digest("two")
		if n := asked(); n != 1 {
			t.Errorf("one that has changed was asked for %d times", n)
		}
		a.hangUp()
		<-a.result
	})
}
