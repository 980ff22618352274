package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/shared/config"
	"berth/shared/scrape"
	"berth/shared/tracing"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "coordinator.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	got, err := LoadConfig(writeConfig(t, "# nothing but comments\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Name: host, DataDir: "/var/lib/berth/coordinator", Advertise: host,
		Listen:       Listen{API: ":7420", Agent: ":7421", Raft: ":7422", Console: ":7423"},
		PassInterval: time.Minute, Stability: 10 * time.Second,
		Backup:  Backups{Directory: "/var/lib/berth/coordinator/backups", Every: 15 * time.Minute, Keep: 96},
		Metrics: scrape.Config{Listen: "127.0.0.1:7424"}, History: Retention{Age: 90 * 24 * time.Hour},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Config{}, Retention{}, tracing.Config{})); diff != "" {
		t.Error(diff)
	}
}

func TestAddressesFollowListen(t *testing.T) {
	c, err := LoadConfig(writeConfig(t, "name: c1\nadvertise: 2001:db8::1\nlisten: {api: \":1\", agent: \"[::]:2\", raft: \"10.0.0.1:3\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	api, agent, raft := c.addresses()
	if got := api + " " + agent + " " + raft; got != "[2001:db8::1]:1 [2001:db8::1]:2 [2001:db8::1]:3" {
		t.Errorf("others are told %s", got)
	}
}

func TestBadConfigurations(t *testing.T) {
	for name, test := range map[string]struct{ text, says string }{
		"unknown key":          {"name: c1\nadvertize: c1\n", `:2: unknown key "advertize"`},
		"name":                 {"name: a b\n", "key name"},
		"no port":              {"name: c1\nlisten: {agent: 10.0.0.1}\n", "key listen.agent"},
		"port 0":               {"name: c1\nlisten: {raft: \":0\"}\n", "key listen.raft"},
		"log level":            {"name: c1\nlog_level: loud\n", "key log_level"},
		"too often":            {"name: c1\npass_interval: 10ms\n", "key pass_interval: 10ms is out of range: want 1s to 1h0m0s"},
		"never":                {"name: c1\npass_interval: -1m\n", "key pass_interval"},
		"votes at once":        {"name: c1\nstability: 1ms\n", "key stability: 1ms is out of range: want 1s to 1h0m0s"},
		"backups all the time": {"name: c1\nbackup: {every: 1s}\n", "key backup.every: 1s is out of range: want 1m0s to 24h0m0s"},
		"no backups":           {"name: c1\nbackup: {keep: -1}\n", "key backup.keep"},
		"another kind":         {"name: [c1]\n", ":1:"},
		"figures for everybody": {
			"name: c1\nmetrics: {listen: \":7424\"}\n", "key metrics.listen: \":7424\" is reached from other machines",
		},
		"takes on less than nothing": {"name: c1\nlimits: {writes: -1}\n", "key limits: writes, reads, waiting and burst cannot be less than 0"},
	} {
		_, err := LoadConfig(writeConfig(t, test.text))
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, test.says)
		}
		if !errors.Is(err, ErrConfig) && !errors.Is(err, config.ErrSyntax) {
			t.Errorf("%s: the cause of %v is not told", name, err)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// What the flags say is written to the file, because run reads only that; what the file says already stays as it is.
func TestFlagsAndFile(t *testing.T) {
	for name, test := range map[string]struct {
		file    string // empty: none
		flags   Config
		want    string
		refused bool
	}{
		"no file": {
			"",
			Config{Name: "c1", Advertise: "10.0.0.1", DataDir: "/srv/berth"},
			"name: \"c1\"\nadvertise: \"10.0.0.1\"\ndata_dir: \"/srv/berth\"\n", false,
		},
		"the packaged file": {
			"# Berth coordinator.\n#name: coordinator-1",
			Config{Name: "c1", Advertise: "10.0.0.1"},
			"# Berth coordinator.\n#name: coordinator-1\nname: \"c1\"\nadvertise: \"10.0.0.1\"\n", false,
		},
		"a file that says it": {"name: c1\nadvertise: 10.0.0.1\n", Config{Name: "c1"}, "name: c1\nadvertise: 10.0.0.1\n", false},
		"a contradiction":     {"name: c1\n", Config{Name: "c2"}, "name: c1\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "etc", "coordinator.yaml")
			if test.file != "" {
				path = writeConfig(t, test.file)
			}
			s, err := settle(path, test.flags)
			if test.refused {
				if !errors.Is(err, ErrConfig) {
					t.Errorf("not refused: %v", err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else if _, err := s.save(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(text)); diff != "" {
				t.Error(diff)
			}
			if again, err := LoadConfig(path); err != nil || again.Name != "c1" {
				t.Errorf("the file is read as %+v, %v", again, err)
			}
		})
	}
}
