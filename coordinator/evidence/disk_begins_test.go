package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// FAULTS.md, W8. Of two VMs that name one disk and are started at once no node shows anything: who starts first keeps the other out, until
// its node shows what it runs.
func TestADiskOfAVMThatStarts(t *testing.T) {
	named := func(path, pool, volume string) model.VMSpec {
		return model.VMSpec{Disks: []model.Disk{{Path: path, Pool: pool, Volume: volume}}}
	}
	file, volume := named("/srv/vms/db.qcow2", "", ""), named("", "vms", "db.qcow2")
	shown := func(state model.DomainState) func(*model.NodeFacts) {
		return func(f *model.NodeFacts) {
			f.Domains = []model.Domain{{UUID: "other", Name: "other", State: state}}
		}
	}
	deaf := func(f *model.NodeFacts) { f.Liveness, f.DomainsKnown = model.Unreachable, false }
	for name, tc := range map[string]struct {
		own, others model.VMSpec
		kind        operation.Kind // of what is done with the other one; empty: nothing
		holder      string
		started     time.Duration // before the node told what it runs; negative: after it did
		node        func(*model.NodeFacts)
		used        bool
	}{
		"one that starts":                          {own: file, others: file, kind: operation.Start, used: true},
		"one that starts, and names a volume":      {own: file, others: volume, kind: operation.Start, used: true},
		"one that starts, and names a path":        {own: volume, others: file, kind: operation.Start, used: true},
		"one that starts with another disk":        {own: file, others: named("/srv/vms/web.qcow2", "", ""), kind: operation.Start},
		"one that is stopped":                      {own: file, others: file},
		"one that is deleted":                      {own: file, others: file, kind: operation.Delete},
		"one that has started, and is not listed":  {own: file, others: file, holder: "n3", started: -time.Second, used: true},
		"one that has started, and did not stay":   {own: file, others: file, holder: "n3", started: time.Minute},
		"one that has started, and lost that disk": {own: file, others: file, holder: "n3", started: -time.Second, node: shown("running")},
		"one that its node shows from before": {
			own: file, others: file, holder: "n3", started: -time.Second, node: shown("shutoff"), used: true,
		},
		"one of a node that nobody hears": {own: file, others: file, holder: "n3", started: time.Minute, node: deaf, used: true},
	} {
		s := running()
		s.gone()
		s.vm.Holder, s.vm.Disks, s.vm.Spec = "", nil, tc.own
		s.resources = []model.Resource{{
			Kind: model.KindPool, ID: "p1", Name: "vms", Settings: map[string]string{model.SettingScope: string(model.PoolShared)},
		}}
		told := s.at.Add(-time.Second)
		for _, id := range []string{"n1", "n3"} {
			s.change(id, func(f *model.NodeFacts) {
				f.Domains, f.InventoryAt = nil, told
				f.PoolsKnown, f.Pools = true, []model.PoolFacts{{Name: "vms", Path: "/srv/vms"}}
				if tc.node != nil && id == "n3" {
					tc.node(f)
				}
			})
		}
		other := model.VM{
			ID: "other", Name: "other", LastNode: "n3", Holder: tc.holder, Spec: tc.others, StartedAt: told.Add(-tc.started), Epoch: 1,
		}
		if tc.kind != "" {
			other.Operation = "o7"
			s.history = append(s.history, operation.Operation{
				ID: "o7", Kind: tc.kind, VM: "other", VMName: "other", Target: "n3", Phase: operation.Dispatched,
			})
		}
		s.others = []model.VM{other}
		use, used := s.survey().UsedDisk(&s.vm, "n1")
		if used != tc.used || use.Begins != tc.used {
			t.Errorf("%s: %t, %+v", name, used, use)
		}
		if text := use.Text("db") + ": " + use.Next(); used && (!strings.Contains(text, `VM "other", which starts on node3, writes to disk`) ||
			!strings.Contains(text, "berth vm stop other")) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
