package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// The drain that D1 measures. A copy that is held to this bandwidth leaves the two CPUs of a small machine time for the rest.
const (
	drainGuests    = 4
	drainParallel  = 2
	drainBandwidth = 16 * units.MiB // bytes a second and move
	drainMemory    = 128 * units.MiB
)

// drains are times and amounts of whole drains.
type drains struct {
	wall   report.Figures // from the call of DrainNode until the plan has ended
	bound  report.Figures // the memory of the guests at the configured bandwidth
	copied report.Figures // bytes that libvirt has really sent
	idle   report.Figures // the part of the wall time in which, on average, a slot had no copy under way
}

// measureDrain empties a host of idle guests again and again.
func measureDrain(ctx context.Context, b *bench) (_ []report.Row, err error) {
	r, err := testbed.RaiseLab(ctx, b.programs, lab.Options{Name: "drain", Hosts: 3, Coordinators: 3})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Down()) }()
	from := r.Hosts[0].Name
	for i := range drainGuests {
		name := fmt.Sprintf("idle%d", i+1)
		spec := &berthv1.VMSpec{MemoryBytes: int64(drainMemory), Vcpus: 1, Kernel: lab.Kernel, Initrd: lab.Initrd, Cmdline: lab.Cmdline}
		if _, err := r.StartOn(ctx, from, name, spec); err != nil {
			return nil, err
		}
		if _, err := r.ReadTick(ctx, name); err != nil { // it has booted
			return nil, err
		}
	}
	var d drains
	for range b.rounds(1, 5) {
		if err := d.measure(ctx, r, from); err != nil {
			return nil, err
		}
		if err := undrain(ctx, r, from); err != nil {
			return nil, err
		}
	}
	return d.rows(), nil
}

func (d *drains) measure(ctx context.Context, r *testbed.RaisedLab, node string) error {
	begun := time.Now()
	answer, err := r.API.DrainNode(ctx, connect.NewRequest(&berthv1.DrainNodeRequest{
		Node: node, Parallel: drainParallel, BandwidthBps: int64(drainBandwidth), RequestId: rand.Text(),
	}))
	if err != nil {
		return err
	}
	plan, err := awaitPlan(ctx, r, answer.Msg.GetPlan().GetId())
	if err != nil {
		return err
	}
	wall := time.Since(begun)
	var size, copied int64
	var copying float64
	for _, move := range plan.GetMoves() {
		operation, err := r.API.GetOperation(ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: move.GetOperationId()}))
		if err != nil {
			return err
		}
		stats := operation.Msg.GetOperation().GetMigration()
		if stats == nil {
			return fmt.Errorf("the migration of %s ended without figures", move.GetVm())
		}
		size, copied, copying = size+move.GetMemoryBytes(), copied+stats.GetDataProcessedBytes(), copying+stats.GetElapsedSeconds()
	}
	d.wall.Add(wall)
	d.bound = append(d.bound, float64(size)/float64(drainParallel*drainBandwidth))
	d.copied = append(d.copied, float64(copied))
	d.idle = append(d.idle, wall.Seconds()-copying/drainParallel)
	return nil
}

// undrain brings the guests back, as fast as they can.
func undrain(ctx context.Context, r *testbed.RaisedLab, node string) error {
	answer, err := r.API.UndrainNode(ctx, connect.NewRequest(&berthv1.UndrainNodeRequest{Node: node, ReturnVms: true, RequestId: rand.Text()}))
	if err != nil {
		return err
	}
	_, err = awaitPlan(ctx, r, answer.Msg.GetPlan().GetId())
	return err
}

// awaitPlan waits until a plan has ended. One that did not move all of the guests is an error.
func awaitPlan(ctx context.Context, r *testbed.RaisedLab, id string) (*berthv1.Plan, error) {
	for {
		answer, err := r.API.GetPlan(ctx, connect.NewRequest(&berthv1.GetPlanRequest{Id: id}))
		if err != nil {
			return nil, err
		}
		if plan := answer.Msg.GetPlan(); plan.GetEndedAt() != nil {
			if len(plan.GetMoves()) != drainGuests || plan.GetState() != "done" {
				return nil, fmt.Errorf("plan %s (%s) is %s: %s", id, plan.GetKind(), plan.GetState(), plan.GetMessage())
			}
			for _, move := range plan.GetMoves() {
				if move.GetState() != "moved" {
					return nil, fmt.Errorf("plan %s (%s): %s %s: %s", id, plan.GetKind(), move.GetVm(), move.GetState(), move.GetReason())
				}
			}
			return plan, nil
		}
		if err := testbed.Pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (d *drains) rows() []report.Row {
	ratio, sent := make(report.Figures, len(d.wall)), make(report.Figures, len(d.wall))
	for i := range ratio {
		ratio[i], sent[i] = d.wall[i]/d.bound[i], d.wall[i]*float64(drainParallel*drainBandwidth)/d.copied[i]
	}
	return []report.Row{
		{
			Goal: "D1",
			What: fmt.Sprintf(
				"drain of a host with %d idle guests of %v, %d at once: from the call of DrainNode until the plan has ended", drainGuests,
				drainMemory, drainParallel,
			),
			Measured: ratio.Spread(report.Times),
			Against: fmt.Sprintf("the guests' memory at the configured bandwidth of %v/s and move, which is %s",
				drainBandwidth, report.Seconds(d.bound.Median())),
			Wanted: "<= 1.25x", Verdict: report.Judge(ratio.Median(), 1.25),
		},
		{What: "of it: wall time", Measured: d.wall.Spread(report.Seconds)},
		{What: "of it: while a slot had no copy under way", Measured: d.idle.Spread(report.Seconds)},
		{
			What: "what libvirt really sent for a guest", Measured: report.Megabytes(d.copied.Median() / drainGuests),
			Against: "its memory: " + report.Megabytes(float64(drainMemory)) +
				"; pages of zeros are not sent.\nWall time against what was sent: " + report.Times(sent.Median()),
		},
	}
}
