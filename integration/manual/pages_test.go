package manual

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// folder is where the pages are. The contents name them in the order in which they are read, and run.
const (
	folder   = "../../packaging/docs/manual"
	contents = "index.md"
)

// skipped are the reasons for which commands of the pages are not run here, each with how many lines have it. A count may go down
// freely; whoever lets one go up says why a simulated site cannot do it.
var skipped = map[string]int{
	"BMC":         4, // a board that switches a machine
	"coordinator": 6, // the machine of another one, or of one that is stopped
	"hypervisor":  8, // run there: by the agent, virsh and the package manager
	"packages":    2, // integration/acceptance installs them
	"power":       1, // a rack that is off
	"restore":     1, // everything else would begin anew
	"service":     3, // systemd
	"ssh":         3, // hosts join without it
	"terminal":    1,
}

// command is one line of a page that people type, with the lines that continue it.
type command struct {
	page, text, skip string
	line, exit       int
}

func (c command) String() string { return fmt.Sprintf("%s:%d: %s", c.page, c.line, c.text) }

// file is what a page has people write into a file.
type file struct{ name, text string }

// step is a command or a file, in the order of the page.
type step struct {
	command
	file
}

// order is which pages there are, as the contents name them.
func order(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, contents))
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, found := range regexp.MustCompile(`\]\(([a-z-]+\.md)\)`).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(pages, found[1]) {
			pages = append(pages, found[1])
		}
	}
	return pages
}

// steps are what a page tells people to do. A block begins with ```sh, and may say "skip=REASON", or "exit=CODE" where the command
// is to end with that; a block ```yaml file=NAME is a file.
func steps(page, text string) ([]step, error) {
	var found []step
	var open bool
	var info []string
	var block file
	var next command
	for i, line := range strings.Split(text, "\n") {
		if fence, is := strings.CutPrefix(line, "```"); is {
			if open && block.name != "" {
				found = append(found, step{file: block})
			}
			if open && next.text != "" {
				return nil, fmt.Errorf("%s:%d: the command is continued nowhere", page, i+1)
			}
			open, info, block = !open, strings.Fields(fence), file{}
			next = command{}
			for _, attribute := range info {
				if name, is := strings.CutPrefix(attribute, "file="); is {
					block.name = name
				}
			}
			continue
		}
		if !open {
			if strings.HasPrefix(line, "    ") && strings.Contains(line, "berth ") {
				return nil, fmt.Errorf("%s:%d: commands stand in a block ```sh", page, i+1)
			}
			continue
		}
		block.text += line + "\n"
		if len(info) == 0 || info[0] != "sh" || strings.TrimSpace(line) == "" && next.text == "" {
			continue
		}
		if next.text == "" {
			next = command{page: page, line: i + 1}
			for _, attribute := range info[1:] {
				name, value, _ := strings.Cut(attribute, "=")
				var err error
				switch name {
				case "skip":
					next.skip = value
				case "exit":
					next.exit, err = strconv.Atoi(value)
				default:
					err = fmt.Errorf("unknown word %q after the fence", attribute)
				}
				if err != nil {
					return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
				}
			}
		} else {
			next.text += "\n"
		}
		next.text += line
		if !strings.HasSuffix(line, `\`) {
			found = append(found, step{command: next})
			next = command{}
		}
	}
	if open {
		return nil, fmt.Errorf("%s: a block has no end", page)
	}
	return found, nil
}

// all are the steps of all pages.
func all(t *testing.T) []step {
	t.Helper()
	var list []step
	for _, page := range order(t) {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Fatal(err)
		}
		found, err := steps(page, string(text))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}

func TestTheContentsNameEveryPage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var here []string
	for _, path := range files {
		if name := filepath.Base(path); name != contents {
			here = append(here, name)
		}
	}
	list, err := os.ReadFile("../../packaging/berth.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(here, contents) {
		if !strings.Contains(string(list), "packaging/docs/manual/"+name+",") {
			t.Errorf("packaging/berth.yaml does not have %s for the RPM", name)
		}
	}
	named := order(t)
	slices.Sort(named)
	if !slices.Equal(named, here) || len(here) < 15 {
		t.Errorf("%s names %v, and the pages are %v", contents, named, here)
	}
}

// What is not run is counted, so that a page does not hide there.
func TestFewCommandsAreNotRun(t *testing.T) {
	counts, ran := map[string]int{}, 0
	for _, s := range all(t) {
		switch {
		case s.command.skip != "":
			counts[s.command.skip]++
		case s.command.text != "":
			ran++
		}
	}
	total := 0
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		total += counts[reason]
		if most := skipped[reason]; counts[reason] > most {
			t.Errorf("%d commands are not run for the reason %q, and %d may be", counts[reason], reason, most)
		}
	}
	for reason, most := range skipped {
		if counts[reason] < most {
			t.Errorf("%d commands are not run for the reason %q: write that down instead of %d", counts[reason], reason, most)
		}
	}
	if ran < 2*total {
		t.Errorf("%d commands are run and %d are not: too much hides there", ran, total)
	}
}

func TestStepsOfAPage(t *testing.T) {
	const page = "Text.\n\n```sh\nberth a \\\n    --b\nberth c # why\n```\n```sh skip=BMC exit=2\nberth d\n```\n" +
		"```yaml file=x.yaml\na: 1\n```\n```text\nberth no\n```\n"
	got, err := steps("hosts.md", page)
	want := []step{
		{command: command{page: "hosts.md", line: 4, text: "berth a \\\n    --b"}},
		{command: command{page: "hosts.md", line: 6, text: "berth c # why"}},
		{command: command{page: "hosts.md", line: 9, text: "berth d", skip: "BMC", exit: 2}},
		{file: file{"x.yaml", "a: 1\n"}},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{
		"```sh\nberth a\n", "```sh\nberth a \\\n```\n", "```sh skp=x\nberth a\n```\n", "    berth a\n", "```sh exit=x\nberth a\n```\n",
	} {
		if got, err := steps("hosts.md", wrong); err == nil {
			t.Errorf("%q is read as %v", wrong, got)
		}
	}
}
