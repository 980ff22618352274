package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// measureHosts raises labs of three hosts and three coordinators, and uses the last one for what needs real hypervisors.
func measureHosts(ctx context.Context, b *bench) (rows []report.Row, err error) {
	var up report.Figures
	var r *testbed.RaisedLab
	for range b.rounds(1, 3) {
		if r != nil {
			if err := r.Down(); err != nil {
				return nil, err
			}
		}
		begun := time.Now()
		if r, err = testbed.RaiseLab(ctx, b.programs, lab.Options{Name: "bench", Hosts: 3, Coordinators: 3}); err != nil {
			return nil, err
		}
		up.Add(time.Since(begun))
	}
	defer func() { err = errors.Join(err, r.Down()) }()
	rows = append(rows, report.Row{
		Goal: "LAB", What: "lab of 3 libvirt hosts and 3 coordinators, until every node is up", Measured: up.Spread(report.Seconds),
		Against: "the goal's own limit", Wanted: "< 20 s", Verdict: report.Judge(up.Median(), 20),
	})
	started, err := measureStart(ctx, b, r)
	if err != nil {
		return rows, fmt.Errorf("START: %w", err)
	}
	moved, err := measureMigration(ctx, b, r)
	if err != nil {
		return rows, fmt.Errorf("MIGRATE: %w", err)
	}
	return append(append(rows, started...), moved...), nil
}

// measureStart compares a start through Berth with what libvirt takes to create the same domain on the same host.
func measureStart(ctx context.Context, b *bench, r *testbed.RaisedLab) ([]report.Row, error) {
	host := r.Hosts[0]
	spec := &berthv1.VMSpec{MemoryBytes: int64(64 * units.MiB), Vcpus: 1}
	const vm, twin = "timed", "timed-twin"
	var berth, libvirt report.Figures
	xml := ""
	for round := range b.rounds(5, 30) + 1 {
		took, err := r.StartOn(ctx, host.Name, vm, spec)
		if err != nil {
			return nil, err
		}
		if xml == "" {
			if xml, err = r.TwinOf(ctx, host, vm, twin); err != nil {
				return nil, err
			}
		}
		if err := r.RemoveVM(ctx, vm); err != nil {
			return nil, err
		}
		created, err := testbed.Virsh(ctx, host, "create "+xml)
		if err != nil {
			return nil, err
		}
		if _, err := host.Virsh(ctx, "destroy", twin); err != nil {
			return nil, err
		}
		if round > 0 { // the first one fills caches
			berth.Add(took)
			libvirt.Add(created)
		}
	}
	added := berth.Less(libvirt)
	return []report.Row{
		{
			Goal: "START", What: "what Berth adds to the start of a VM: from the call of StartVM until it runs, less libvirt's own time",
			Measured: added.Spread(report.Seconds),
			Against:  "virsh create of the same XML on the same host, each start with its neighbour",
			Wanted:   "< 50 ms", Verdict: report.Judge(added.Median(), 0.050),
		},
		{What: "of it: through Berth", Measured: berth.Spread(report.Seconds), Against: "virsh create: " + libvirt.Spread(report.Seconds)},
	}, nil
}

// moves are the migrations of one VM, in seconds. Still is how long its guest executed nowhere.
type moves struct{ total, downtime, handover, still report.Figures }

// measureMigration compares a live migration through Berth with virsh's between the same hosts, of guests that are the
// same but for their names.
func measureMigration(ctx context.Context, b *bench, r *testbed.RaisedLab) ([]report.Row, error) {
	const vm, twin = "moved", "moved-twin"
	spec := &berthv1.VMSpec{
		MemoryBytes: int64(128 * units.MiB), Vcpus: 1, Kernel: lab.Kernel, Initrd: lab.Initrd, Cmdline: lab.Cmdline,
	}
	from, to := r.Hosts[0], r.Hosts[1]
	if _, err := r.StartOn(ctx, from.Name, vm, spec); err != nil {
		return nil, err
	}
	xml, err := r.TwinOf(ctx, from, vm, twin)
	if err != nil {
		return nil, err
	}
	if _, err := testbed.Virsh(ctx, from, "create "+xml); err != nil {
		return nil, err
	}
	for _, guest := range []string{vm, twin} {
		if _, err := r.ReadTick(ctx, guest); err != nil { // it has booted
			return nil, err
		}
	}
	watch := r.Observe()
	defer watch.Stop()
	var berth, libvirt moves
	for range b.rounds(2, 10) {
		if err := berth.throughBerth(ctx, r, vm, to); err != nil {
			return nil, err
		}
		if err := berth.stoodStill(ctx, watch, vm); err != nil {
			return nil, err
		}
		if err := libvirt.throughLibvirt(ctx, twin, from, to); err != nil {
			return nil, err
		}
		if err := libvirt.stoodStill(ctx, watch, twin); err != nil {
			return nil, err
		}
		from, to = to, from
	}
	return moveRows(berth, libvirt), nil
}

func moveRows(berth, libvirt moves) []report.Row {
	added, strict := berth.total.Less(libvirt.total), berth.still.Less(libvirt.still)
	return []report.Row{
		{
			Goal: "MIGRATE", What: "what Berth adds to the live migration of a 128 MiB guest: " +
				"from the call of MigrateVM until it runs on the target",
			Measured: added.Spread(report.Seconds),
			Against:  "virsh migrate --live --p2p --tls --auto-converge between the same hosts, in turns",
			Wanted:   "<= 0.5 s", Verdict: report.Judge(added.Median(), 0.5),
		},
		{
			What: "of it: through Berth", Measured: berth.total.Spread(report.Seconds),
			Against: "virsh migrate: " + libvirt.total.Spread(report.Seconds),
		},
		{
			What: "downtime of the job, by libvirt", Measured: berth.downtime.Spread(report.Seconds),
			Against: "virsh migrate: " + libvirt.downtime.Spread(report.Seconds),
		},
		{
			What: "what the strict hand-over adds to it (one Raft commit, one order), by Berth", Measured: berth.handover.Spread(report.Seconds),
			Against: "virsh migrate: none",
		},
		{
			Goal: "HANDOVER", What: "what the strict hand-over adds to the downtime: " +
				"from when the guest stands still on its source until it runs on its target, by their QEMUs",
			Measured: strict.Spread(report.Seconds),
			Against:  "virsh migrate, which hands over directly, between the same hosts, in turns",
			Wanted:   "<= 50 ms", Verdict: report.Judge(strict.Median(), 0.050),
		},
		{
			What: "of it: strict, through Berth", Measured: berth.still.Spread(report.Seconds),
			Against: "direct, by virsh migrate: " + libvirt.still.Spread(report.Seconds),
		},
	}
}

func (m *moves) throughBerth(ctx context.Context, r *testbed.RaisedLab, vm string, to *lab.Host) error {
	request := &berthv1.MigrateVMRequest{Vm: vm, Node: to.Name, RequestId: rand.Text()}
	begun := time.Now()
	answer, err := testbed.Patiently(ctx, func() (*connect.Response[berthv1.MigrateVMResponse], error) {
		return r.API.MigrateVM(ctx, connect.NewRequest(request))
	})
	if err != nil {
		return err
	}
	ended, err := testbed.AwaitEnd(ctx, r.API, answer.Msg.GetOperation().GetId())
	if err != nil {
		return err
	}
	m.total.Add(time.Since(begun))
	stats := ended.GetMigration()
	if stats == nil || stats.DowntimeSeconds == nil || stats.HandoverSeconds == nil {
		return fmt.Errorf("the migration of %s ended without figures: %v", vm, stats)
	}
	m.downtime = append(m.downtime, stats.GetDowntimeSeconds())
	m.handover = append(m.handover, stats.GetHandoverSeconds())
	return nil
}

// stoodStill adds how long the guest of the last migration executed nowhere.
func (m *moves) stoodStill(ctx context.Context, watch *lab.Observer, guest string) error {
	for deadline := time.Now().Add(testbed.Patience); ; {
		var runs []lab.Run
		for _, run := range watch.Runs() {
			if run.Name == guest {
				runs = append(runs, run)
			}
		}
		last := len(runs) - 1
		if last == len(m.still)+1 && !runs[last-1].To.IsZero() {
			m.still.Add(runs[last].From.Sub(runs[last-1].To))
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("guest %s was seen in %d runs after %d migrations", guest, len(runs), len(m.still)+1)
		}
		if err := testbed.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

var downtime = regexp.MustCompile(`Total downtime:\s+([0-9]+)\s+ms`)

func (m *moves) throughLibvirt(ctx context.Context, guest string, from, to *lab.Host) error {
	took, err := testbed.Virsh(ctx, from, fmt.Sprintf(
		"migrate --live --p2p --tls --abort-on-error --auto-converge --auto-converge-initial 20 --auto-converge-increment 10 "+
			"%s qemu+tls://%s/system --migrateuri tcp://%s", guest, to.Name, to.Name))
	if err != nil {
		return err
	}
	m.total.Add(took)
	figures, err := to.Virsh(ctx, "domjobinfo", "--completed", guest)
	if err != nil {
		return err
	}
	found := downtime.FindStringSubmatch(figures)
	if found == nil {
		return fmt.Errorf("virsh domjobinfo of %s tells no downtime: %s", guest, figures)
	}
	milliseconds, err := strconv.ParseFloat(found[1], 64)
	m.downtime = append(m.downtime, milliseconds/1000)
	return err
}
