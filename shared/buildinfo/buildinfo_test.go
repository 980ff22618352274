package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestVersionPrefersTheReleaseThenTheToolchain(t *testing.T) {
	checkout := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"},
		{Key: "vcs.modified", Value: "true"},
	}
	for _, c := range []struct {
		name, release string
		info          debug.BuildInfo
		want          string
	}{
		{"release", "1.2.3", debug.BuildInfo{Main: debug.Module{Version: "v0.0.1"}}, "1.2.3"},
		{"module version", "", debug.BuildInfo{Main: debug.Module{Version: "v0.0.1"}}, "v0.0.1"},
		{"checkout", "", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: checkout}, "devel-0123456789ab+modified"},
		{"nothing known", "", debug.BuildInfo{}, "devel"},
	} {
		if got := pick(c.release, &c.info); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if Version() == "" {
		t.Error("a build without a version")
	}
}
