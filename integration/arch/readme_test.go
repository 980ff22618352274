package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// frontPage is how long the README may be, in bytes: it is a front page, and the manual has the rest.
const frontPage = 10 << 10

func TestTheREADMEIsAFrontPage(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > frontPage {
		t.Errorf("README.md has %d bytes, and %d are enough for a front page: write it in packaging/docs/manual", len(text), frontPage)
	}
}

// Whoever follows the README or the manual finds what they name: other pages, files of the tree and targets of make.
func TestWhatTheManualNamesIsThere(t *testing.T) {
	pages, err := filepath.Glob("../../packaging/docs/manual/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d pages of the manual, %v", len(pages), err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var (
		link   = regexp.MustCompile(`\]\(([^)#]+)`)
		path   = regexp.MustCompile("`((?:[.\\w]+/)+[\\w.]+\\.(?:md|go|yaml))`")
		target = regexp.MustCompile(`(?m)(?:\x60|^    )(?:KEEP=1 )?make (\w+)`)
		found  = map[string]int{}
	)
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			found["link"]++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil && !strings.Contains(match[1], "://") {
				t.Errorf("%s leads to %s: %v", page, match[1], err)
			}
		}
		for _, match := range path.FindAllStringSubmatch(string(text), -1) {
			found["path"]++
			if _, err := os.Stat(filepath.Join("../..", match[1])); err != nil {
				t.Errorf("%s names %s: %v", page, match[1], err)
			}
		}
		for _, match := range target.FindAllStringSubmatch(string(text), -1) {
			found["target"]++
			if !regexp.MustCompile(`(?m)^` + match[1] + `:`).Match(makefile) {
				t.Errorf("%s names the target %s, and the Makefile has none", page, match[1])
			}
		}
	}
	if found["link"] < 40 || found["path"] < 5 || found["target"] < 5 {
		t.Errorf("only %v are found: this test looks at the wrong place", found)
	}
}
