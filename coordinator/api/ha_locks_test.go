package api

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// FAULTS.md, W5. A disk of a VM with ha does not come to lie where a second copy was seen not to be stopped, unless somebody wants that.
func TestHANeedsLocksOrAWord(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	type pairs = map[string]string
	d.add("cluster", "prod", nil, nil)
	d.add("pool", "nfs", pairs{"cluster": "prod"}, pairs{"scope": "shared", "source": "vms"})
	d.add("pool", "fast", pairs{"cluster": "prod"}, pairs{"scope": "local"})
	nfs := d.id(model.KindPool, "nfs")
	for name, pool := range map[string]string{"web-root": nfs, "db-root": d.id(model.KindPool, "fast")} {
		d.m.declare(model.Resource{
			ID: "disk-" + name, Kind: model.KindDisk, Name: name,
			Volume: &model.Volume{Pool: pool, Nodes: []string{"n1"}, Name: name, Format: "qcow2"},
		})
	}
	size := model.VMSpec{Memory: units.GiB, VCPUs: 1}
	d.m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: size, Disks: []string{"disk-web-root"}})
	d.m.addVM(model.VM{ID: "v2", Name: "db", Desired: model.Stopped, Spec: size, Disks: []string{"disk-db-root"}})
	d.m.addVM(model.VM{ID: "v3", Name: "old", Desired: model.Stopped, Spec: size, HA: true})
	found := func(verdict evidence.LockVerdict, why string) {
		d.m.control.locks = map[string]evidence.Locks{"nfs": {Verdict: verdict, Why: why, Tried: 2, Nodes: 2, At: time.Now()}}
	}
	available := func(vm string, is bool) error {
		_, err := d.client.ChangeVM(t.Context(), connect.NewRequest(&berthv1.ChangeVMRequest{Vm: vm, Change: &berthv1.VMChange{Ha: &is}}))
		return err
	}
	refused := func(err error, texts ...string) {
		t.Helper()
		wantRefusal(t, err, rpc.Conflict, "")
		for _, text := range texts {
			if said := err.Error() + "; " + rpc.Detail(err).GetNextStep(); !strings.Contains(said, text) {
				t.Errorf("%q is not in %q", text, said)
			}
		}
	}
	status := func() string {
		answer, err := d.client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(answer.Msg.GetProblems(), "\n")
	}

	found(evidence.LocksUnknown, "0 of 2 nodes have tried it")
	for _, vm := range []string{"web", "db"} {
		if err := available(vm, true); err != nil {
			t.Fatalf("as long as nothing is known: %s: %v", vm, err)
		}
	}
	if problems := status(); strings.Contains(problems, "nfs") {
		t.Errorf("nothing is known, and told is %s", problems)
	}
	found(evidence.LocksStay, "hv2 did not see that hv1 had locked a file there")
	if problems := status(); !strings.Contains(problems, "no lock in pool nfs would stop a second copy of VMs with ha (web): "+
		"hv2 did not see that hv1 had locked a file there: let locks reach the server") {
		t.Errorf("told is %s", problems)
	}
	if err := available("web", false); err != nil {
		t.Fatal(err)
	}
	if problems := status(); strings.Contains(problems, "nfs") {
		t.Errorf("without VMs with ha told is %s", problems)
	}
	refused(available("web", true), `VM "web" with ha has a disk in pool nfs`, "hv2 did not see",
		"'berth pool set nfs --ha-without-lock true'")
	started := 0
	d.m.control.start = func(lifecycle.StartVM) (lifecycle.Started, error) { started++; return lifecycle.Started{}, nil }
	disk := &berthv1.Disk{Pool: "vms", Volume: "a.qcow2", Format: "qcow2", Bus: "virtio"}
	made := &berthv1.NewVM{
		Ha: true, Spec: &berthv1.VMSpec{MemoryBytes: int64(units.GiB), Vcpus: 1, Disks: []*berthv1.Disk{disk}},
	}
	_, err := d.client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{Name: "new", Vm: made}))
	refused(err, `VM "new" with ha has a disk in pool nfs`)
	made.Ha = false
	if _, err = d.client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{Name: "new", Vm: made})); err != nil || started != 1 {
		t.Errorf("without ha: %v, %d", err, started)
	}

	found(evidence.NotShared, "hv2 did not see a file that hv1 had made there")
	refused(available("web", true), "declare pool nfs with scope local")
	if problems := status(); !strings.Contains(problems,
		"pool nfs is declared as shared, and hv2 did not see a file that hv1 had made there: it is tried again") {
		t.Errorf("told is %s", problems)
	}
	d.m.control.locks = map[string]evidence.Locks{"nfs": {
		Verdict: evidence.NotShared, Why: "hv2 did not see a file that hv1 had made there", Sides: [][]string{{"hv1", "hv3"}, {"hv2"}},
	}}
	if problems := status(); !strings.Contains(problems,
		"VMs with disks there are moved and started on their side alone, which is hv1, hv3 or hv2:") {
		t.Errorf("told is %s", problems)
	}
	found(evidence.LocksStay, "hv2 did not see that hv1 had locked a file there")
	consent := &berthv1.ChangeResourceRequest{Kind: "pool", Name: "nfs", Settings: pairs{model.SettingHAWithoutLock: "true"}}
	if _, err := d.change(consent); err != nil {
		t.Fatal(err)
	}
	if err := available("web", true); err != nil {
		t.Errorf("with somebody's consent: %v", err)
	}
	if problems := status(); strings.Contains(problems, "nfs") {
		t.Errorf("with somebody's consent told is %s", problems)
	}
	pools, err := d.client.ListPools(t.Context(), connect.NewRequest(&berthv1.ListPoolsRequest{Pool: "nfs"}))
	if err != nil || len(pools.Msg.GetPools()) != 1 {
		t.Fatal(pools, err)
	}
	if pool := pools.Msg.GetPools()[0]; !pool.GetHaWithoutLock() || pool.GetLocks().GetTried() != 2 ||
		pool.GetLocks().GetVerdict() != berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_STAY {
		t.Errorf("shown is %v", pool)
	}
}

// A host that has just come back has not told its pools yet. Who asks then is not told to move disks that are where they should be.
func TestHAOfAVMWhoseNodeHasNotToldItsPools(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}, Bound: "n1"})
	refused := func(texts ...string) {
		t.Helper()
		_, err := m.operator().ChangeVM(t.Context(), connect.NewRequest(&berthv1.ChangeVMRequest{
			Vm: "web", Change: &berthv1.VMChange{Ha: new(true)},
		}))
		wantRefusal(t, err, rpc.Conflict, "vm/web")
		for _, text := range texts {
			if said := err.Error() + "; " + rpc.Detail(err).GetNextStep(); !strings.Contains(said, text) {
				t.Errorf("%q is not in %q", text, said)
			}
		}
	}
	refused("only hv1 is known to have", "berth pool add") // nobody hears hv1
	m.reportIdle("n1", 0)                                  // its libvirt cannot be read yet
	refused("hv1 has not told yet which storage pools it has", "try again in half a minute", "berth node show hv1")
}
