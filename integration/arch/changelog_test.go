package arch

import (
	"os"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxNote is how long a note of the changelog may be: packages have a line for each, and distributions refuse longer ones.
const maxNote = 76

// The packages are built from the changelog late in a run. That it can be read is known at once.
func TestTheChangelogFitsThePackages(t *testing.T) {
	text, err := os.ReadFile("../../packaging/changelog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var releases []struct {
		Semver  string `yaml:"semver"`
		Changes []struct {
			Note string `yaml:"note"`
		} `yaml:"changes"`
	}
	if err := yaml.Unmarshal(text, &releases); err != nil {
		t.Fatal(err)
	}
	notes := 0
	for _, release := range releases {
		for _, change := range release.Changes {
			notes++
			if n := utf8.RuneCountInString(change.Note); n == 0 || n > maxNote {
				t.Errorf("release %s: a note has %d characters, want 1 to %d: %q", release.Semver, n, maxNote, change.Note)
			}
		}
	}
	if notes == 0 {
		t.Error("no note was read: this test looks at the wrong place")
	}
}
