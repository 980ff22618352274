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
		"berth-agent.service", "berth-coordinator.service", "berth-fence@.service", "berth-libvirt-tls.service",
		"berth-status-files.service",
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

// The coordinator asks the socket that its package has, which it alone may connect to. What answers there has another account, and
// neither the coordinator's folder nor a capability.
func TestFenceAgentsHaveAnAccountOfTheirOwn(t *testing.T) {
	const coordinator, socket, service = "berth-coordinator.service", "berth-fence.socket", "berth-fence@.service"
	words := func(unit, name string) []string { return strings.Fields(strings.Join(setting(t, unit, name), " ")) }
	run := words(coordinator, "ExecStart")
	at := slices.Index(run, "--fence-socket")
	if at < 0 || !slices.Equal(words(socket, "ListenStream"), run[at+1:at+2]) {
		t.Errorf("the coordinator is run by %q, and the socket is %q", run, words(socket, "ListenStream"))
	}
	for _, name := range []string{"Wants", "After"} {
		if !slices.Contains(words(coordinator, name), socket) {
			t.Errorf("%s of the coordinator is %q, without %s", name, words(coordinator, name), socket)
		}
	}
	own := words(coordinator, "User")
	if !slices.Equal(words(socket, "SocketUser"), own) || !slices.Equal(words(socket, "SocketMode"), []string{"0600"}) ||
		!slices.Equal(words(socket, "Accept"), []string{"yes"}) {
		t.Errorf("others than %q may connect, or one process answers all", own)
	}
	accounts, err := os.ReadFile("../systemd/berth.sysusers.conf")
	if err != nil {
		t.Fatal(err)
	}
	user := words(service, "User")
	if len(user) != 1 || slices.Equal(user, own) || !strings.Contains(string(accounts), "\nu "+user[0]+" ") ||
		strings.Contains(string(accounts), "m "+user[0]+" ") {
		t.Errorf("fence agents run as %q, which is the coordinator's account, in a group of others, or none that the package makes", user)
	}
	if !slices.Contains(words(service, "InaccessiblePaths"), "-/var/lib/berth") {
		t.Errorf("fence agents see the coordinator's folder: %q", words(service, "InaccessiblePaths"))
	}
	if bounding := setting(t, service, "CapabilityBoundingSet"); !slices.Equal(bounding, []string{""}) {
		t.Errorf("fence agents may have the capabilities %q", bounding)
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
