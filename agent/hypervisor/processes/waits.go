package processes

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"berth/agent/psi"
)

// waitsEvery is how old the delay of a guest's vCPUs may be, and the pressure on it: they take a file a vCPU, and three.
const waitsEvery = 9 * time.Second

// Waits are what a guest has waited for, as of some seconds ago. The zero value was not read yet.
type Waits struct {
	At       time.Time
	Delay    *time.Duration // of all vCPUs together; it grows. Nil where it could not be read
	Pressure *psi.All       // nil also where nothing tells: see package psi
}

// Read reads them if it is time.
func (w *Waits) Read(p *Process, vcpus int, now time.Time) {
	if now.Sub(w.At) < waitsEvery {
		return
	}
	*w = Waits{At: now}
	if delay, err := p.Delay(vcpus); err == nil {
		w.Delay = &delay
	}
	if pressure, err := p.Pressure(); err == nil {
		w.Pressure = pressure
	}
}

// Groups is where the control groups of cgroup v2 are; empty: there are none. That does not change while a host is up.
var Groups = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return psi.Mount(string(text))
})

// Pressure is what the guest waits for, all of its threads together. It is nil without an error where nothing tells: see package psi.
func (p *Process) Pressure() (*psi.All, error) { return p.pressure(Groups()) }

func (p *Process) pressure(groups string) (*psi.All, error) {
	if groups == "" {
		return nil, nil
	}
	if p.group == "" { // libvirt makes the group when the process is there already
		text, err := os.ReadFile(filepath.Join(filepath.Dir(p.tasks), "cgroup"))
		if err != nil {
			return nil, err
		}
		group := psi.GuestGroup(string(text))
		if group == "" {
			return nil, nil
		}
		p.group = filepath.Join(groups, group)
	}
	return psi.OfGroup(p.group)
}
