package evidence

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// FAULTS.md, W8. Two that write to one disk destroy it: a VM is not started while another domain has its disk, under whatever name.
func TestADiskThatAnotherDomainWritesTo(t *testing.T) {
	shared := model.Resource{
		Kind: model.KindPool, ID: "p1", Name: "vms", Settings: map[string]string{model.SettingScope: string(model.PoolShared)},
	}
	fast := model.Resource{Kind: model.KindPool, ID: "p2", Name: "fast"}
	onShared := model.Resource{Kind: model.KindDisk, ID: "d1", Volume: &model.Volume{Pool: "p1", Name: "db.qcow2"}}
	onFast := model.Resource{Kind: model.KindDisk, ID: "d2", Volume: &model.Volume{Pool: "p2", Nodes: []string{"n1"}, Name: "db.qcow2"}}
	path := model.VMSpec{Disks: []model.Disk{{Path: "/srv/vms/db.qcow2"}}}
	volume := func(pool, name string) model.DiskSource { return model.DiskSource{Pool: pool, Volume: name} }
	on := []string{"d1"}
	hangs := func(f *model.NodeFacts) { f.Liveness, f.DomainsKnown = model.Degraded, false }
	deaf := func(f *model.NodeFacts) { f.Liveness = model.Unreachable }
	for name, tc := range map[string]struct {
		disks  []string
		spec   model.VMSpec
		node   string
		source model.DiskSource
		state  model.DomainState
		since  func(*model.NodeFacts) // what has become of the node since it showed that
		failed time.Duration          // how long ago the start failed that the domain is of; 0: it is of none
		off    bool
		stray  string // UUID of the domain; empty: one of nobody
		used   bool
	}{
		"its volume, and libvirt hangs since": {disks: on, node: "n3", source: volume("vms", "db.qcow2"), since: hangs, used: true},
		"its volume, and nobody hears it now": {disks: on, node: "n3", source: volume("vms", "db.qcow2"), since: deaf, used: true},
		"its volume, and the node is off now": {disks: on, node: "n3", source: volume("vms", "db.qcow2"), since: deaf, off: true},
		"its volume, and that VM was stopped": {disks: on, node: "n3", source: volume("vms", "db.qcow2"), since: deaf, stray: "stopped"},
		"its volume, and that VM may run":     {disks: on, node: "n3", source: volume("vms", "db.qcow2"), since: deaf, stray: "runs", used: true},

		"its volume, of a start that has just failed": {
			disks: on, node: "n3", source: volume("vms", "db.qcow2"), failed: time.Second, used: true,
		},
		"its volume, of a start that failed before": {disks: on, node: "n3", source: volume("vms", "db.qcow2"), failed: time.Hour, used: true},
		"its volume, of another VM whose start has just failed": {
			disks: on, node: "n3", source: volume("vms", "db.qcow2"), failed: time.Second, stray: "stopped", used: true,
		},
		"its volume, of a failed start, and nobody hears it now": {
			disks: on, node: "n3", source: volume("vms", "db.qcow2"), failed: time.Second, since: deaf, used: true,
		},

		"its volume, on another node":       {disks: []string{"d1"}, node: "n3", source: volume("vms", "db.qcow2"), used: true},
		"its volume, by its path":           {disks: []string{"d1"}, node: "n3", source: model.DiskSource{Path: "/srv/vms/db.qcow2"}, used: true},
		"another volume":                    {disks: []string{"d1"}, node: "n3", source: volume("vms", "web.qcow2")},
		"its volume, of what is off":        {disks: []string{"d1"}, node: "n3", source: volume("vms", "db.qcow2"), state: "shutoff"},
		"its volume, of what is paused":     {disks: []string{"d1"}, node: "n3", source: volume("vms", "db.qcow2"), state: "paused", used: true},
		"its local volume, on its node":     {disks: []string{"d2"}, node: "n1", source: volume("fast", "db.qcow2"), used: true},
		"one of that name, on another node": {disks: []string{"d2"}, node: "n3", source: volume("fast", "db.qcow2")},
		"its file":                          {spec: path, node: "n1", source: model.DiskSource{Path: "/srv/vms/../vms/db.qcow2"}, used: true},
		"its file, as a volume":             {spec: path, node: "n1", source: model.DiskSource{Pool: "vms", Volume: "db.qcow2"}, used: true},
		"a file of its XML": {
			spec: model.VMSpec{XML: "<domain><devices><disk><source file='/x.img'/><target dev='vda'/></disk></devices></domain>"},
			node: "n1", source: model.DiskSource{Path: "/x.img"}, used: true,
		},
		"a medium that it only reads": {
			spec: model.VMSpec{Disks: []model.Disk{{Path: "/x.iso", ReadOnly: true}}}, node: "n1", source: model.DiskSource{Path: "/x.iso"},
		},
	} {
		s := running()
		s.gone()
		s.resources = []model.Resource{shared, fast, onShared, onFast}
		s.vm.Holder, s.vm.Disks, s.vm.Spec = "", tc.disks, tc.spec
		if tc.state == "" {
			tc.state = model.DomainRunning
		}
		s.change(tc.node, func(f *model.NodeFacts) {
			f.Pools = []model.PoolFacts{{Name: "vms", Path: "/srv/vms"}}
			f.Domains = []model.Domain{{
				UUID: cmp.Or(tc.stray, "stray"), Name: "copy", State: tc.state, Sources: []model.DiskSource{tc.source},
			}}
			f.Domains[0].Managed, f.Domains[0].Operation = tc.failed > 0, "o7"
			if tc.since != nil {
				tc.since(f)
			}
		})
		s.others = []model.VM{{ID: "stopped", Name: "stopped", LastNode: tc.node}, {ID: "runs", Name: "runs", Holder: tc.node}}
		if tc.off {
			s.fenced(tc.node)
		}
		s.history = append(s.history, operation.Operation{
			ID: "o7", Kind: operation.Start, VM: cmp.Or(tc.stray, "stray"), Phase: operation.Ended, Result: operation.Failed,
			EndedAt: s.at.Add(-tc.failed),
		})
		use, used := s.survey().UsedDisk(&s.vm, "")
		if used != tc.used {
			t.Errorf("%s: %t, %+v", name, used, use)
		}
		if text := use.Text("db"); used && !strings.Contains(text, `domain "copy" on node`+tc.node[1:]+" writes to disk ") {
			t.Errorf("%s: %s", name, text)
		}
		goes := tc.failed == time.Second && tc.since == nil
		if (use.Failed != nil) != goes || goes && (!use.Failed.GoesSoon(s.at) || use.Failed.GoesSoon(s.at.Add(time.Minute))) ||
			strings.Contains(use.Text("db"), "(operation o7)") != goes ||
			used && strings.Contains(use.Next(), "virsh shutdown") == (goes || tc.since != nil) {
			t.Errorf("%s: %q, next %q, %+v", name, use.Text("db"), use.Next(), use.Failed)
		}
		if next := use.Next(); used && strings.Contains(next, "berth node fence node3") != (tc.since != nil) {
			t.Errorf("%s: %s", name, next)
		}
	}
}
