package chaos

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/integration/lab"
)

// moment is a point in the life of a migration, of those that libvirt decides. Libvirt passes most of them within
// milliseconds, and does not say so. So something is held that it waits for, until the harm is done: a request or an
// answer on the way from libvirtd to libvirtd, or a process that stands still.
type moment struct {
	name string
	// hold begins before the migration does, what it needs of it; nil: nothing.
	hold func(*move)
	// nears brings a migration that copies to it; nil: it is not held. From is the share of the memory that is copied then.
	nears func(*move)
	from  float64
	// reached is an error until the migration has come to it.
	reached func(*move) error
	// away: the source's copy is no longer the guest that must not be lost, the target's is.
	away bool
}

// nearly is as late as it can be: a libvirtd that stands still is given up soon, and its peer with it.
const nearly = 0.8

// In the order in which a migration passes them. Two that a look from outside cannot tell apart are one: libvirt's own
// phases Begin and the connecting to the target before it; Finish of a strict hand-over and the end of the job on the
// target, which is when its reply is sent.
var (
	beginning = moment{
		name: "at Begin",
		hold: func(m *move) { m.must(m.lab.HoldRequests(m.Context(), m.source, m.target)) },
		reached: func(m *move) error {
			job, err := m.source.Virsh(m.Context(), "domjobinfo", m.vm)
			if err == nil && !strings.Contains(job, "Unbounded") {
				err = fmt.Errorf("the source has no job: %s", job)
			}
			return err
		},
	}
	preparing = moment{
		name: "at Prepare",
		reached: func(m *move) error {
			if !has(m.target, m.vm) {
				return fmt.Errorf("%s has no process for it", m.target.Name)
			}
			m.freeze(m.target, lab.Libvirtd)
			return nil
		},
	}
	copying   = moment{name: "after 10 % of Perform", reached: copied(0.1)}
	halfway   = moment{name: "after 50 % of Perform", reached: copied(0.5)}
	almost    = moment{name: "after 90 % of Perform", reached: copied(0.9)}
	switching = moment{
		name:    "when the guest stands still on its source",
		from:    nearly,
		nears:   func(m *move) { m.freeze(m.source, lab.Libvirtd) },
		reached: sourceSays("pre-switchover"),
	}
	finishing = moment{
		name:    "at Finish",
		from:    nearly,
		nears:   func(m *move) { m.freeze(m.target, lab.Libvirtd) },
		reached: sourceSays("completed"),
	}
	replying = moment{
		name: "while Finish's reply is on its way",
		// Nothing else is answered meanwhile, and the network is slow to take a rule up.
		from:  0.1,
		nears: func(m *move) { m.must(m.lab.HoldAnswers(m.Context(), m.target, m.source)) },
		reached: func(m *move) error {
			state, err := m.target.Virsh(m.Context(), "domstate", "--reason", m.vm)
			if err == nil && !strings.Contains(state, "paused (user)") {
				err = fmt.Errorf("on the target it is %s", strings.TrimSpace(state))
			}
			return err
		},
	}
	confirmed = moment{
		name: "after Confirm", away: true,
		from:  nearly,
		nears: func(m *move) { m.freeze(m.source, lab.Agent) },
		reached: func(m *move) error {
			if has(m.source, m.vm) {
				return fmt.Errorf("%s still has its process", m.source.Name)
			}
			return nil
		},
	}
	resumed = moment{
		name: "when the guest runs on its target", away: true,
		reached: func(m *move) error {
			for _, run := range m.watch.Runs() {
				if run.Name == m.vm && run.Host == m.target.Name && run.From.After(m.begun) {
					return nil
				}
			}
			return fmt.Errorf("it does not run on %s", m.target.Name)
		},
	}
)

var moments = []moment{beginning, preparing, copying, halfway, almost, switching, finishing, replying, confirmed, resumed}

// has tells whether a host has a process of the guest.
func has(host *lab.Host, name string) bool {
	for _, guest := range host.QEMUs() {
		if guest.Name == name {
			return true
		}
	}
	return false
}

// copied is reached when this share of the guest's memory is. QEMU still tells of the last migration until the next begins.
func copied(share float64) func(*move) error {
	return func(m *move) error {
		migration, err := m.source.Migration(m.vm)
		if err == nil && (migration.Status != "active" || migration.Done() < share) {
			err = fmt.Errorf("%.0f %% is copied, the source's QEMU says %q", 100*migration.Done(), migration.Status)
		}
		return err
	}
}

// sourceSays is reached when the source's QEMU says this of the migration.
func sourceSays(status string) func(*move) error {
	return func(m *move) error {
		migration, err := m.source.Migration(m.vm)
		if err == nil && migration.Status != status {
			err = fmt.Errorf("the source's QEMU says %q", migration.Status)
		}
		return err
	}
}

// freeze makes a service stand still until the harm is done.
func (m *move) freeze(host *lab.Host, service string) {
	m.must(host.Pause(service))
	m.frozen = append(m.frozen, func() error {
		if host.Pid(service) == 0 || m.hangs == service+host.Name {
			return nil
		}
		return host.Continue(service)
	})
}

// letGo ends what holds the migration at its moment, but for what hangs.
func (m *move) letGo() {
	m.Helper()
	errs := []error{m.lab.Release(m.Context())}
	for _, thaw := range m.frozen {
		errs = append(errs, thaw())
	}
	m.frozen = nil
	m.must(errors.Join(errs...))
}

// momentLimit is how long a migration may take to a moment.
const momentLimit = 2 * time.Minute

// reaches waits for the moment, closely: most do not last.
func (m *move) reaches(at moment) {
	m.Helper()
	if at.nears != nil {
		m.awaits(fmt.Sprintf("%.0f %% is copied", 100*at.from), copied(at.from))
		at.nears(m)
	}
	m.awaits(at.name, at.reached)
}

func (m *move) awaits(what string, reached func(*move) error) {
	m.Helper()
	for deadline := time.Now().Add(momentLimit); ; time.Sleep(2 * time.Millisecond) {
		err := reached(m)
		if err == nil {
			return
		}
		m.beginsAgain()
		if time.Now().After(deadline) {
			m.Fatalf("the migration never came to the moment %s: %v", what, err)
		}
	}
}

// beginsAgain orders the migration anew if it was refused: a node whose agent has just come back may not have said yet how
// it is.
func (m *move) beginsAgain() {
	m.Helper()
	select {
	case result := <-m.result:
		m.result <- result
		switch result.Code {
		case 0: // the moment may have come with the end
		case noNodeFits:
			m.running = m.starts(m.args...)
		default:
			m.Fatalf("the migration has ended before its moment: exit code %d\n%s%s", result.Code, result.Stdout, result.Stderr)
		}
	default:
	}
}

// noNodeFits is the exit code of a command that needs a node and gets none now.
const noNodeFits = 2
