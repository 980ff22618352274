package hypervisor

import (
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// until asks every few milliseconds, for a minute.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to this: %s", what)
		}
	}
}

// libvirt keeps a domain that has left until the call ends that has moved it, and that call waits for a target that has gone
// silent. Meanwhile the node's domains are known, and so is what this one has come to.
func TestADomainThatHasLeftIsListedUntilLibvirtForgetsIt(t *testing.T) {
	l, bench := raise(t)
	source, target := l.Hosts[0], l.Hosts[1]
	hv := bench.Source.Hypervisor
	id := domxml.Identity{
		UUID: "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0004", Name: "leaver", Mark: domxml.Mark{Epoch: 1, Operation: "op-1", Node: "node1"},
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	xml, err := domxml.Render(
		domxml.Spec{MemoryBytes: 64 * mebibyte, VCPUs: 1}, id, domxml.Machine{DomainType: "qemu", Arch: "x86_64", Type: "pc"},
	)
	must(err)
	must(hv.Start(t.Context(), xml))
	there := id
	there.Mark.Epoch = 2
	text, err := hv.XML(t.Context(), id.UUID)
	must(err)
	text, err = domxml.WithIdentity(text, there)
	must(err)
	moved := make(chan error, 1)
	go func() {
		moved <- hv.Migrate(t.Context(), id.UUID, hypervisor.MigrateOptions{
			TargetURI: bench.Target.URI, DomainXML: text, BandwidthBPS: mebibyte, Paused: true,
		})
	}()
	until(t, "its memory is copied", func() bool {
		migration, err := source.Migration(id.Name)
		return err == nil && migration.Status == "active" && migration.Sent > 0
	})
	// The target does what Finish asks for. When the source hears of it, it hears nothing more.
	must(l.HoldAnswers(t.Context(), target, source))
	_, err = source.Virsh(t.Context(), "migrate-setspeed", id.Name, "64")
	must(err)
	until(t, "the target has it", func() bool {
		state, err := target.Virsh(t.Context(), "domstate", "--reason", id.Name)
		return err == nil && strings.Contains(state, "paused (user)")
	})
	must(l.Cut(t.Context(), source.Machine, target.Machine))
	must(l.Release(t.Context()))
	until(t, "it has left", func() bool {
		all, err := hv.Domains(t.Context())
		must(err)
		if len(all) != 1 {
			t.Fatalf("libvirt has forgotten it: %+v", all)
		}
		return all[0].State == hypervisor.Shutoff
	})
	one, err := hv.Lookup(t.Context(), id.UUID)
	must(err)
	if one.State != hypervisor.Shutoff || one.Reason != "migrated" || one.Persistent || !one.Managed || one.Epoch != 1 {
		t.Errorf("it is shown as %+v", one)
	}
	must(l.Heal(t.Context()))
	if err := <-moved; err != nil {
		t.Errorf("the migration has ended with: %v", err)
	}
	all, err := hv.Domains(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("in the end there is %+v, %v", all, err)
	}
}
