package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// change is one of a guest that runs, through Berth and with virsh.
type change struct {
	what           string
	request        func() *berthv1.ActOnVMsRequest
	virsh          string
	berth, libvirt report.Figures
}

// measureChanges compares changes of a guest that runs through Berth with libvirt's own calls, on twins on one host.
func measureChanges(ctx context.Context, b *bench) (_ []report.Row, err error) {
	r, err := testbed.RaiseLab(ctx, b.programs, lab.Options{Name: "change", Hosts: 1, Coordinators: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Down()) }()
	host := r.Hosts[0]
	const vm, twin = "changed", "changed-twin"
	if err := raiseTwins(ctx, r, host, vm, twin); err != nil {
		return nil, err
	}
	disk, twinDisk := lab.SharedDir+"/"+vm+".img", lab.SharedDir+"/"+twin+".img"
	for _, path := range []string{disk, twinDisk} {
		if err := os.WriteFile(host.Path(path), make([]byte, units.MiB), 0o666); err != nil {
			return nil, err
		}
	}
	resize := func(memory units.Bytes) func() *berthv1.ActOnVMsRequest {
		return func() *berthv1.ActOnVMsRequest {
			return &berthv1.ActOnVMsRequest{Action: &berthv1.ActOnVMsRequest_Resize{Resize: &berthv1.ResizeAction{MemoryBytes: int64(memory)}}}
		}
	}
	changes := []*change{
		{
			what: "attach disk",
			request: func() *berthv1.ActOnVMsRequest {
				return &berthv1.ActOnVMsRequest{Action: &berthv1.ActOnVMsRequest_Attach{Attach: &berthv1.AttachAction{
					Device: &berthv1.AttachAction_Disk{Disk: &berthv1.Disk{Path: disk, Format: "raw", Bus: "virtio"}},
				}}}
			},
			virsh: "attach-disk " + twin + " " + twinDisk + " vda --live --driver qemu --subdriver raw --cache none",
		},
		{
			what: "detach",
			request: func() *berthv1.ActOnVMsRequest {
				return &berthv1.ActOnVMsRequest{Action: &berthv1.ActOnVMsRequest_Detach{Detach: &berthv1.DetachAction{Device: "vda"}}}
			},
			virsh: "detach-disk " + twin + " vda --live",
		},
		{what: "vm set --memory --now, less", request: resize(128 * units.MiB), virsh: "setmem " + twin + " 128M --live"},
		{what: "vm set --memory --now, more", request: resize(160 * units.MiB), virsh: "setmem " + twin + " 160M --live"},
	}
	for round := range b.rounds(3, 20) + 1 {
		for _, one := range changes {
			took, err := act(ctx, r, vm, one.request())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.what, err)
			}
			own, err := testbed.Virsh(ctx, host, one.virsh)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.what, err)
			}
			if round > 0 { // the first one fills caches
				one.berth.Add(took)
				one.libvirt.Add(own)
			}
			// The guest, which is emulated, takes its time over what it was told. The next change would wait for that.
			if err := testbed.Pause(ctx, time.Second); err != nil {
				return nil, err
			}
		}
	}
	var rows []report.Row
	for _, one := range changes {
		added := one.berth.Less(one.libvirt)
		rows = append(rows, report.Row{
			Goal: "CHANGE", What: "what Berth adds to a change of a guest that runs, from the call until it is done: " + one.what,
			Measured: added.Spread(report.Seconds) + "\nthrough Berth " + one.berth.Spread(report.Seconds),
			Against:  "virsh on a twin: " + one.libvirt.Spread(report.Seconds),
			Wanted:   "<= 50 ms", Verdict: report.Judge(added.Median(), 0.050),
		})
	}
	return rows, nil
}

// raiseTwins starts a guest through Berth and a twin of it with virsh, and waits until both have booted: only then do they let go of devices.
func raiseTwins(ctx context.Context, r *testbed.RaisedLab, host *lab.Host, vm, twin string) error {
	spec := &berthv1.VMSpec{
		MemoryBytes: int64(160 * units.MiB), Vcpus: 1, Kernel: lab.Kernel, Initrd: lab.Initrd, Cmdline: lab.Cmdline,
	}
	if _, err := r.StartOn(ctx, host.Name, vm, spec); err != nil {
		return err
	}
	xml, err := r.TwinOf(ctx, host, vm, twin)
	if err != nil {
		return err
	}
	if _, err := host.Virsh(ctx, "create", xml); err != nil {
		return err
	}
	for _, name := range []string{vm, twin} {
		err := testbed.Await(ctx, name+" to boot", 2*time.Minute, func(ctx context.Context) error {
			_, err := host.ReadTick(ctx, name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// act has Berth do something to a VM, and returns how long that took until it was done.
func act(ctx context.Context, r *testbed.RaisedLab, vm string, request *berthv1.ActOnVMsRequest) (time.Duration, error) {
	request.Vms, request.RequestId = []string{vm}, rand.Text()
	begun := time.Now()
	answer, err := testbed.Patiently(ctx, func() (*connect.Response[berthv1.ActOnVMsResponse], error) {
		return r.API.ActOnVMs(ctx, connect.NewRequest(request))
	})
	if err != nil {
		return 0, err
	}
	acted := answer.Msg.GetActed()
	if len(acted) != 1 || acted[0].GetError() != nil {
		return 0, fmt.Errorf("it was refused: %v", acted)
	}
	_, err = testbed.AwaitEnd(ctx, r.API, acted[0].GetOperation().GetId())
	return time.Since(begun), err
}
