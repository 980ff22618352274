package api

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/control/volumes"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// What has a volume is control's to change and to remove; what is only a record is not.
func TestDisksWithVolumes(t *testing.T) {
	c := newCloud(t, 1)
	lead := c.leader()
	volume := &model.Volume{Pool: "p1", Name: "berth-d1.qcow2", Format: "qcow2", Capacity: units.GiB}
	file := map[string]string{"path": "/srv/a.raw", "format": "raw", "bus": "virtio"}
	for _, r := range []model.Resource{
		{ID: "p1", Kind: model.KindPool, Name: "fast"},
		{ID: "d1", Kind: model.KindDisk, Name: "made", Volume: volume},
		{ID: "d2", Kind: model.KindDisk, Name: "taken", Volume: volume},
		{ID: "d3", Kind: model.KindDisk, Name: "file", Settings: file},
		{ID: "d4", Kind: model.KindDisk, Name: "new", Settings: map[string]string{"size": "1073741824"}},
		{ID: "i1", Kind: model.KindImage, Name: "debian", Volume: volume},
	} {
		lead.declare(r)
	}
	lead.addVM(model.VM{ID: "u1", Name: "web", Disks: []string{"d2"}})
	lead.addVM(model.VM{ID: "u2", Name: "plain", Disks: []string{"d3"}})
	lead.addVM(model.VM{ID: "u3", Name: "young", Disks: []string{"d4"}})
	var asked []string
	ask := func(what string, args ...any) { asked = append(asked, fmt.Sprintf(what, args...)) }
	lead.control.growDisk = func(r volumes.GrowDisk) (model.Resource, error) {
		ask("grow %s to %s by %s", r.Disk, r.Size, r.Caller)
		return model.Resource{ID: r.Disk, Kind: model.KindDisk, Name: "made"}, nil
	}
	lead.control.deleteDisk = func(r volumes.DeleteDisk) error { ask("delete disk %s, %s", r.Disk, r.RequestID); return nil }
	lead.control.deleteImage = func(r volumes.DeleteImage) error { ask("delete image %s, %s", r.Image, r.RequestID); return nil }
	lead.control.deleteVM = func(r lifecycle.DeleteVM) (operation.Operation, error) {
		ask("delete VM %s, keep %v, %s", r.VM, r.KeepDisks, r.RequestID)
		if r.KeepDisks {
			return operation.Operation{}, nil
		}
		return operation.Operation{ID: "o1", Kind: operation.Delete}, nil
	}
	lead.control.spread = func(customer string) (plans.Spread, error) {
		ask("spread of %s", customer)
		return plans.Spread{VMs: 9, Pods: plans.SpreadLevel{Used: 4, Total: 5, Most: 3, Least: 2}}, nil
	}
	client, ctx := lead.operator(), t.Context()

	grown, err := client.GrowDisk(ctx, connect.NewRequest(&berthv1.GrowDiskRequest{Disk: "made", SizeBytes: 2 << 30}))
	if err != nil || grown.Msg.GetDisk().GetName() != "made" {
		t.Errorf("grow: %v, %v", grown, err)
	}
	for _, size := range []int64{0, -5, 1<<50 + 1} {
		_, err := client.GrowDisk(ctx, connect.NewRequest(&berthv1.GrowDiskRequest{Disk: "made", SizeBytes: size}))
		wantRefusal(t, err, rpc.Invalid, "disk/made")
	}
	_, err = client.GrowDisk(ctx, connect.NewRequest(&berthv1.GrowDiskRequest{Disk: "none", SizeBytes: 5}))
	wantRefusal(t, err, rpc.NotFound, "disk/none")

	remove := func(kind, name string) error {
		_, err := client.DeleteResource(ctx, connect.NewRequest(&berthv1.DeleteResourceRequest{Kind: kind, Name: name, RequestId: "r-" + name}))
		return err
	}
	c.check(remove("disk", "made"))
	c.check(remove("image", "debian"))
	wantRefusal(t, remove("disk", "taken"), rpc.Conflict, "disk/taken")
	wantRefusal(t, remove("disk", "file"), rpc.Conflict, "disk/file")
	wantRefusal(t, remove("disk", "none"), rpc.NotFound, "disk/none")

	for _, r := range []*berthv1.DeleteVMRequest{
		{Vm: "web", RequestId: "r1"}, {Vm: "young", KeepDisks: true, RequestId: "r2"}, {Vm: "plain", RequestId: "r3"},
	} {
		answer, err := client.DeleteVM(ctx, connect.NewRequest(r))
		if err != nil || (answer.Msg.GetOperation().GetId() == "o1") != (r.GetVm() == "web") {
			t.Errorf("delete %s: %v, %v", r.GetVm(), answer, err)
		}
	}
	c.check(remove("disk", "file")) // its VM is gone
	lead.update(operation.Operation{ID: "o2", Kind: operation.Delete, VM: "u9", VMName: "gone", Request: "r9", Phase: operation.Ended})
	again, err := client.DeleteVM(ctx, connect.NewRequest(&berthv1.DeleteVMRequest{Vm: "gone", RequestId: "r9"}))
	if err != nil || again.Msg.GetOperation().GetId() != "o2" {
		t.Errorf("the same request when the VM has gone: %v, %v", again, err)
	}
	lead.addNode("n1", "hv1")
	lead.declare(model.Resource{ID: "d5", Kind: model.KindDisk, Name: "busy", Volume: volume})
	lead.addVM(model.VM{ID: "u4", Name: "runs", Holder: "n1", Disks: []string{"d5"}})
	_, err = client.DeleteVM(ctx, connect.NewRequest(&berthv1.DeleteVMRequest{Vm: "runs"}))
	wantRefusal(t, err, rpc.Conflict, "vm/runs")

	lead.declare(model.Resource{ID: "c1", Kind: model.KindCustomer, Name: "acme"})
	spread, err := client.Spread(ctx, connect.NewRequest(&berthv1.SpreadRequest{Customer: "acme"}))
	if err != nil || spread.Msg.GetCustomer() != "acme" || spread.Msg.GetVms() != 9 || spread.Msg.GetPods().GetUsed() != 4 {
		t.Errorf("spread: %v, %v", spread, err)
	}
	_, err = client.Spread(ctx, connect.NewRequest(&berthv1.SpreadRequest{Customer: "nobody"}))
	wantRefusal(t, err, rpc.NotFound, "customer/nobody")

	want := "[grow d1 to 2 GiB by operator/alice delete disk d1, r-made delete image i1, r-debian delete VM u1, keep false, r1 " +
		"delete VM u3, keep true, r2 spread of c1]"
	if got := fmt.Sprint(asked); got != want {
		t.Errorf("control was asked for\n%s, want\n%s", got, want)
	}
}
