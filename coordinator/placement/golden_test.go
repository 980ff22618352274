package placement

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected half of the golden files")

const goldenMark = "---\n"

// Each golden file has a scenario, a line of dashes, and what the engine says to it. A new rule comes with one.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given, want, _ := strings.Cut(string(content), goldenMark)
			s := parseScenario(t, given)
			var explained []string
			var decision Decision
			for _, one := range s.asked {
				explained = append(explained, s.answer(t, one, &decision))
			}
			got := strings.Join(explained, "\n")
			if *update {
				if err := os.WriteFile(file, []byte(given+goldenMark+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
