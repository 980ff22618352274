package hoststat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes a copy of the parts of a node that are read.
func tree(t *testing.T, files map[string]string) *Reader {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return At(root)
}

var node = map[string]string{
	"proc/meminfo":                    "MemTotal:        4194304 kB\nMemFree:         1048576 kB\nMemAvailable:    2097152 kB\nBuffers:  1 kB\nCached: 2 kB\n",
	"proc/loadavg":                    "0.50 1.25 2.00 1/200 4242\n",
	"proc/stat":                       "cpu  1000 200 300 8000 100 50 150 200 400 0\ncpu0 1000 200 300 8000 100 50 150 200 400 0\n",
	"proc/pressure/cpu":               "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\n",
	"proc/pressure/memory":            "some avg10=2.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.75 avg60=0.00 avg300=0.00 total=1\n",
	"proc/sys/kernel/random/boot_id":  "b00t\n",
	"sys/kernel/mm/ksm/pages_sharing": "1000\n",
	"etc/machine-id":                  "m4ch\n",
}

func TestReadings(t *testing.T) {
	r := tree(t, node)
	memory, err := r.Memory(t.Context())
	if want := (Memory{Total: 4 << 30, Free: 1 << 30, Available: 2 << 30}); err != nil || memory != want {
		t.Errorf("memory: got %+v, %v, want %+v", memory, err, want)
	}
	load, err := r.Load(t.Context())
	if want := (Load{0.5, 1.25, 2}); err != nil || load != want {
		t.Errorf("load: got %+v, %v, want %+v", load, err, want)
	}
	times, err := r.CPUTimes(t.Context())
	if want := (CPUTimes{Busy: 17, Steal: 2, Total: 100}); err != nil || times != want {
		t.Errorf("CPU times: got %+v, %v, want %+v", times, err, want)
	}
	if saved, err := r.KSMSaved(); err != nil || saved != 1000*4096 {
		t.Errorf("KSM: got %d, %v", saved, err)
	}
	for resource, want := range map[string]*Pressure{"cpu": {Some: 1.5}, "memory": {Some: 2.5, Full: 0.75}, "io": nil} {
		got, err := r.Pressure(resource)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s pressure: %v (-want +got):\n%s", resource, err, diff)
		}
	}
	if id, err := r.BootID(); err != nil || id != "b00t" {
		t.Errorf("boot ID: %q, %v", id, err)
	}
	if id, err := r.MachineID(); err != nil || id != "m4ch" {
		t.Errorf("machine ID: %q, %v", id, err)
	}
}

func TestBrokenReadingsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		read       func(*Reader) error
		want       string
	}{
		"memory missing":    {"x", "", func(r *Reader) error { _, err := r.Memory(t.Context()); return err }, "makes no sense"},
		"memory empty":      {"proc/meminfo", "", func(r *Reader) error { _, err := r.Memory(t.Context()); return err }, "makes no sense"},
		"memory impossible": {"proc/meminfo", "MemTotal: 5 kB\nMemFree: 9 kB\nMemAvailable: 4 kB\n", func(r *Reader) error { _, err := r.Memory(t.Context()); return err }, "makes no sense"},
		"CPU times missing": {"x", "", func(r *Reader) error { _, err := r.CPUTimes(t.Context()); return err }, "CPU times"},
		"CPU times empty":   {"proc/stat", "", func(r *Reader) error { _, err := r.CPUTimes(t.Context()); return err }, "CPU times"},
		"KSM missing":       {"x", "", func(r *Reader) error { _, err := r.KSMSaved(); return err }, "no such file"},
		"KSM no number":     {"sys/kernel/mm/ksm/pages_sharing", "many", func(r *Reader) error { _, err := r.KSMSaved(); return err }, `"many"`},
		"pressure garbled":  {"proc/pressure/io", "full moon\n", func(r *Reader) error { _, err := r.Pressure("io"); return err }, "no avg10"},
		"boot ID empty":     {"proc/sys/kernel/random/boot_id", "\n", func(r *Reader) error { _, err := r.BootID(); return err }, "is empty"},
		"machine ID gone":   {"x", "", func(r *Reader) error { _, err := r.MachineID(); return err }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.read(tree(t, map[string]string{c.file: c.text}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

func TestRootsFromTheEnvironment(t *testing.T) {
	r := tree(t, node)
	t.Setenv("HOST_PROC", r.proc)
	t.Setenv("HOST_SYS", r.sys)
	t.Setenv("HOST_ETC", r.etc)
	if id, err := New().MachineID(); err != nil || id != "m4ch" {
		t.Errorf("got %q, %v", id, err)
	}
	if memory, err := New().Memory(t.Context()); err != nil || memory.Total != 4<<30 {
		t.Errorf("got %+v, %v", memory, err)
	}
}
