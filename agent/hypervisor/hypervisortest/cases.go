package hypervisortest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

func host(t *testing.T, bench Bench) {
	hv := bench.Source.Hypervisor
	if up, err := hv.Connected(); !up || err != nil {
		t.Fatalf("Connected: %v, %v", up, err)
	}
	info, err := hv.Host(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	capabilities, err := domxml.ParseCapabilities(info.CapabilitiesXML)
	if err != nil {
		t.Fatal(err)
	}
	if info.HostUUID == "" || info.HostUUID != capabilities.HostUUID || info.HostName == "" || info.LibVersion == "" ||
		info.MemoryBytes <= 0 || info.CPUs <= 0 || !slices.Contains(capabilities.DomainTypes, bench.DomainType) {
		t.Errorf("incomplete: %+v", info)
	}
	memory, err := hv.Memory(t.Context())
	if err != nil || memory.TotalBytes <= 0 || memory.FreeBytes <= 0 || memory.FreeBytes > memory.TotalBytes {
		t.Errorf("memory: %+v, %v", memory, err)
	}
}

func life(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	events := listen(t, hv, g.id.UUID)
	g.start(t, hv)
	events.await(t, "started", "booted")

	got, err := hv.Lookup(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	got.Reason = ""
	want := hypervisor.Domain{
		UUID: g.id.UUID, Name: g.id.Name, State: hypervisor.Running, MemoryBytes: 64 << 20, VCPUs: 1,
		Managed: true, Epoch: 1, OperationID: "op-start", Devices: []domxml.Device{}, Bindings: []domxml.Binding{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Lookup (-want +got):\n%s", diff)
	}
	all, err := hv.Domains(t.Context())
	if err != nil || !slices.ContainsFunc(all, func(d hypervisor.Domain) bool { return d.UUID == g.id.UUID && d.Epoch == 1 }) {
		t.Errorf("Domains lacks it: %+v, %v", all, err)
	}
	checkStats(t, hv, g)

	if err := hv.Shutdown(t.Context(), g.id.UUID); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := hv.Destroy(t.Context(), g.id.UUID, 1); err != nil && !errors.Is(err, hypervisor.ErrNotFound) {
		t.Fatal(err)
	}
	eventually(t, hv, g.id.UUID, "absent", isAbsent)
	events.await(t, "stopped", "destroyed")
}

// checkStats waits for a sample with everything in it: some figures come with a later one.
func checkStats(t *testing.T, hv hypervisor.Hypervisor, g guest) {
	t.Helper()
	var last hypervisor.DomainStats
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		all, failed, err := hv.Stats(t.Context())
		if err != nil {
			t.Fatalf("Stats: %v", err)
		}
		i := slices.IndexFunc(all, func(s hypervisor.DomainStats) bool { return s.UUID == g.id.UUID })
		if i < 0 {
			t.Fatalf("Stats lacks the domain: %+v", all)
		}
		last = all[i]
		if last.CPUTime == nil || last.BalloonBytes == nil || last.MaximumBytes == nil || last.VCPUs == nil || last.At.IsZero() {
			t.Fatalf("cheap figures are missing: %+v", last)
		}
		if *last.MaximumBytes != 64<<20 || *last.BalloonBytes != 64<<20 || *last.VCPUs != 1 {
			t.Fatalf("wrong figures: maximum %d, balloon %d, vCPUs %d", *last.MaximumBytes, *last.BalloonBytes, *last.VCPUs)
		}
		if last.RSSBytes == nil && slices.ContainsFunc(failed, func(e hypervisor.ReadingError) bool { return e.Reading == "domain.process" }) {
			return // a suite that runs outside the host's namespaces sees no process there, and is told so
		}
		if last.RSSBytes != nil && last.VCPUDelay != nil && !last.DelayAt.IsZero() {
			if *last.RSSBytes <= 0 || len(failed) > 0 {
				t.Errorf("RSS is %d, failed are %v", *last.RSSBytes, failed)
			}
			return
		}
	}
	t.Errorf("some figures never came: %+v", last)
}

func clashes(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	wantErr(t, "the same again", hv.Start(t.Context(), g.xml), hypervisor.ErrExists)
	other := newGuest(t, bench)
	sameName := strings.Replace(other.xml, other.id.Name, g.id.Name, 1)
	wantErr(t, "another with its name", hv.Start(t.Context(), sameName), hypervisor.ErrExists)
	if _, err := hv.Lookup(t.Context(), other.id.UUID); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("something of the refused domain is there: %v", err)
	}
}

func malformed(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	for _, xml := range []string{"", "<domain", "<domain type='qemu'><name>x</name></domain>"} {
		wantErr(t, xml, hv.Start(t.Context(), xml), hypervisor.ErrInvalidXML)
	}
	unknown := strings.Replace(g.xml, "<devices>", "<frobnicate/><devices>", 1)
	wantErr(t, "an unknown element", hv.Start(t.Context(), unknown), hypervisor.ErrInvalidXML)
}

func absent(t *testing.T, bench Bench) {
	hv, uuid, ctx := bench.Source.Hypervisor, newUUID(), t.Context()
	_, err := hv.Lookup(ctx, uuid)
	wantErr(t, "Lookup", err, hypervisor.ErrNotFound)
	_, err = hv.XML(ctx, uuid)
	wantErr(t, "XML", err, hypervisor.ErrNotFound)
	_, err = hv.Job(ctx, uuid, false)
	wantErr(t, "Job", err, hypervisor.ErrNotFound)
	_, err = hv.Job(ctx, uuid, true)
	wantErr(t, "Job, completed", err, hypervisor.ErrNotFound)
	wantErr(t, "Shutdown", hv.Shutdown(ctx, uuid), hypervisor.ErrNotFound)
	wantErr(t, "Destroy", hv.Destroy(ctx, uuid, 1), hypervisor.ErrNotFound)
	wantErr(t, "Resume", hv.Resume(ctx, uuid, 1), hypervisor.ErrNotFound)
	wantErr(t, "Suspend", hv.Suspend(ctx, uuid, 1), hypervisor.ErrNotFound)
	wantErr(t, "Mark", hv.Mark(ctx, uuid, domxml.Mark{Epoch: 1}), hypervisor.ErrNotFound)
	wantErr(t, "Unmark", hv.Unmark(ctx, uuid, 1), hypervisor.ErrNotFound)
	wantErr(t, "Undefine", hv.Undefine(ctx, uuid, 1), hypervisor.ErrNotFound)
	_, err = hv.Definition(ctx, uuid)
	wantErr(t, "Definition", err, hypervisor.ErrNotFound)
	wantErr(t, "AbortJob", hv.AbortJob(ctx, uuid), hypervisor.ErrNotFound)
	wantErr(t, "Migrate", hv.Migrate(ctx, uuid, hypervisor.MigrateOptions{TargetURI: bench.Target.URI}), hypervisor.ErrNotFound)
}

func otherEpoch(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	wantErr(t, "Destroy", hv.Destroy(t.Context(), g.id.UUID, 2), hypervisor.ErrOtherEpoch)
	wantErr(t, "Resume", hv.Resume(t.Context(), g.id.UUID, 2), hypervisor.ErrOtherEpoch)
	wantErr(t, "Reboot", hv.Reboot(t.Context(), g.id.UUID, 2, hypervisor.RebootReset), hypervisor.ErrOtherEpoch)
	wantErr(t, "Suspend", hv.Suspend(t.Context(), g.id.UUID, 2), hypervisor.ErrOtherEpoch)
	wantErr(t, "Suspend of one without a mark", hv.Suspend(t.Context(), g.id.UUID, 0), hypervisor.ErrOtherEpoch)
	wantErr(t, "Unmark", hv.Unmark(t.Context(), g.id.UUID, 2), hypervisor.ErrOtherEpoch)
	wantErr(t, "Undefine", hv.Undefine(t.Context(), g.id.UUID, 2), hypervisor.ErrOtherEpoch)
	eventually(t, hv, g.id.UUID, "running still", inState(hypervisor.Running))
}

func wrongState(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	wantErr(t, "AbortJob without a job", hv.AbortJob(t.Context(), g.id.UUID), hypervisor.ErrInvalidState)
	if job, err := hv.Job(t.Context(), g.id.UUID, false); err != nil || job.Active {
		t.Errorf("Job without a job: %+v, %v", job, err)
	}
	_, err := hv.Job(t.Context(), g.id.UUID, true)
	wantErr(t, "completed job without one", err, hypervisor.ErrNotFound)
}

func migrate(t *testing.T, bench Bench) {
	source, target, g := bench.Source.Hypervisor, bench.Target.Hypervisor, newGuest(t, bench)
	leaving, arriving := listen(t, source, g.id.UUID), listen(t, target, g.id.UUID)
	g.start(t, source)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := source.Migrate(ctx, g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: g.moved(t, source, 2), Paused: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Lookup(t.Context(), g.id.UUID); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("the source has it still: %v", err)
	}
	if !source.Left(t.Context(), g.id.UUID, g.id.Name) || target.Left(t.Context(), g.id.UUID, g.id.Name) {
		t.Error("it has left the source, and only that")
	}
	// What a guest did before it was gone is known by its events, and by what is written of its end: it stood still on the source, and does on
	// the target.
	leaving.await(t, hypervisor.EventStopped, hypervisor.DetailMigrated)
	leaving.stands(t, "the source")
	arriving.await(t, hypervisor.EventStarted, hypervisor.DetailMigrated)
	arriving.stands(t, "the target")
	got, err := target.Lookup(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != hypervisor.Paused || got.Epoch != 2 || got.OperationID != "op-migrate" || got.Persistent || got.JobActive {
		t.Errorf("on the target: %+v", got)
	}
	all, err := target.Domains(t.Context())
	if err != nil || !slices.ContainsFunc(all, func(d hypervisor.Domain) bool {
		return d.UUID == got.UUID && d.State == got.State && d.Epoch == got.Epoch && d.OperationID == got.OperationID &&
			d.MemoryBytes == got.MemoryBytes && d.VCPUs == got.VCPUs && !d.Persistent
	}) {
		t.Errorf("Domains lacks it, as it is paused on the target: %+v, %v", all, err)
	}
	for side, hv := range map[string]hypervisor.Hypervisor{"source": source, "target": target} {
		job, err := hv.Job(t.Context(), g.id.UUID, true)
		if err != nil || job.Active || job.Elapsed <= 0 || job.DataProcessed <= 0 || job.Downtime == nil {
			t.Errorf("figures on the %s: %+v, %v", side, job, err)
		}
	}
	wantErr(t, "Resume under the old epoch", target.Resume(t.Context(), g.id.UUID, 1), hypervisor.ErrOtherEpoch)
	if err := target.Resume(t.Context(), g.id.UUID, 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, target, g.id.UUID, "running", inState(hypervisor.Running))
	arriving.await(t, "resumed", "")
}

// There and back again: what is told of the second migration must not be the first one's.
func back(t *testing.T, bench Bench) {
	g := newGuest(t, bench)
	g.start(t, bench.Source.Hypervisor)
	before := g.move(t, bench.Source, bench.Target, 2, 0)
	after := g.move(t, bench.Target, bench.Source, 3, 256<<20)
	for side, hv := range map[string]hypervisor.Hypervisor{"source": bench.Source.Hypervisor, "target": bench.Target.Hypervisor} {
		job, err := hv.Job(t.Context(), g.id.UUID, true)
		if err != nil {
			t.Fatal(err)
		}
		if job.Elapsed == before.Elapsed {
			t.Errorf("on the first %s the figures are still those of the first migration: %+v", side, job)
		}
	}
	if after.Elapsed == before.Elapsed {
		t.Errorf("both took exactly %s: nothing is proven", after.Elapsed)
	}
}

// move migrates the guest, lets it run and returns the figures of the source.
func (g guest) move(t *testing.T, from, to Host, epoch uint64, bandwidth int64) hypervisor.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := from.Hypervisor.Migrate(ctx, g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: to.URI, DomainXML: g.moved(t, from.Hypervisor, epoch), Paused: true, BandwidthBPS: bandwidth,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Hypervisor.Resume(ctx, g.id.UUID, epoch); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		job, err := from.Hypervisor.Job(ctx, g.id.UUID, true)
		if err == nil {
			return job
		}
		if !errors.Is(err, hypervisor.ErrNotFound) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func abort(t *testing.T, bench Bench) {
	source, target, g := bench.Source.Hypervisor, bench.Target.Hypervisor, newGuest(t, bench)
	g.start(t, source)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	options := hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: g.moved(t, source, 2), Paused: true, BandwidthBPS: 1 << 20,
	}
	go func() { done <- source.Migrate(ctx, g.id.UUID, options) }()
	eventually(t, source, g.id.UUID, "busy with the job", func(d hypervisor.Domain, err error) bool { return err == nil && d.JobActive })
	progressed := false
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && !progressed; time.Sleep(50 * time.Millisecond) {
		job, err := source.Job(t.Context(), g.id.UUID, false)
		progressed = err == nil && job.Active && job.DataProcessed > 0 && job.DataRemaining > 0
	}
	if !progressed {
		t.Error("the job never told of progress")
	}
	if err := source.AbortJob(t.Context(), g.id.UUID); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Migrate", <-done, hypervisor.ErrAborted)
	eventually(t, source, g.id.UUID, "running without a job", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.State == hypervisor.Running && !d.JobActive && d.Epoch == 1
	})
	eventually(t, target, g.id.UUID, "absent", isAbsent)
}

func clash(t *testing.T, bench Bench) {
	source, target, g := bench.Source.Hypervisor, bench.Target.Hypervisor, newGuest(t, bench)
	g.start(t, source)
	g.start(t, target)
	err := source.Migrate(t.Context(), g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: bench.Target.URI, DomainXML: g.moved(t, source, 2), Paused: true,
	})
	if err == nil {
		t.Error("it moved over a running copy")
	}
	for _, hv := range []hypervisor.Hypervisor{source, target} {
		eventually(t, hv, g.id.UUID, "running untouched", func(d hypervisor.Domain, err error) bool {
			return err == nil && d.State == hypervisor.Running && d.Epoch == 1 && !d.JobActive
		})
	}
}

func unreachable(t *testing.T, bench Bench) {
	source, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, source)
	scheme, _, _ := strings.Cut(bench.Target.URI, "://")
	err := source.Migrate(t.Context(), g.id.UUID, hypervisor.MigrateOptions{
		TargetURI: scheme + "://127.0.0.1:1/system", DomainXML: g.moved(t, source, 2), Paused: true,
	})
	if err == nil {
		t.Error("it moved into the void")
	}
	eventually(t, source, g.id.UUID, "running without a job", func(d hypervisor.Domain, err error) bool {
		return err == nil && d.State == hypervisor.Running && !d.JobActive
	})
}

func ended(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hv.Lookup(ctx, g.id.UUID); err == nil || errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("Lookup: got %v, want no verdict", err)
	}
	if err := hv.Start(ctx, g.xml); err == nil {
		t.Error("Start went on")
	}
	if _, err := hv.Lookup(t.Context(), g.id.UUID); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("something was started: %v", err)
	}
}
