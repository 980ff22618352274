package processes

import (
	"os"
	"path/filepath"
	"testing"

	"berth/agent/psi"
)

// A guest's pressure is that of its own group. What it shares with others is not its own, and libvirt makes the group late.
func TestPressureOfAGuest(t *testing.T) {
	process, groups := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const slice, scope = "/machine.slice", `/machine-qemu\x2d1\x2dweb.scope`
	for _, name := range []string{"cpu", "memory", "io"} {
		write(groups+slice+"/"+name+".pressure", "some avg10=99.00 avg60=0 avg300=0 total=1\n")
		write(groups+slice+scope+"/"+name+".pressure", "some avg10=7.50 avg60=0 avg300=0 total=1\nfull avg10=2.00 avg60=0 avg300=0 total=1\n")
	}
	p := &Process{tasks: process + "/task"}
	write(process+"/cgroup", "0::"+slice+"\n")
	if got, err := p.pressure(groups); got != nil || err != nil {
		t.Errorf("before it has a group: %v, %v", got, err)
	}
	write(process+"/cgroup", "0::"+slice+scope+"/libvirt/emulator\n")
	one := psi.Pressure{SomeAvg10: 7.5, FullAvg10: 2}
	if got, err := p.pressure(groups); err != nil || got == nil || *got != (psi.All{CPU: one, Memory: one, IO: one}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := p.pressure(""); got != nil || err != nil {
		t.Errorf("where there is no cgroup v2: %v, %v", got, err)
	}
	if err := os.RemoveAll(groups + slice); err != nil {
		t.Fatal(err)
	}
	if got, err := p.pressure(groups); got != nil || err != nil {
		t.Errorf("when the group is gone: %v, %v", got, err)
	}
	if got, err := (&Process{tasks: process + "/gone/task"}).pressure(groups); err == nil {
		t.Errorf("of a process that is gone: %v", got)
	}
}
