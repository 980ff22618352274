package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/integration/lab"
)

// FAULTS.md, W16. A host answers, and its libvirtd hangs. Where the cluster wants it, the host is fenced after that time, and a guest
// with ha runs elsewhere; until then nothing happens to it.
func TestAHostWhoseLibvirtdHangsIsFencedWhereThatIsWanted(t *testing.T) {
	s := begin(t)
	strip := s.fenceable()
	host := s.lab.Hosts[0]
	s.does("cluster", "set", "default", "--fence-sick-after", model.MinFenceSickAfter.String())
	s.Cleanup(func() {
		s.must(ignore(s.lab.Berth(s.background(), "cluster", "set", "default", "--fence-sick-after", "never")))
	})
	s.does("vm", "start", "kept", "--memory", "64M", "--node", host.Name, "--ha")
	s.must(host.Pause(lab.Libvirtd))
	hung := time.Now()
	s.within(2*time.Minute, "the status tells of the host", func() error {
		if status := s.does("status"); !strings.Contains(status, host.Name+" is degraded") {
			return fmt.Errorf("it does not say that %s is degraded:\n%s", host.Name, status)
		}
		return nil
	})
	s.within(model.MinFenceSickAfter+4*time.Minute, "the guest runs elsewhere", func() error {
		where, err := s.lab.HostOf("kept")
		if err == nil && (where == host || s.watch.Running("kept") != 1) {
			err = fmt.Errorf("it runs on %s", where.Name)
		}
		return err
	})
	off := strip.Off(host)
	if off.IsZero() || off.Sub(hung) < model.MinFenceSickAfter {
		t.Errorf("the host hung from %s and was switched off at %s", hung.Format(time.TimeOnly), off.Format(time.TimeOnly))
	}
	s.must(s.mend(s.Context()))
	where, err := s.lab.HostOf("kept")
	s.must(err)
	s.runsOnce("kept", where)
}
