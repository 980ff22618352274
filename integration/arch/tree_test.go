package arch

import (
	"go/token"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// topLevel is all that may stand at the root. Documents stand beside what they describe.
var topLevel = []string{
	"agent", "coordinator", "shared", "packaging", "systemd", "integration",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
	".ci", ".github", ".golangci.yml", ".tools", ".gitignore",
	".git", "bin", "dist", // not in the repository
}

func TestTopLevelIsFixed(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(topLevel, entry.Name()) {
			t.Errorf("%s stands at the top level", entry.Name())
		}
	}
}

// Law 10.
func TestPackagesAreNamedForWhatTheyAreAbout(t *testing.T) {
	for _, p := range all(t) {
		if slices.Contains([]string{"util", "utils", "common", "types", "manager", "helpers", "helper", "misc"}, p.Name) {
			t.Errorf("%s: %q says nothing about what is in it", p.Path, p.Name)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	for _, p := range all(t) {
		if len(p.Files) == 0 {
			continue // generated
		}
		var with []string
		for _, f := range p.Files {
			if f.Syntax.Doc != nil && !strings.HasPrefix(f.Syntax.Doc.List[0].Text, "//go:") {
				with = append(with, f.Path)
			}
		}
		if len(with) != 1 {
			t.Errorf("%s has %d package comments %v, want 1", p.Path, len(with), with)
		}
	}
}

// What a daemon has to say goes to its logger, what a command has to say to the command's output, where tests and -o json
// see it. Only what serves the development writes to the terminal as it likes.
func TestTheProductDoesNotPrint(t *testing.T) {
	for _, p := range all(t) {
		if withinAny(p.Path, []string{"integration/...", "packaging/..."}) {
			continue
		}
		for _, f := range p.Files {
			f.uses(func(from, name string, at token.Position, _ bool) {
				if from == "fmt" && strings.HasPrefix(name, "Print") {
					t.Errorf("%s: fmt.%s", at, name)
				}
				if from == "log" {
					t.Errorf("%s: log.%s: a logger is passed in", at, name)
				}
			})
		}
	}
}

func TestNothingIsUnfinished(t *testing.T) {
	for _, p := range all(t) {
		for _, f := range p.Files {
			for _, group := range f.Syntax.Comments {
				for _, comment := range group.List {
					for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
						if strings.Contains(comment.Text, word) {
							t.Errorf("%s: %s", positions.Position(comment.Pos()), path.Clean(comment.Text))
						}
					}
				}
			}
		}
	}
}

// Generated code and go.mod are part of the sources: what is committed is what the tools make of them.
func TestTheModuleIsTidy(t *testing.T) {
	tidy := exec.Command("go", "mod", "tidy", "-diff")
	tidy.Dir = "../.."
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Errorf("go mod tidy: %v\n%s", err, out)
	}
}
