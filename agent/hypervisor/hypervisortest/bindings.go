package hypervisortest

import (
	"slices"
	"strings"
	"testing"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// bindings: what libvirt would not migrate is told before anybody tries, in the list and when the domain is looked up.
func bindings(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	iso := find(t, bench.Source, bench.Pool, bench.empty(t, bench.Source, bench.Pool)).Path
	g, free := newGuest(t, bench), newGuest(t, bench)
	drive := "<devices><disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='" + iso + "'/>" +
		"<target dev='hdc' bus='ide'/><readonly/></disk>"
	g.xml = strings.Replace(g.xml, "<devices>", drive, 1)
	g.start(t, hv)
	free.start(t, hv)
	want := map[string][]domxml.Binding{
		g.id.UUID:    {{Kind: domxml.MediaBinding, What: "cdrom", Name: "hdc", Source: domxml.Source{Path: iso}}},
		free.id.UUID: {},
	}
	all, err := hv.Domains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for uuid, bindings := range want {
		at := slices.IndexFunc(all, func(d hypervisor.Domain) bool { return d.UUID == uuid })
		if at < 0 || all[at].Bindings == nil || !slices.Equal(all[at].Bindings, bindings) {
			t.Errorf("the list has %+v, want %+v", all, bindings)
		}
		shown, err := hv.Lookup(t.Context(), uuid)
		if err != nil || shown.Bindings == nil || !slices.Equal(shown.Bindings, bindings) {
			t.Errorf("it shows %+v, want %+v: %v", shown, bindings, err)
		}
	}
	g.stop(t, hv)
	free.stop(t, hv)
}
