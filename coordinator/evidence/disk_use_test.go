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
	untold := func(f *model.NodeFacts) { f.Pools = nil } // its pools
	hangs := func(f *model.NodeFacts) { f.Liveness, f.DomainsKnown = model.Degraded, false }
	deaf := func(f *model.NodeFacts) { f.Liveness = model.Unreachable }
	for name, tc := range map[string]struct {
		disks  []string
		spec   model.VMSpec
		node   string
		source model.DiskSource
		state  model.DomainState
		since  func(*model.NodeFacts) // what has become of the node since it showed that
		pools  func(*model.NodeFacts) // what it tells of its pools; nil: where they are
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

		"its volume, on another node": {disks: []string{"d1"}, node: "n3", source: volume("vms", "db.qcow2"), used: true},
		"its volume, by its path":     {disks: []string{"d1"}, node: "n3", source: model.DiskSource{Path: "/srv/vms/db.qcow2"}, used: true},
		"its volume, by its path, and no pool is told": {
			disks: []string{"d1"}, node: "n3", source: model.DiskSource{Path: "/srv/vms/db.qcow2"}, pools: untold, used: true,
		},
		"another volume, by its path, and no pool is told": {
			disks: []string{"d1"}, node: "n3", source: model.DiskSource{Path: "/srv/vms/web.qcow2"}, pools: untold,
		},
		"its file, as a volume, and no pool is told": {spec: path, node: "n1", source: volume("vms", "db.qcow2"), pools: untold, used: true},
		"another file of its name, and no pool is told": {
			spec: path, node: "n1", source: model.DiskSource{Path: "/srv/other/db.qcow2"}, pools: untold,
		},
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
			if tc.pools != nil {
				tc.pools(f)
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

// What somebody has taken from a VM beside Berth is nothing that it is started with: whoever has it now is not in its way.
func TestADiskThatWasTakenAwayMayBeUsed(t *testing.T) {
	pool := model.Resource{
		Kind: model.KindPool, ID: "p1", Name: "vms", Settings: map[string]string{model.SettingScope: string(model.PoolShared)},
	}
	volume := model.DiskSource{Pool: "vms", Volume: "db.qcow2"}
	for name, tc := range map[string]struct {
		disks []string
		spec  model.VMSpec
	}{
		"a disk of Berth":        {disks: []string{"d1"}},
		"a volume of its record": {spec: model.VMSpec{Disks: []model.Disk{{Pool: volume.Pool, Volume: volume.Volume}}}},
		"a volume of a document": {spec: model.VMSpec{XML: "<domain><devices><disk type='volume'><source pool='vms' volume='db.qcow2'/>" +
			"<target dev='vdb'/></disk></devices></domain>"}},
	} {
		for _, reverted := range []bool{false, true} {
			s := running()
			s.gone()
			s.resources = []model.Resource{pool, {Kind: model.KindDisk, ID: "d1", Volume: &model.Volume{Pool: "p1", Name: "db.qcow2"}}}
			s.vm.Holder, s.vm.Disks, s.vm.Spec = "", tc.disks, tc.spec
			s.vm.Ran = []model.RanDevice{{Kind: "disk", Key: "vdb", Source: volume}}
			s.vm.Drift = &model.Drift{Reverted: reverted, Edits: []model.DeviceEdit{{Kind: "disk", Key: "vdb", Was: "vms/db.qcow2"}}}
			s.change("n3", func(f *model.NodeFacts) {
				f.Domains = []model.Domain{{
					UUID: "stray", Name: "copy", State: model.DomainRunning, Sources: []model.DiskSource{volume},
				}}
			})
			if use, used := s.survey().UsedDisk(&s.vm, ""); used != reverted {
				t.Errorf("%s, reverted %t: used %t, %+v", name, reverted, used, use)
			}
		}
	}
}
