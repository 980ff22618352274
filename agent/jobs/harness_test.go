package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	vmID   = "11111111-2222-4333-8444-555555555555"
	vmName = "web-1"
)

// bench is one node under test, n1, with another one to migrate to, n2, in virtual time.
type bench struct {
	*testing.T
	wire    *fake.Wire
	node    *fake.Hypervisor
	peer    *fake.Hypervisor
	jobs    *Jobs
	journal string
	full    atomic.Bool // the journal's disk takes nothing
}

// inBubble runs a test on a bench of its own, in virtual time.
func inBubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	journal := filepath.Join(t.TempDir(), "agent", "journal.db")
	synctest.Test(t, func(t *testing.T) {
		wire := fake.NewWire()
		b := &bench{T: t, wire: wire, node: wire.Host("n1"), peer: wire.Host("n2"), journal: journal}
		b.open()
		test(b)
		if err := b.jobs.Close(); err != nil {
			t.Error(err)
		}
		b.node.Heal("copy")
		time.Sleep(time.Hour) // whatever the hypervisor has under way ends
	})
}

func (b *bench) open() {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(b.journal), 0o700); err != nil {
		b.Fatal(err)
	}
	disk, err := openFile(b.journal)
	if err != nil {
		b.Fatal(err)
	}
	disk.(file).db.NoSync = true // agents crash here, and no machine does: days of virtual time need not wait for the disk
	jobs, err := Open(Config{
		Storage: fragile{disk, b.full.Load}, Hypervisor: b.node, NodeID: "n1", VirtType: "auto", Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.jobs = jobs
	synctest.Wait() // until it knows what runs
}

// crash ends the agent as kill -9 would: what it had not journalled is lost. The hypervisor goes on.
func (b *bench) crash() {
	b.Helper()
	if err := b.jobs.Close(); err != nil {
		b.Fatal(err)
	}
	b.open()
}

// command makes an order; change completes it.
func command(operation string, step uint32, epoch uint64, change func(*berthv1.Command)) *berthv1.Command {
	c := &berthv1.Command{OperationId: operation, Step: step, Term: 1, Epoch: epoch, VmId: vmID, VmName: vmName}
	change(c)
	return c
}

func startOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Start{Start: &berthv1.StartCommand{Spec: &berthv1.VMSpec{MemoryBytes: 1 << 30, Vcpus: 2}}}
}

func stopOrder(grace float64) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{GraceSeconds: grace}}
	}
}

func migrateOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{
		TargetUri: "qemu+tls://n2/system", TargetNode: "n2", TargetEpoch: c.Epoch + 1,
	}}
}

func resumeOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Resume{Resume: &berthv1.ResumeCommand{}}
}

func discardOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Discard{Discard: &berthv1.DiscardCommand{}}
}

func inspectOrder(c *berthv1.Command) {
	c.Action = &berthv1.Command_Inspect{Inspect: &berthv1.InspectCommand{}}
}

// do sends an order and waits for its answer, or for virtual time to run out.
func (b *bench) do(c *berthv1.Command) *berthv1.CommandResult {
	b.Helper()
	b.jobs.Do(b.Context(), c)
	return b.answer()
}

func (b *bench) answer() *berthv1.CommandResult {
	b.Helper()
	for {
		select {
		case r := <-b.jobs.Results():
			return r
		case <-b.jobs.Progress():
		case <-time.After(time.Hour):
			b.Fatal("no answer within an hour")
		}
	}
}

// want checks the outcome, the error code and the state that the answer shows.
func (b *bench) want(r *berthv1.CommandResult, outcome berthv1.CommandOutcome, code string, state berthv1.DomainState) {
	b.Helper()
	if r.GetOutcome() != outcome || r.GetErrorCode() != code || r.GetDomain().GetState() != state {
		b.Errorf(
			"got %s, code %q, %s (%s)\nwant %s, code %q, %s", r.GetOutcome(), r.GetErrorCode(), r.GetDomain().GetState(), r.GetError(),
			outcome, code, state,
		)
	}
	if word := errorcode.Word(r.GetCode()); word != code {
		b.Errorf("code %q with the word %q", word, code)
	}
	if (r.GetError() == "") != (code == "") {
		b.Errorf("code %q with the words %q", code, r.GetError())
	}
}

// start brings the VM up under an epoch, without the jobs.
func (b *bench) start(epoch uint64) {
	b.Helper()
	b.want(b.do(command("op-boot", 1, epoch, startOrder)), done_, "", running)
}

// shows is what the hypervisor has of the VM.
func (b *bench) shows(on *fake.Hypervisor) hypervisor.Domain {
	b.Helper()
	d, err := on.Lookup(b.Context(), vmID)
	if errors.Is(err, hypervisor.ErrNotFound) {
		return hypervisor.Domain{State: hypervisor.Absent}
	}
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// calls counts the changes of a kind that the hypervisor was asked for.
func (b *bench) calls(kind string) int {
	count := 0
	for _, c := range b.node.Calls() {
		if c == kind {
			count++
		}
	}
	return count
}

func (b *bench) asked(kind string) bool { return slices.Contains(b.node.Calls(), kind) }

const (
	done_     = berthv1.CommandOutcome_COMMAND_OUTCOME_DONE
	failed    = berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED
	refused_  = berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED
	ambiguous = berthv1.CommandOutcome_COMMAND_OUTCOME_AMBIGUOUS
	cancelled = berthv1.CommandOutcome_COMMAND_OUTCOME_CANCELLED

	unseen          = berthv1.DomainState_DOMAIN_STATE_UNSPECIFIED
	absentState     = berthv1.DomainState_DOMAIN_STATE_ABSENT
	running         = berthv1.DomainState_DOMAIN_STATE_RUNNING
	paused          = berthv1.DomainState_DOMAIN_STATE_PAUSED
	pausedMigration = berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION
	crashedState    = berthv1.DomainState_DOMAIN_STATE_CRASHED
	unknown         = berthv1.DomainState_DOMAIN_STATE_UNKNOWN
)
