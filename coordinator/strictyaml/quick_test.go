package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// tree is what the library reads; nil if it refuses the file or finds more than one document.
func tree(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if decoder.Decode(&document) != nil || !errors.Is(decoder.Decode(&second), io.EOF) || len(document.Content) != 1 {
		return nil
	}
	return document.Content[0]
}

func list(indent, n int, item func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s- {%s}\n", strings.Repeat(" ", indent), item(i))
	}
	return b.String()
}

func TestQuickReadsWhatTheLibraryReads(t *testing.T) {
	plain := func(i int) string {
		return fmt.Sprintf("name: node%05d, memory: %dG, cpus: %d, on: yes, load: 0.%d", i, i, i, i)
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"one list":        {"nodes:\n" + list(2, 100, plain) + "last: 1\n", true},
		"no indent":       {"# before\nnodes:\n" + list(0, 100, plain) + "more:\n  deep:\n" + list(4, 50, plain), true},
		"list in a list":  {"a:\n  - b:\n" + list(6, 40, plain) + "    c: 1\n  - {d: 1}\n", true},
		"no last newline": {"nodes:\n" + strings.TrimSuffix(list(2, 40, plain), "\n"), true},
		"other items between": {
			"nodes:\n" + list(2, 40, plain) + "  - {name: \"quoted\"}\n  # why\n\n" + list(2, 40, plain) + "  - plain\n", true,
		},
		"odd values": {
			"nodes:\n" + list(2, 40, func(int) string { return "a: 0x1F, b: 012, c: 2026-01-01, d: null, e: 1e3, y: 1_000, f: true, g: 0.5K" }),
			true,
		},
		"too short":            {"nodes:\n" + list(2, 5, plain), false},
		"text that looks like": {"text: |\n" + list(2, 100, plain), false},
		"folded text":          {"text: folded\n" + list(2, 100, plain), false},
		"not plain":            {"nodes:\n" + list(2, 100, func(int) string { return "name: {a: 1}" }), false},
		"two documents":        {"nodes:\n" + list(2, 100, plain) + "---\na: 1\n", false},
		"no YAML":              {"nodes:\n" + list(2, 100, plain) + "a: [\n", false},
		"carriage returns":     {strings.ReplaceAll("nodes:\n"+list(2, 100, plain), "\n", "\r\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := quick([]byte(c.text))
			if ok != c.ok {
				t.Fatalf("read: %t, want %t", ok, c.ok)
			}
			if want := tree([]byte(c.text)); ok && !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func TestQuickNeverReadsAnythingElse(t *testing.T) {
	lines := rapid.SampledFrom([]string{
		"a:", "  - {b: 1}", "  - {b: x, c: 2G}", "  - {b: 007, c: 1.5}", "- {b: y}", "    - {b: n}", "b: |", "  text", "- - {b: 1}",
		"  - {b: 1, }", "  - {b: 1,c: 2}", "  - {b: a#c}", "  - {b: a, b: c} # d", "---", "  - &x {b: 1}", "", "c: 'x",
		"  -  {b: 1}", "\t- {b: 1}",
	})
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "blocks") {
			line := lines.Draw(t, "line") + "\n"
			b.WriteString(strings.Repeat(line, rapid.SampledFrom([]int{1, 1, 2, quickRun}).Draw(t, "times")))
		}
		if got, ok := quick([]byte(b.String())); ok {
			if want := tree([]byte(b.String())); !cmp.Equal(got, want) {
				t.Fatalf("%s\n%s", b.String(), cmp.Diff(want, got))
			}
		}
	})
}
