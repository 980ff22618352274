package packaging

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// built is the folder with the packages that all tests look at, and said what was printed while they were built.
var (
	built string
	said  []byte
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "berth-packaging-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(folder)
		built = folder
		if said, err = build(built); err != nil {
			fmt.Fprintf(os.Stderr, "packaging/build: %v\n%s", err, said)
			return 1
		}
		return m.Run()
	}())
}

// version sorts before the release, and after what is built on the way to it.
const version = "1.2.3~rc1"

func build(folder string) ([]byte, error) {
	command := exec.Command("./build", folder)
	command.Env = append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH=1790000000")
	return command.CombinedOutput()
}

// find is the one package in folder that matches.
func find(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v, want one package", pattern, found, err)
	}
	return found[0]
}

var patterns = []string{"berth-[0-9]*.rpm", "berth_*.deb", "berth-agent-[0-9]*.rpm", "berth-agent_*.deb"}

// Each step is told when it begins, with the time that has passed. Lines that say that a step goes on may stand between them.
func TestBuildingShowsThatItLives(t *testing.T) {
	line := regexp.MustCompile(`^packages: +([0-9]+)s (.*)$`)
	steps := []string{
		"version " + version + " for ", "building berth", "building berth-agent", "writing manual pages and completions",
		"packing berth-agent as rpm", "packing berth-agent as deb", "packing berth as rpm", "packing berth as deb", "done: ",
	}
	passed, told := 0, 0
	for _, text := range strings.Split(string(said), "\n") {
		parts := line.FindStringSubmatch(text)
		if parts == nil || strings.HasPrefix(parts[2], "still ") {
			continue
		}
		if told == len(steps) || !strings.HasPrefix(parts[2], steps[told]) {
			t.Fatalf("step %d of %q is told as %q", told, steps, text)
		}
		seconds, err := strconv.Atoi(parts[1])
		if err != nil || seconds < passed {
			t.Errorf("%q comes after %d s: %v", text, passed, err)
		}
		passed, told = seconds, told+1
	}
	if told != len(steps) {
		t.Errorf("%d of %d steps are told in:\n%s", told, len(steps), said)
	}
}

func TestTheSameSourcesGiveTheSameBytes(t *testing.T) {
	again := t.TempDir()
	if out, err := build(again); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, pattern := range patterns {
		one, other := find(t, built, pattern), find(t, again, pattern)
		if digest(t, one) != digest(t, other) || filepath.Base(one) != filepath.Base(other) {
			t.Errorf("%s and %s differ", one, other)
		}
	}
}

func digest(t *testing.T, path string) [32]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(content)
}

// lintianTags may be said about our packages.
var lintianTags = strings.Join([]string{
	"maintainer-script-calls-systemctl",  // one script serves both formats
	"shared-library-lacks-prerequisites", // a static position-independent program looks like a library
}, ",")

func TestTheDistributionsChecksPass(t *testing.T) {
	for _, pattern := range patterns {
		path := find(t, built, pattern)
		check := exec.Command("rpmlint", "--config", "rpmlint.toml", "--strict", path)
		if strings.HasSuffix(path, ".deb") {
			check = exec.Command("lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", lintianTags, path)
		}
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", check.Args, err, out)
		}
	}
}

// listed leaves out the pages of single commands: they come and go with the commands.
func listed(line string) bool {
	name := filepath.Base(strings.TrimSpace(line))
	return !strings.Contains(line, "/man1/berth") || name == "berth.1.gz" || name == "berth-agent.1.gz"
}

func TestPackagesHoldWhatTheyShould(t *testing.T) {
	for _, pattern := range patterns {
		path := find(t, built, pattern)
		// Mode, owner, configuration or not, name.
		list := exec.Command(
			"rpm", "--query", "--package", path, "--queryformat",
			"[%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILEFLAGS:fflags} %{FILENAMES}\n]",
		)
		if strings.HasSuffix(path, ".deb") {
			list = exec.Command(
				"sh", "-c", `dpkg-deb --contents "$1" | awk '{ print $1, $2, $6 }' && echo configuration: && dpkg-deb --info "$1" conffiles`,
				"sh", path,
			)
		}
		out, err := list.Output()
		if err != nil {
			t.Fatalf("%v: %v", list.Args, err)
		}
		var kept []string
		for line := range strings.Lines(string(out)) {
			if listed(line) {
				kept = append(kept, line)
			}
		}
		golden(t, strings.NewReplacer("-[0-9]*", "", "_*", "").Replace(pattern), strings.Join(kept, ""))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestBinariesSayTheVersionOfTheirPackage(t *testing.T) {
	for _, program := range []string{"berth", "berth-agent"} {
		out, err := exec.Command(filepath.Join(built, "stage/bin", program), "version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), version) {
			t.Errorf("%s version: %v, %q, want %s", program, err, out, version)
		}
	}
}

// Two and a half of ten is the goal, and two is what systemd calls OK. Whoever opens the units further has to say so here.
func TestUnitsExposeLittle(t *testing.T) {
	units, err := filepath.Glob("../systemd/*.service")
	if err != nil || len(units) < 5 {
		t.Fatalf("units: %q, %v", units, err)
	}
	for _, unit := range units {
		most := "20"
		if filepath.Base(unit) == "berth-libvirt-tls.service" {
			most = "25" // root's, because what libvirt and QEMU trust is root's; it runs for a moment
		}
		out, err := exec.Command(
			"systemd-analyze", "security", "--offline=true", "--threshold="+most, "--no-pager", unit,
		).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}
