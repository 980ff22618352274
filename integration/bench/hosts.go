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

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// measureHosts raises labs of three hosts and three coordinators, and uses the last one for what needs real hypervisors.
func measureHosts(ctx context.Context, b *bench) (rows []row, err error) {
	var up figures
	var r *raised
	for range b.rounds(1, 3) {
		if r != nil {
			if err := r.Down(); err != nil {
				return nil, err
			}
		}
		begun := time.Now()
		if r, err = raiseLab(ctx, b, lab.Options{Name: "bench", Hosts: 3, Coordinators: 3}); err != nil {
			return nil, err
		}
		up.add(time.Since(begun))
	}
	defer func() { err = errors.Join(err, r.Down()) }()
	rows = append(rows, row{
		goal: "LAB", what: "lab of 3 libvirt hosts and 3 coordinators, until every node is up", measured: up.spread(seconds),
		against: "the goal's own limit", wanted: "< 20 s", verdict: judge(up.median(), 20),
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
func measureStart(ctx context.Context, b *bench, r *raised) ([]row, error) {
	host := r.Hosts[0]
	spec := &berthv1.VMSpec{MemoryBytes: int64(64 * units.MiB), Vcpus: 1}
	const vm, twin = "timed", "timed-twin"
	var berth, libvirt figures
	xml := ""
	for round := range b.rounds(5, 30) + 1 {
		took, err := r.startOn(ctx, host.Name, vm, spec)
		if err != nil {
			return nil, err
		}
		if xml == "" {
			if xml, err = r.twinOf(ctx, host, vm, twin); err != nil {
				return nil, err
			}
		}
		if err := r.removeVM(ctx, vm); err != nil {
			return nil, err
		}
		created, err := virsh(ctx, host, "create "+xml)
		if err != nil {
			return nil, err
		}
		if _, err := host.Virsh(ctx, "destroy", twin); err != nil {
			return nil, err
		}
		if round > 0 { // the first one fills caches
			berth.add(took)
			libvirt.add(created)
		}
	}
	added := berth.less(libvirt)
	return []row{
		{
			goal: "START", what: "what Berth adds to the start of a VM: from the call of StartVM until it runs, less libvirt's own time",
			measured: added.spread(seconds),
			against:  "virsh create of the same XML on the same host, each start with its neighbour",
			wanted:   "< 50 ms", verdict: judge(added.median(), 0.050),
		},
		{what: "of it: through Berth", measured: berth.spread(seconds), against: "virsh create: " + libvirt.spread(seconds)},
	}, nil
}

// moves are the migrations of one VM, in seconds. Still is how long its guest executed nowhere.
type moves struct{ total, downtime, handover, still figures }

// measureMigration compares a live migration through Berth with virsh's between the same hosts, of guests that are the
// same but for their names.
func measureMigration(ctx context.Context, b *bench, r *raised) ([]row, error) {
	const vm, twin = "moved", "moved-twin"
	spec := &berthv1.VMSpec{
		MemoryBytes: int64(128 * units.MiB), Vcpus: 1, Kernel: lab.Kernel, Initrd: lab.Initrd, Cmdline: lab.Cmdline,
	}
	from, to := r.Hosts[0], r.Hosts[1]
	if _, err := r.startOn(ctx, from.Name, vm, spec); err != nil {
		return nil, err
	}
	xml, err := r.twinOf(ctx, from, vm, twin)
	if err != nil {
		return nil, err
	}
	if _, err := virsh(ctx, from, "create "+xml); err != nil {
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

func moveRows(berth, libvirt moves) []row {
	added, strict := berth.total.less(libvirt.total), berth.still.less(libvirt.still)
	return []row{
		{
			goal: "MIGRATE", what: "what Berth adds to the live migration of a 128 MiB guest: from the call of MigrateVM until it runs on the target",
			measured: added.spread(seconds),
			against:  "virsh migrate --live --p2p --tls --auto-converge between the same hosts, in turns",
			wanted:   "<= 0.5 s", verdict: judge(added.median(), 0.5),
		},
		{what: "of it: through Berth", measured: berth.total.spread(seconds), against: "virsh migrate: " + libvirt.total.spread(seconds)},
		{what: "downtime of the job, by libvirt", measured: berth.downtime.spread(seconds), against: "virsh migrate: " + libvirt.downtime.spread(seconds)},
		{what: "what the strict hand-over adds to it (one Raft commit, one order), by Berth", measured: berth.handover.spread(seconds), against: "virsh migrate: none"},
		{
			goal: "HANDOVER", what: "what the strict hand-over adds to the downtime: from when the guest stands still on its source until it runs on its target, by their QEMUs",
			measured: strict.spread(seconds),
			against:  "virsh migrate, which hands over directly, between the same hosts, in turns",
			wanted:   "<= 50 ms", verdict: judge(strict.median(), 0.050),
		},
		{what: "of it: strict, through Berth", measured: berth.still.spread(seconds), against: "direct, by virsh migrate: " + libvirt.still.spread(seconds)},
	}
}

func (m *moves) throughBerth(ctx context.Context, r *raised, vm string, to *lab.Host) error {
	request := &berthv1.MigrateVMRequest{Vm: vm, Node: to.Name, RequestId: rand.Text()}
	begun := time.Now()
	answer, err := patiently(ctx, func() (*connect.Response[berthv1.MigrateVMResponse], error) {
		return r.api.MigrateVM(ctx, connect.NewRequest(request))
	})
	if err != nil {
		return err
	}
	ended, err := awaitEnd(ctx, r.api, answer.Msg.GetOperation().GetId())
	if err != nil {
		return err
	}
	m.total.add(time.Since(begun))
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
	for deadline := time.Now().Add(patience); ; {
		var runs []lab.Run
		for _, run := range watch.Runs() {
			if run.Name == guest {
				runs = append(runs, run)
			}
		}
		last := len(runs) - 1
		if last == len(m.still)+1 && !runs[last-1].To.IsZero() {
			m.still.add(runs[last].From.Sub(runs[last-1].To))
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("guest %s was seen in %d runs after %d migrations", guest, len(runs), len(m.still)+1)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

var downtime = regexp.MustCompile(`Total downtime:\s+([0-9]+)\s+ms`)

func (m *moves) throughLibvirt(ctx context.Context, guest string, from, to *lab.Host) error {
	took, err := virsh(ctx, from, fmt.Sprintf(
		"migrate --live --p2p --tls --abort-on-error --auto-converge --auto-converge-initial 20 --auto-converge-increment 10 "+
			"%s qemu+tls://%s/system --migrateuri tcp://%s", guest, to.Name, to.Name))
	if err != nil {
		return err
	}
	m.total.add(took)
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
