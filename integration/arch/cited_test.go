package arch

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// awaited are documents that are cited and not here yet.
var awaited = []string{"reliability.md"}

// People who read the code have only what is in the repository.
func TestEveryCitedDocumentExists(t *testing.T) {
	document := regexp.MustCompile(`[\w./-]*\w\.md\b`)
	cited, here := make(map[string][]string), make(map[string]bool)
	sources(t, func(path string, text []byte) {
		if filepath.Ext(path) == ".md" {
			here[filepath.Base(path)] = true
		}
		if slices.Contains([]string{".go", ".md", ".proto", ".sh", ".yml", ".yaml", ""}, filepath.Ext(path)) {
			for _, name := range document.FindAllString(string(text), -1) {
				name = filepath.Base(name)
				cited[name] = append(cited[name], path)
			}
		}
	})
	for name, by := range cited {
		if !here[name] && !slices.Contains(awaited, name) {
			t.Errorf("%s is not in the repository and cited by %s", name, strings.Join(slices.Compact(by), ", "))
		}
	}
	for _, name := range awaited {
		if here[name] || len(cited[name]) == 0 {
			t.Errorf("nobody waits for %s any more: delete its row", name)
		}
	}
	if len(cited) == 0 {
		t.Error("no document is cited: this test looks at the wrong place")
	}
}
