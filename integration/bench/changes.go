package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
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
	virsh          func() string
	until          string // what dommemstat of the twin says once its guest has done it: setmem only asks for it, and Berth waits for that
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
	rounds := b.rounds(3, 20) + 1
	// A guest gives back no vCPU that it has: it gets one more in each round.
	if err := r.Twins(ctx, host, vm, twin, 1+rounds); err != nil {
		return nil, err
	}
	disk, twinDisk := lab.SharedDir+"/"+vm+".img", lab.SharedDir+"/"+twin+".img"
	for _, path := range []string{disk, twinDisk} {
		if err := os.WriteFile(host.Path(path), make([]byte, units.MiB), 0o666); err != nil {
			return nil, err
		}
	}
	resize := func(to *berthv1.ResizeAction) *berthv1.ActOnVMsRequest {
		return &berthv1.ActOnVMsRequest{Action: &berthv1.ActOnVMsRequest_Resize{Resize: to}}
	}
	memory := func(size units.Bytes) *change {
		kib := fmt.Sprint(int64(size / units.KiB))
		return &change{
			request: func() *berthv1.ActOnVMsRequest { return resize(&berthv1.ResizeAction{MemoryBytes: int64(size)}) },
			virsh:   func() string { return "setmem " + twin + " " + kib + "K --live" },
			until:   "actual " + kib,
		}
	}
	less, more := memory(128*units.MiB), memory(160*units.MiB)
	less.what, more.what = "vm set --memory --now, less", "vm set --memory --now, more"
	vcpus := int32(1)
	changes := []*change{
		{
			what: "attach disk",
			request: func() *berthv1.ActOnVMsRequest {
				return &berthv1.ActOnVMsRequest{Action: &berthv1.ActOnVMsRequest_Attach{Attach: &berthv1.AttachAction{
					Device: &berthv1.AttachAction_Disk{Disk: &berthv1.Disk{Path: disk, Format: "raw", Bus: "virtio"}},
				}}}
			},
			virsh: func() string {
				return "attach-disk " + twin + " " + twinDisk + " vda --live --driver qemu --subdriver raw --cache none"
			},
		},
		{
			what: "detach",
			request: func() *berthv1.ActOnVMsRequest {
				return &berthv1.ActOnVMsRequest{Action: &berthv1.ActOnVMsRequest_Detach{Detach: &berthv1.DetachAction{Device: "vda"}}}
			},
			virsh: func() string { return "detach-disk " + twin + " vda --live" },
		},
		less, more,
		{
			what:    "vm set --vcpus --now, one more",
			request: func() *berthv1.ActOnVMsRequest { vcpus++; return resize(&berthv1.ResizeAction{Vcpus: vcpus}) },
			virsh:   func() string { return fmt.Sprintf("setvcpus %s %d --live", twin, vcpus) },
		},
	}
	for round := range rounds {
		for _, one := range changes {
			took, err := act(ctx, r, vm, one.request())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.what, err)
			}
			own, err := testbed.Virsh(ctx, host, one.virsh())
			if err == nil && one.until != "" {
				var waited time.Duration
				waited, err = awaitTwin(ctx, host, twin, one.until)
				own += waited
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.what, err)
			}
			if round > 0 { // the first one fills caches
				one.berth.Add(took)
				one.libvirt.Add(own)
			}
			// The guest, which is emulated, takes its time over what it was told, and the next change would wait for that. And a disk
			// gets the target of the one before only once the node has shown that this is free, which it does every five seconds.
			if err := testbed.Pause(ctx, 2*time.Second); err != nil {
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
			Against:  "virsh on a twin: " + one.libvirt.Spread(report.Seconds), Wanted: "<= 50 ms", Verdict: report.Judge(added.Median(), 0.050),
		})
	}
	return rows, nil
}

// awaitTwin waits until QEMU says that a guest has as much memory as it is to have, and returns how long that took.
func awaitTwin(ctx context.Context, host *lab.Host, twin, until string) (time.Duration, error) {
	begun := time.Now()
	for {
		said, err := host.Virsh(ctx, "dommemstat", twin)
		if err != nil || strings.Contains(said, until) {
			return time.Since(begun), err
		}
	}
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
