package clientconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name, flag string
		env        map[string]string
		want       []string
	}{
		{"flag", "x.yaml", map[string]string{Variable: "y.yaml", "HOME": "/root"}, []string{"x.yaml"}},
		{"environment", "", map[string]string{Variable: "y.yaml", "HOME": "/root"}, []string{"y.yaml"}},
		{"XDG", "", map[string]string{"XDG_CONFIG_HOME": "/cfg", "HOME": "/root"}, []string{"/cfg/berth/client.yaml", SystemPath}},
		{"home", "", map[string]string{"HOME": "/root"}, []string{"/root/.config/berth/client.yaml", SystemPath}},
		{"nothing", "", nil, []string{SystemPath}},
		{"relative XDG", "", map[string]string{"XDG_CONFIG_HOME": "cfg"}, []string{SystemPath}},
	} {
		if diff := cmp.Diff(c.want, Places(c.flag, env(c.env))); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestFindTakesTheFirstThatExists(t *testing.T) {
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first.yaml"), filepath.Join(folder, "second.yaml")
	_, _, err := Find([]string{first, second})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
		t.Errorf("got %v, want ErrNone with both places", err)
	}
	if err := (&Config{Current: "two"}).Save(second); err != nil {
		t.Fatal(err)
	}
	if c, path, err := Find([]string{first, second}); err != nil || path != second || c.Current != "two" {
		t.Errorf("got %v from %s (%v)", c, path, err)
	}
	if err := os.WriteFile(first, []byte("curent: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Find([]string{first, second}); err == nil || !strings.Contains(err.Error(), `first.yaml:1: unknown key "curent"`) {
		t.Errorf("a broken file was passed over: %v", err)
	}
}

func TestStoreIsFoundAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth", "client.yaml")
	for _, name := range []string{"prod", "test"} {
		credentials := Credentials{CA: []byte("ca of " + name), Certificate: []byte("cert"), Key: []byte("key")}
		if err := Store(path, name, []string{name + ":7420"}, credentials); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"prod", "test"}, c.Names()); diff != "" {
		t.Error(diff)
	}
	current, name, err := c.Context("", path)
	if err != nil || name != "test" {
		t.Fatalf("current context is %q (%v), want test", name, err)
	}
	if data, err := os.ReadFile(current.CA); err != nil || string(data) != "ca of test" {
		t.Errorf("%s holds %q (%v)", current.CA, data, err)
	}
	info, err := os.Stat(current.Key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v (%v), want 0600", info.Mode(), err)
	}
	prod, _, err := c.Context("prod", path)
	if diff := cmp.Diff([]string{"prod:7420"}, prod.Coordinators); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, name := range []string{"", "../x", "a/b", "-x"} {
		if err := Store(path, name, nil, Credentials{}); !errors.Is(err, ErrContext) {
			t.Errorf("Store under %q: got %v, want ErrContext", name, err)
		}
	}
}

func TestContextRefusals(t *testing.T) {
	whole := Context{Coordinators: []string{"c:1"}, CA: "/a", Certificate: "/b", Key: "/c"}
	keyless := whole
	keyless.Key = ""
	for _, c := range []struct {
		name   string
		config Config
		ask    string
		want   error
		say    string
	}{
		{"empty", Config{}, "", ErrContext, "x.yaml has no context"},
		{"no current", Config{Contexts: map[string]Context{"a": whole, "b": whole}}, "", ErrContext, "only a, b"},
		{"unknown", Config{Contexts: map[string]Context{"a": whole}}, "z", ErrContext, `"z", x.yaml has a`},
		{"no key", Config{Current: "a", Contexts: map[string]Context{"a": keyless}}, "", ErrInvalid, `context "a" has no key "key"`},
	} {
		_, _, err := c.config.Context(c.ask, "x.yaml")
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want %v that says %q", c.name, err, c.want, c.say)
		}
	}
	only := Config{Contexts: map[string]Context{"a": whole}}
	if _, name, err := only.Context("", "x.yaml"); err != nil || name != "a" {
		t.Errorf("the only context was not taken: %q, %v", name, err)
	}
}
