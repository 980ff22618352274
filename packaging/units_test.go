package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// setting gives the values of a setting of a unit.
func setting(t *testing.T, unit, name string) []string {
	t.Helper()
	text, err := os.ReadFile("../systemd/" + unit)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+"="); is {
			values = append(values, value)
		}
	}
	return values
}

func TestUnitsHaveALimitOfMemory(t *testing.T) {
	for _, unit := range []string{
		"berth-agent.service", "berth-coordinator.service", "berth-libvirt-tls.service", "berth-status-files.service",
	} {
		for _, name := range []string{"MemoryHigh", "MemoryMax"} {
			if is := setting(t, unit, name); len(is) != 1 || is[0] == "infinity" {
				t.Errorf("%s: %s is %q", unit, name, is)
			}
		}
	}
}

// What root does in a folder of another account must not give that account what is root's elsewhere.
func TestUnitsGiveAwayNoFileThatIsElsewhereToo(t *testing.T) {
	for unit, folder := range map[string]string{
		"berth-agent.service": "/var/lib/berth/agent", "berth-coordinator.service": "/var/lib/berth/coordinator",
	} {
		var words []string
		for _, line := range setting(t, unit, "ExecStartPre") {
			if strings.Contains(line, "chown") {
				words = strings.Fields(strings.TrimPrefix(line, "+"))
			}
		}
		if len(words) == 0 {
			t.Fatalf("%s gives no file away", unit)
		}
		root := t.TempDir()
		own, shadow := filepath.Join(root, "own"), filepath.Join(root, "shadow")
		for _, err := range []error{
			os.Mkdir(own, 0o700), os.WriteFile(filepath.Join(own, "file"), nil, 0o600), os.WriteFile(shadow, nil, 0o600),
			os.Link(shadow, filepath.Join(own, "link")), os.Symlink(shadow, filepath.Join(own, "symbolic")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		words = append(words[:slices.Index(words, "/bin/chown")], "/bin/echo", "{}", "+")
		words[slices.Index(words, folder)] = own
		words[slices.Index(words, "root")] = strconv.Itoa(os.Getuid()) // the files here are whose the test is
		out := run1(t, words[0], words[1:]...)
		if !strings.Contains(out, "file") || strings.Contains(out, "link") || strings.Contains(out, "symbolic") {
			t.Errorf("%s gives away %q", unit, out)
		}
	}
}

func run1(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, arguments...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", name, arguments, err)
	}
	return string(out)
}
