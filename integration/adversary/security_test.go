package adversary

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named matches a folder, if one is named, and a test.
var named = regexp.MustCompile("(?:`([a-z]+(?:/[a-z]+)*)` )?`(Test[A-Za-z0-9]+)`")

func TestEachTestOfTheSecurityPageIsThere(t *testing.T) {
	page, err := os.ReadFile("../../.github/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	found := named.FindAllStringSubmatch(string(page), -1)
	if len(found) < 15 {
		t.Errorf("the page names %d tests", len(found))
	}
	for line := range strings.Lines(string(page)) {
		threat, is := strings.CutPrefix(line, "| ")
		if is && !strings.HasPrefix(threat, "it must never |") && !named.MatchString(line) {
			t.Errorf("no test shows this: %s", threat)
		}
	}
	for _, one := range found {
		folder := cmp.Or(one[1], "integration/adversary")
		files, err := filepath.Glob("../../" + folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			there = there || strings.Contains(string(text), "func "+one[2]+"(t *testing.T)")
		}
		if !there {
			t.Errorf("%s of %s is not there", one[2], folder)
		}
	}
}
