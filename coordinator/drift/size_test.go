package drift

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/shared/units"
)

func TestWhatIsOtherwiseAtTheNextStart(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	vm := model.VM{Holder: "n1", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}, RanSize: model.Size{Memory: units.GiB, VCPUs: 1}}
	want := func(what string, domain *model.Domain, want ...model.PendingChange) {
		t.Helper()
		if diff := cmp.Diff(want, AtNextStart(&vm, domain)); diff != "" {
			t.Errorf("%s (-want +is):\n%s", what, diff)
		}
	}
	want("nothing was changed", nil)
	want("libvirt rounds up", &model.Domain{State: model.DomainRunning, Memory: units.GiB - 5, VCPUs: 1})
	vm.Defer([]model.PendingChange{
		{Field: "offer", Next: "small", By: "alice", At: early}, {Field: "memory", Was: "1 GiB", Next: "4 GiB", By: "alice", At: early},
	})
	vm.Spec.Memory = 4 * units.GiB
	offer := model.PendingChange{Field: "offer", Next: "small", By: "alice", At: early}
	want("two fields", nil, model.PendingChange{Field: "memory", Was: "1 GiB", Next: "4 GiB", By: "alice", At: early}, offer)
	vm.Defer([]model.PendingChange{{Field: "memory", Was: "4 GiB", Next: "900 GiB", By: "bob", At: late}})
	vm.Spec.Memory = 900 * units.GiB
	want("one of them again, by another", nil, model.PendingChange{Field: "memory", Was: "1 GiB", Next: "900 GiB", By: "bob", At: late}, offer)
	vm.Defer([]model.PendingChange{{Field: "offer", Was: "small", By: "bob", At: late}})
	want("the other one as it was", nil, model.PendingChange{Field: "memory", Was: "1 GiB", Next: "900 GiB", By: "bob", At: late})
	want("virsh has given it a vCPU", &model.Domain{State: model.DomainRunning, Memory: units.GiB, VCPUs: 2},
		model.PendingChange{Field: "memory", Was: "1 GiB", Next: "900 GiB", By: "bob", At: late},
		model.PendingChange{Field: "vcpus", Was: "2", Next: "1"})
	vm.Holder = ""
	want("it does not run", nil)
}

// What somebody has changed of the size beside Berth is told, larger or smaller. The larger size counts on the node either way.
func TestASizeThatIsChangedBesideBerth(t *testing.T) {
	memory := func(of units.Bytes) *units.Bytes { return &of }
	of := func(gib units.Bytes, vcpus int) model.Size { return model.Size{Memory: gib * units.GiB, VCPUs: vcpus} }
	shows := func(vcpus int, balloon *units.Bytes) *model.Domain {
		return &model.Domain{Epoch: 3, State: model.DomainRunning, Memory: 4 * units.GiB, VCPUs: vcpus, Balloon: balloon}
	}
	started := of(2, 2)
	older := shows(4, memory(3*units.GiB))
	older.Epoch = 2
	off := shows(4, memory(3*units.GiB))
	off.State = model.DomainShutoff
	byAlice := func(field string) []model.PendingChange {
		return []model.PendingChange{{Field: field, Was: "2", Next: "2", By: "alice"}}
	}
	for name, c := range map[string]struct {
		domain        *model.Domain
		pending       []model.PendingChange
		fixed         bool // its memory is what its domain says
		beside        model.Size
		counts, shown model.Size
	}{
		"as it was started":         {domain: shows(2, memory(2*units.GiB)), counts: started, shown: started},
		"its node does not show it": {counts: started, shown: started},
		"of an earlier epoch":       {domain: older, counts: of(3, 4), shown: of(3, 4)},
		"it is a definition":        {domain: off, counts: started, shown: started},
		"more vCPUs":                {domain: shows(4, memory(2*units.GiB)), beside: model.Size{VCPUs: 4}, counts: of(2, 4), shown: of(2, 4)},
		"fewer vCPUs":               {domain: shows(1, memory(2*units.GiB)), beside: model.Size{VCPUs: 1}, counts: started, shown: of(2, 1)},
		"more vCPUs, by alice":      {domain: shows(4, memory(2*units.GiB)), pending: byAlice("vcpus"), counts: of(2, 4), shown: of(2, 4)},
		"more memory": {
			domain: shows(2, memory(3*units.GiB)), beside: model.Size{Memory: 3 * units.GiB}, counts: of(3, 2), shown: of(3, 2),
		},
		"less memory": {
			domain: shows(2, memory(units.GiB)), beside: model.Size{Memory: units.GiB}, counts: started, shown: of(1, 2),
		},
		"less memory, by alice":   {domain: shows(2, memory(units.GiB)), pending: byAlice("memory"), counts: started, shown: started},
		"libvirt rounds up":       {domain: shows(2, memory(2*units.GiB-5)), counts: started, shown: started},
		"its balloon is not told": {domain: shows(2, nil), counts: of(4, 2), shown: of(4, 2)},
		"its balloon leaves it less, and it counts whole": {
			domain: shows(2, memory(units.GiB)), fixed: true, counts: of(4, 2),
			shown: of(4, 2),
		},
	} {
		vm := model.VM{
			Holder: "n1", Epoch: 3, Spec: model.VMSpec{Memory: started.Memory, VCPUs: started.VCPUs}, RanSize: started, Ballooned: !c.fixed,
			Pending: c.pending,
		}
		if is := SizeBeside(&vm, c.domain); is != c.beside {
			t.Errorf("%s: beside Berth %+v, wanted %+v", name, is, c.beside)
		}
		if is := vm.SizeOn(c.domain); is != c.counts {
			t.Errorf("%s: it counts for %+v, wanted %+v", name, is, c.counts)
		}
		if is := RunsAs(&vm, c.domain); is != c.shown {
			t.Errorf("%s: it is shown as %+v, wanted %+v", name, is, c.shown)
		}
		if waits := AtNextStart(&vm, c.domain); (len(waits) > 0) != (c.shown != started) {
			t.Errorf("%s: at its next start %+v", name, waits)
		}
	}
}
