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

var victims = []victim{
	{name: "the source's agent dies", harm: func(m *move) { m.must(m.source.KillAgent()) }},
	{name: "the target's agent dies", harm: func(m *move) { m.must(m.target.KillAgent()) }},
	{name: "the source's libvirtd dies", harm: func(m *move) { m.must(m.source.Kill(lab.Libvirtd)) }},
	{name: "the target's libvirtd dies", harm: func(m *move) { m.must(m.target.Kill(lab.Libvirtd)) }},
	{name: "the leader dies", harm: func(m *move) { m.killLeader() }},
	{name: "the source loses power", kills: true, harm: func(m *move) { m.must(m.source.PowerOff()) }},
	{name: "the target loses power", kills: true, harm: func(m *move) { m.must(m.target.PowerOff()) }},
	{name: "the link between them is cut", harm: func(m *move) {
		m.must(m.lab.Partition(m.Context(), m.source.Machine, m.target.Machine))
	}},
	{name: "the source loses its link", harm: func(m *move) { m.must(m.source.CutLink(m.Context())) }},
	{name: "the target loses its link", harm: func(m *move) { m.must(m.target.CutLink(m.Context())) }},
	{name: "the source's QEMU dies", kills: true, harm: func(m *move) { m.killGuest(m.source) }},
	{name: "the target's QEMU dies", kills: true, harm: func(m *move) { m.killGuest(m.target) }},
	{name: "the source's libvirtd hangs", harm: func(m *move) { m.must(m.source.Pause(lab.Libvirtd)) }},
	{name: "the target's libvirtd hangs", harm: func(m *move) { m.must(m.target.Pause(lab.Libvirtd)) }},
	{name: "the leader hangs", harm: func(m *move) {
		leader, err := m.lab.Leader(m.Context())
		m.must(err)
		m.must(leader.Pause())
	}},
}

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
	cells := [][2]int{{0, 2}, {4, 2}} // the two that the other tests do not come near: who hands over dies while it does
	if *long {
		cells = nil
		for v := range victims {
			for m := range moments {
				cells = append(cells, [2]int{v, m})
			}
		}
	}
	for _, cell := range cells {
		v, at := victims[cell[0]], moments[cell[1]]
		t.Run(fmt.Sprintf("%s %s", v.name, at.name), func(t *testing.T) {
			m := begin(t).beginMove("mover")
			m.reaches(at)
			v.harm(m)
			if *long {
				time.Sleep(harmLasts)
			}
			m.must(m.mend(t.Context()))
			m.survives(v.kills)
		})
	}
}

var moments = []moment{recorded, copying, switching, resumed}

// survives checks what has to hold after any fault.
func (m *move) survives(killed bool) {
	m.Helper()
	op := m.ended(m.vm, 3*time.Minute)
	m.Logf("%s: %s", op.GetResult(), op.GetMessage())
	vm, _ := m.show(m.vm)
	if vm.GetState() == berthv1.VMState_VM_STATE_LOST && killed {
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
