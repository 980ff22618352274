package adversary

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// most is how many domains of a node are believed.
const most = 4096

func many(count int) []*berthv1.Domain {
	all := make([]*berthv1.Domain, count)
	for i := range all {
		all[i] = &berthv1.Domain{
			Uuid: fmt.Sprintf("6c0e8bd2-6f4f-4c55-8b3e-%012d", i), Name: fmt.Sprint("vm", i), State: berthv1.DomainState_DOMAIN_STATE_RUNNING,
		}
	}
	return all
}

func TestANodeHasNotAnyNumberOfDomains(t *testing.T) {
	l := lead(t)
	bad := l.open("n1")
	facts := func() model.NodeFacts { return l.inventory.Facts("n1", time.Now()) }
	bad.list(many(most)...)
	l.eventually("a large host", func() bool { return len(facts().Domains) == most && facts().DomainsKnown })

	// Half of a list would be a proof that the other half is not there.
	bad.list(many(most + 1)...)
	l.eventually("the verdict", func() bool { return !facts().DomainsKnown })
	is := facts()
	if len(is.Domains) != most || is.Liveness != model.Degraded || !strings.Contains(is.LivenessReason, "more than 4096 domains") {
		t.Errorf("after too many: %d domains, %s, %q", len(is.Domains), is.Liveness, is.LivenessReason)
	}
	bad.list(many(most)...)
	l.eventually("a list that is believed", func() bool { return facts().DomainsKnown })

	// One by one there are not more, and those that ended are bounded as well.
	for i, one := range many(3 * most)[most:] {
		if i%2 == 0 {
			one.State, one.Ending = berthv1.DomainState_DOMAIN_STATE_ABSENT, &berthv1.Ending{WatchedSeconds: 2, EndedSeconds: 1}
			one.LastRun = &berthv1.LastRun{Epoch: 1, Devices: &berthv1.Devices{}}
		}
		if i < 200 || i > 2*most-200 {
			l.check(bad.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{
				DomainChange: &berthv1.DomainChange{Domain: one, Event: "started"},
			}}))
		}
	}
	l.eventually("the end of what was told", func() bool { return len(facts().Endings) >= 199 })
	if is := facts(); len(is.Domains) > most || is.DomainsKnown {
		t.Errorf("one by one there are %d domains, known %t", len(is.Domains), is.DomainsKnown)
	}
}

func TestNobodySpeaksForAnOperationOfOthers(t *testing.T) {
	l := lead(t)
	l.inventory.Concerns = func(node, operation string) bool { return node == "n1" && operation == "op" }
	good, bad := l.open("n1"), l.open("n2")
	progress := func(done int64) *berthv1.SessionRequest {
		return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Progress{Progress: &berthv1.CommandProgress{
			OperationId: "op", Step: 1, Stats: &berthv1.MigrationStats{DataProcessedBytes: done},
		}}}
	}
	l.check(good.say(progress(7)))
	l.eventually("the progress", func() bool { return l.inventory.Progress("op").GetDataProcessedBytes() == 7 })
	l.check(bad.say(progress(99)))
	l.check(bad.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{
		Result: &berthv1.CommandResult{OperationId: "op", Step: 1},
	}}))
	<-l.answers // it was taken in, after the progress
	if is := l.inventory.Progress("op"); is.GetDataProcessedBytes() != 7 {
		t.Errorf("another node has made it %v", is)
	}
}

func TestANodeOpensSessionsAtARate(t *testing.T) {
	l := lead(t)
	client := l.client("n2")
	refused := 0
	for range 60 {
		body := strings.NewReader(string(envelope(0, encode(t, &berthv1.SessionRequest{}))))
		if l.raw(client, "/berth.v1.AgentService/Session", plain, body) == "resource_exhausted" {
			refused++
		}
	}
	if refused < 20 {
		t.Errorf("%d of 60 sessions within a moment are refused", refused)
	}
	l.open("n1").works("6c0e8bd2-6f4f-4c55-8b3e-000000000005")
}

// The next epoch of a VM is above all that its nodes show. One at the end of the numbers would make that 0, which each node refuses.
func TestAnEpochCannotBeDrivenToTheEndOfTheNumbers(t *testing.T) {
	l := lead(t)
	bad := l.open("n1")
	for told, want := range map[uint64]uint64{math.MaxUint64: 0, 1<<62 + 1: 0, 1 << 62: 1 << 62, 7: 7} {
		one := many(1)[0]
		one.Managed, one.Epoch, one.Vcpus = true, told, int32(told%97)+1
		bad.list(one)
		l.eventually("the inventory", func() bool {
			is := l.inventory.Facts("n1", time.Now()).Domains
			return len(is) == 1 && is[0].VCPUs == int(one.GetVcpus())
		})
		if is := l.inventory.Facts("n1", time.Now()).Domains[0]; is.Epoch != want {
			t.Errorf("epoch %d is kept as %d, want %d", told, is.Epoch, want)
		}
		l.check(bad.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{Domain: one}}}))
		if answer := <-l.answers; answer.Seen.Epoch != want {
			t.Errorf("epoch %d of an answer is taken for %d", told, answer.Seen.Epoch)
		}
	}
}
