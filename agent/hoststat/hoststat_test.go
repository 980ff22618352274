package hoststat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func tree(t *testing.T, without ...string) *Reader {
	t.Helper()
	proc, sys := t.TempDir(), t.TempDir()
	files := map[string]string{
		"meminfo":         "MemTotal: 4096 kB\nMemFree: 1024 kB\nMemAvailable: 2048 kB\nBuffers: 0 kB\nCached: 1024 kB\n",
		"loadavg":         "1.50 2.50 3.50 1/100 4242\n",
		"stat":            "cpu  100 0 50 800 20 0 0 30 0 0\ncpu0 100 0 50 800 20 0 0 30 0 0\nbtime 1700000000\n",
		"pressure/cpu":    "some avg10=12.50 avg60=0 avg300=0 total=1\nfull avg10=0.00 avg60=0 avg300=0 total=1\n",
		"pressure/memory": "some avg10=1.00 avg60=0 avg300=0 total=1\nfull avg10=0.50 avg60=0 avg300=0 total=1\n",
	}
	for _, name := range without {
		delete(files, name)
	}
	write(t, proc, files)
	write(t, sys, map[string]string{"kernel/mm/ksm/pages_sharing": "10\n"})
	t.Setenv("HOST_PROC", proc)
	t.Setenv("HOST_SYS", sys)
	return New()
}

// The firmware's identity counts before the system's, which a copied disk has, too.
func TestTheIdentityOfTheMachine(t *testing.T) {
	r := tree(t)
	r.Run = t.TempDir()
	check := func(what, machineID, id, source string) {
		t.Helper()
		if gotID, gotSource := r.hardware(machineID); gotID != id || gotSource != source {
			t.Errorf("%s: %q, %q", what, gotID, gotSource)
		}
	}
	check("nothing", "", "", "")
	check("the system's", "b1946ac9", "b1946ac9", SourceSystem)
	write(t, r.Run, map[string]string{"product_uuid": "00000000-0000-0000-0000-000000000000\n"})
	check("firmware that has none", "b1946ac9", "b1946ac9", SourceSystem)
	write(t, r.Run, map[string]string{"product_uuid": "4C4C4544-0042-3510-8052-B4C04F4D3732\n"})
	check("as the service unit has copied it", "b1946ac9", "4c4c4544-0042-3510-8052-b4c04f4d3732", SourceProduct)
	write(t, r.Sys, map[string]string{"class/dmi/id/product_uuid": "11111111-0042-3510-8052-b4c04f4d3732\n"})
	check("as root reads it", "b1946ac9", "11111111-0042-3510-8052-b4c04f4d3732", SourceProduct)
	write(t, r.Proc, map[string]string{"sys/kernel/random/boot_id": "b1\n"})
	told, err := r.Identity(t.Context())
	if err != nil || told.Hardware != "11111111-0042-3510-8052-b4c04f4d3732" || told.HardwareSource != SourceProduct || told.BootID != "b1" {
		t.Errorf("the agent tells %+v, %v", told, err)
	}
}

func failures(sample Sample) []string {
	var names []string
	for _, failure := range sample.Errors {
		names = append(names, failure.Reading)
	}
	return names
}

func TestReadsEverything(t *testing.T) {
	sample := tree(t).Read(context.Background())
	if len(sample.Errors) != 0 {
		t.Fatalf("errors %v", sample.Errors)
	}
	if *sample.TotalBytes != 4<<20 || *sample.FreeBytes != 1<<20 || *sample.AvailableBytes != 2<<20 {
		t.Errorf("memory %d %d %d", *sample.TotalBytes, *sample.FreeBytes, *sample.AvailableBytes)
	}
	if *sample.Load1 != 1.5 || *sample.Load15 != 3.5 {
		t.Errorf("load %v %v", *sample.Load1, *sample.Load15)
	}
	if sample.CPUPressure.SomeAvg10 != 12.5 || sample.MemoryPressure.FullAvg10 != 0.5 || sample.IOPressure != nil {
		t.Errorf("pressure %v %v %v", sample.CPUPressure, sample.MemoryPressure, sample.IOPressure)
	}
	if want := int64(10 * os.Getpagesize()); *sample.KSMSavedBytes != want {
		t.Errorf("KSM saves %d, want %d", *sample.KSMSavedBytes, want)
	}
}

func TestWhatCannotBeReadIsNamedNeverZero(t *testing.T) {
	sample := tree(t, "meminfo", "stat").Read(context.Background())
	if sample.TotalBytes != nil || sample.AvailableBytes != nil || sample.CPU != nil {
		t.Error("a figure was made up")
	}
	if got := failures(sample); !slices.Contains(got, "memory") || !slices.Contains(got, "cpu") {
		t.Errorf("failures %v", got)
	}
}

func TestAMangledPressureFileIsAnError(t *testing.T) {
	reader := tree(t)
	write(t, reader.Proc, map[string]string{"pressure/io": "some avg10=lots\n"})
	sample := reader.Read(context.Background())
	if sample.IOPressure != nil || !slices.Contains(failures(sample), "pressure.io") {
		t.Errorf("pressure %v, failures %v", sample.IOPressure, failures(sample))
	}
}

func TestBusy(t *testing.T) {
	busy, steal, ok := Busy(CPUTimes{Total: 100, Idle: 50, Steal: 1}, CPUTimes{Total: 200, Idle: 110, Steal: 11})
	if !ok || busy < 0.2999 || busy > 0.3001 || steal < 0.0999 || steal > 0.1001 {
		t.Errorf("busy %v, steal %v, %t", busy, steal, ok)
	}
	if _, _, ok := Busy(CPUTimes{Total: 100}, CPUTimes{Total: 100}); ok {
		t.Error("a share of no time")
	}
}
