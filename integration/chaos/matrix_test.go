package chaos

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// victim is who comes to harm during a migration, and how.
type victim struct {
	name  string
	harm  func(*move)
	kills bool // the guest may be gone afterwards
}

var (
	sourcesAgent = victim{name: "the source's agent dies", harm: func(m *move) { m.must(m.source.KillAgent()) }}
	theLeader    = victim{name: "the leader dies", harm: func(m *move) { m.killLeader() }}
)

var victims = []victim{
	sourcesAgent,
	{name: "the target's agent dies", harm: func(m *move) { m.must(m.target.KillAgent()) }},
	{name: "the source's libvirtd dies", harm: func(m *move) { m.must(m.source.Kill(lab.Libvirtd)) }},
	{name: "the target's libvirtd dies", harm: func(m *move) { m.must(m.target.Kill(lab.Libvirtd)) }},
	{name: "the source's libvirtd hangs", harm: func(m *move) { m.must(m.source.Pause(lab.Libvirtd)) }},
	{name: "the target's libvirtd hangs", harm: func(m *move) { m.must(m.target.Pause(lab.Libvirtd)) }},
	theLeader,
	{name: "the leader hangs", harm: func(m *move) {
		leader, err := m.lab.Leader(m.Context())
		m.must(err)
		m.must(leader.Pause())
	}},
	{name: "the link between them is cut", harm: func(m *move) {
		m.must(m.lab.Partition(m.Context(), m.source.Machine, m.target.Machine))
	}},
	{name: "the source loses its link", harm: func(m *move) { m.must(m.source.CutLink(m.Context())) }},
	{name: "the target loses its link", harm: func(m *move) { m.must(m.target.CutLink(m.Context())) }},
	{name: "the source's QEMU dies", kills: true, harm: func(m *move) { m.killGuest(m.source) }},
	{name: "the target's QEMU dies", kills: true, harm: func(m *move) { m.killGuest(m.target) }},
	{name: "the source loses power", kills: true, harm: func(m *move) { m.must(m.source.PowerOff()) }},
	{name: "the target loses power", kills: true, harm: func(m *move) { m.must(m.target.PowerOff()) }},
}

var moments = []moment{recorded, copying, switching, resumed}

// killGuest ends the guest's process on a host, if it is there.
func (m *move) killGuest(on *lab.Host) {
	m.Helper()
	for _, guest := range on.QEMUs() {
		if guest.Name == m.vm {
			m.must(guest.Signal(unix.SIGKILL))
		}
	}
}

// harmLasts is how long nothing is mended. It is longer than libvirt waits for the other side.
const harmLasts = 40 * time.Second

// TestAMigrationSurvivesAnyFaultAtAnyMoment wants what has to hold whatever happens: the operation ends by itself once
// everything is mended, the guest has run on one host at a time, its memory is whole and its uptime unbroken unless the
// fault has killed it, Berth knows where it is, and it can be used.
func TestAMigrationSurvivesAnyFaultAtAnyMoment(t *testing.T) {
	type cell struct {
		victim victim
		at     moment
	}
	// In the short form, what the tests by name do not come near: who hands the guest over dies while it does.
	cells := []cell{{sourcesAgent, switching}, {theLeader, switching}}
	if *long {
		cells = nil
		for _, v := range victims {
			for _, at := range moments {
				cells = append(cells, cell{v, at})
			}
		}
	}
	for _, c := range cells {
		t.Run(c.victim.name+" "+c.at.name, func(t *testing.T) {
			m := begin(t).beginMove("mover")
			m.reaches(c.at)
			c.victim.harm(m)
			if *long {
				time.Sleep(harmLasts)
			}
			m.must(m.mend(t.Context()))
			m.survives(c.victim.kills)
		})
	}
}

// survives checks what has to hold after any fault.
func (m *move) survives(killed bool) {
	m.Helper()
	op := m.ended(m.vm, 3*time.Minute)
	m.Logf("%s: %s", op.GetResult(), op.GetMessage())
	var state berthv1.VMState
	m.within(60*time.Second, "berth knows what became of the guest", func() error {
		vm, _ := m.show(m.vm)
		if state = vm.GetState(); state != berthv1.VMState_VM_STATE_RUNNING && state != berthv1.VMState_VM_STATE_LOST {
			return fmt.Errorf("it is %s (%s)", state, vm.GetCondition())
		}
		return nil
	})
	if killed && state == berthv1.VMState_VM_STATE_LOST {
		if where, err := m.noGuest(m.vm); err != nil {
			m.Errorf("it is lost, and has a process on %s", where)
		}
		m.startsAgain(m.vm)
		m.stops(m.vm)
		return
	}
	on := m.source
	if op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE {
		on = m.target
	}
	m.runsOnce(m.vm, on)
	m.sameGuest(m.vm, on, m.before)
	m.stops(m.vm)
}
