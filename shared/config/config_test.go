package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type listen struct {
	API string `yaml:"api"`
}

type sample struct {
	Name   string   `yaml:"name"`
	Level  string   `yaml:"log_level"`
	Peers  []string `yaml:"peers"`
	Count  int      `yaml:"count"`
	Listen listen   `yaml:"listen"`
}

func load(t *testing.T, text string, into any) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "berth.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, Load(path, into)
}

func TestLoadKeepsDefaults(t *testing.T) {
	got := sample{Level: "info", Listen: listen{API: ":7420"}}
	if _, err := load(t, "# a comment\nname: c1\npeers: [a, b]\n", &got); err != nil {
		t.Fatal(err)
	}
	want := sample{Name: "c1", Level: "info", Peers: []string{"a", "b"}, Listen: listen{API: ":7420"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadTakesAnEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n"} {
		got := sample{Level: "warn"}
		if _, err := load(t, text, &got); err != nil || got.Level != "warn" {
			t.Errorf("%q: %v, level %q", text, err, got.Level)
		}
	}
}

// Every complaint names the file, the line and the thing in words that do not need Go.
func TestLoadComplaints(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "name: c1\nnmae: c2\n", `FILE:2: unknown key "nmae"`},
		{"unknown nested key", "listen:\n  apo: x\n", `FILE:2: unknown key "apo"`},
		{"two unknown keys", "a: 1\nb: 2\n", `FILE:1: unknown key "a"; FILE:2: unknown key "b"`},
		{"key twice", "name: a\nname: b\n", `FILE:2: key "name" is already given at line 1`},
		{"wrong kind", "count: many\n", "FILE:1: value `many` has the wrong kind (str), want a number"},
		{"text for a list", "peers: a\n", "FILE:1: value `a` has the wrong kind (str), want a list"},
		{"list for keys", "listen: [a]\n", "FILE:1: value has the wrong kind (seq), want keys and values"},
		{"second document", "name: a\n---\nname: b\n", "FILE:2: a second YAML document, want one"},
		{"tab", "listen:\n\tapi: x\n", "FILE:2: found character that cannot start any token"},
	} {
		var got sample
		path, err := load(t, c.text, &got)
		if !errors.Is(err, ErrSyntax) {
			t.Errorf("%s: got %v, want ErrSyntax", c.name, err)
			continue
		}
		said := strings.ReplaceAll(err.Error(), path, "FILE")
		if want := c.want + ": " + ErrSyntax.Error(); said != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, said, want)
		}
	}
}

func TestLoadMissingFile(t *testing.T) {
	err := Load(filepath.Join(t.TempDir(), "none.yaml"), &sample{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v, want fs.ErrNotExist with the file's name", err)
	}
}

func TestWriteReplacesAtomicallyAndIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "berth", "berth.yaml")
	for _, name := range []string{"first", "second"} {
		want := sample{Name: name, Peers: []string{"x"}}
		if err := Write(path, want, 0o640); err != nil {
			t.Fatal(err)
		}
		var got sample
		if err := Load(path, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, want 0640", info.Mode().Perm())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v (%v), want the one file", left, err)
	}
}

func TestWriteThatFailsLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(folder, "taken")
	if err := os.MkdirAll(filepath.Join(target, "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(target, []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	left, _ := os.ReadDir(folder)
	if len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}
