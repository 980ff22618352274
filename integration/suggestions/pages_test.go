package suggestions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// inBlock is a command on a line of a block, inText one in prose, where it may go on on the next line.
	inBlock = regexp.MustCompile(`(?m)(?:^ *|\| |do )(berth(?:-agent)?) ((?:[^|;#\n\\]|\\\n)+)`)
	inText  = regexp.MustCompile("`(berth(?:-agent)?)\\s([^`]+)`")
	fenced  = regexp.MustCompile("(?ms)^```.*?^```|^    [^\n]*")
	said    = regexp.MustCompile(`"[^"]*"|'[^']*'`)
)

// Commands of the README and the manual are such as the programs take, also those that the manual's own test does not run.
func TestEveryCommandOfThePagesParses(t *testing.T) {
	pages, err := filepath.Glob("../../packaging/docs/manual/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var found [][]string
		for _, block := range fenced.FindAllString(string(text), -1) {
			found = append(found, inBlock.FindAllStringSubmatch(block, -1)...)
		}
		found = append(found, inText.FindAllStringSubmatch(fenced.ReplaceAllLiteralString(string(text), ""), -1)...)
		for _, match := range found {
			line := said.ReplaceAllLiteralString(strings.NewReplacer("\\\n", " ", "COMMAND", "%s").Replace(match[2]), "x")
			checked++
			if err := accepts(programs[match[1]], strings.Fields(line)); err != nil {
				t.Errorf("%s: %s %s: %v", filepath.Base(page), match[1], strings.Join(strings.Fields(line), " "), err)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d commands are found: this test looks at the wrong place", checked)
	}
}
