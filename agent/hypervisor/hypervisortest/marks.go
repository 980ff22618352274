package hypervisortest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

func suspend(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	events := listen(t, hv, g.id.UUID)
	g.start(t, hv)
	for range 2 { // the second time there is nothing to do
		if err := hv.Suspend(t.Context(), g.id.UUID, 1); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, hv, g.id.UUID, "paused", inState(hypervisor.Paused))
	events.await(t, "suspended", "")
	if err := hv.Resume(t.Context(), g.id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "running", inState(hypervisor.Running))
}

// marked waits until the domain shows a mark, both by itself and among all.
func marked(t *testing.T, hv hypervisor.Hypervisor, uuid string, managed bool, mark domxml.Mark) {
	t.Helper()
	is := func(d hypervisor.Domain) bool {
		return d.Managed == managed && d.Epoch == mark.Epoch && d.OperationID == mark.Operation
	}
	eventually(t, hv, uuid, "marked as wanted", func(d hypervisor.Domain, err error) bool {
		if err != nil || !is(d) {
			return false
		}
		all, err := hv.Domains(t.Context())
		for _, one := range all {
			if err == nil && one.UUID == uuid {
				return is(one)
			}
		}
		return false
	})
}

// A mark is changed while the guest runs: in its live document and, if it has one, in its definition.
func marks(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	events := listen(t, hv, g.id.UUID)
	g.start(t, hv)
	marked(t, hv, g.id.UUID, true, g.id.Mark)
	if err := hv.Unmark(t.Context(), g.id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	marked(t, hv, g.id.UUID, false, domxml.Mark{})
	wantErr(t, "Destroy of what is not Berth's", hv.Destroy(t.Context(), g.id.UUID, 1), hypervisor.ErrOtherEpoch)
	if err := hv.Define(t.Context(), g.xml); err != nil {
		t.Fatal(err)
	}
	next := domxml.Mark{Epoch: 7, Operation: `op <"7">`, Node: "n & m"}
	if err := hv.Mark(t.Context(), g.id.UUID, next); err != nil {
		t.Fatal(err)
	}
	marked(t, hv, g.id.UUID, true, next)
	events.await(t, hypervisor.EventMetadata, "")
	live, err := hv.XML(t.Context(), g.id.UUID)
	if mark, ok := domxml.Metadata(live); err != nil || !ok || mark != next {
		t.Errorf("its live document has %+v, %t, %v", mark, ok, err)
	}
	if err := hv.Destroy(t.Context(), g.id.UUID, 7); err != nil {
		t.Fatal(err)
	}
	marked(t, hv, g.id.UUID, true, next) // what is left of it is its definition
	// Of one that is off the definition alone is marked.
	next.Epoch = 8
	if err := hv.Mark(t.Context(), g.id.UUID, next); err != nil {
		t.Fatal(err)
	}
	marked(t, hv, g.id.UUID, true, next)
	if err := hv.Undefine(t.Context(), g.id.UUID, 8); err != nil {
		t.Fatal(err)
	}
}

func describe(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	text, err := hv.Definition(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	info, err := domxml.Parse(text)
	if err != nil || info.UUID != g.id.UUID || info.Name != g.id.Name || info.MemoryBytes != 64<<20 || info.VCPUs != 1 {
		t.Errorf("got %+v, %v of %s", info, err, text)
	}
	if err := hv.Destroy(t.Context(), g.id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "absent", isAbsent)
	if err := hv.Start(t.Context(), text); err != nil {
		t.Errorf("it cannot be started with what it was described as: %v", err)
	}
	secret := newGuest(t, bench)
	secret.xml = strings.Replace(secret.xml, "</devices>", "<graphics type='vnc' autoport='yes' passwd='x1y2z3'/></devices>", 1)
	secret.start(t, hv)
	_, err = hv.Definition(t.Context(), secret.id.UUID)
	wantErr(t, "a domain with a password", err, hypervisor.ErrUnsupported)
	if err != nil && strings.Contains(err.Error(), "x1y2z3") {
		t.Error("the error tells the password")
	}
}

func definitions(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	if err := hv.Define(t.Context(), g.xml); err != nil {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "defined while it runs", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.Persistent && d.State == hypervisor.Running
	})
	wantErr(t, "Undefine while it runs", hv.Undefine(t.Context(), g.id.UUID, 1), hypervisor.ErrInvalidState)
	if err := hv.Destroy(t.Context(), g.id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "off", inState(hypervisor.Shutoff))
	wantErr(t, "Start over a definition", hv.Start(t.Context(), g.xml), hypervisor.ErrExists)
	if err := hv.Undefine(t.Context(), g.id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "absent", isAbsent)
	if err := hv.Define(t.Context(), g.xml); err != nil {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "defined", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.Persistent && d.State == hypervisor.Shutoff && d.Managed && d.Epoch == 1
	})
	wantErr(t, "a definition that is none", hv.Define(t.Context(), "<domain"), hypervisor.ErrInvalidXML)
}

// Two definitions would invite two starts: there is one, where the guest is, and it has the mark that the guest has there.
func migrateDefinition(t *testing.T, bench Bench) {
	source, target, g := bench.Source.Hypervisor, bench.Target.Hypervisor, newGuest(t, bench)
	g.start(t, source)
	if err := source.Define(t.Context(), g.xml); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := source.Migrate(ctx, g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: g.moved(t, source, 2), Paused: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := source.Lookup(t.Context(), g.id.UUID); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("the source has it still: %+v, %v", left, err)
	}
	if err := target.Resume(t.Context(), g.id.UUID, 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, target, g.id.UUID, "running and defined", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.Persistent && d.State == hypervisor.Running && d.Epoch == 2
	})
	if err := target.Destroy(t.Context(), g.id.UUID, 2); err != nil {
		t.Fatal(err)
	}
	marked(t, target, g.id.UUID, true, domxml.Mark{Epoch: 2, Operation: "op-migrate", Node: "target"})
}
