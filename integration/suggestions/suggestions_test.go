package suggestions

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	agent "berth/agent/command"
	"berth/coordinator/cli"
	"berth/coordinator/daemon"
)

// programs make the commands as the programs have them, by the program's name.
var programs = map[string]func() *cobra.Command{
	"berth": func() *cobra.Command {
		return cli.New(cli.Options{
			CoordinatorCommands: daemon.Commands(), SnapshotCommands: daemon.SnapshotCommands(), InitCommand: daemon.FirstCommand(),
		})
	},
	"berth-agent": agent.New,
}

// A message that suggests a command suggests one that the program takes.
func TestEverySuggestedCommandParses(t *testing.T) {
	known, checked := map[string]error{}, map[string]int{}
	for _, s := range suggestions(t) {
		words := strings.Fields(s.line)
		err, isKnown := known[s.line]
		if !isKnown {
			err = accepts(programs[words[0]], words[1:])
			known[s.line] = err
			checked[words[0]]++
		}
		if err != nil {
			t.Errorf("%s: '%s': %v", s.at, strings.Join(words, " "), err)
		}
	}
	if checked["berth"] < 100 || checked["berth-agent"] < 2 {
		t.Errorf("only %v suggestions are found: this test looks at the wrong place", checked)
	}
}

func TestWrongSuggestionsAreFound(t *testing.T) {
	for line, isRight := range map[string]bool{
		"vm show %s":                      true,
		"vm show":                         true, // names a command
		"vm set --help":                   true,
		"%s list":                         true,
		"disk grow %s SIZE":               true,
		"node fence NODE --confirmed-off": true,
		"vm shew %s":                      false,
		"%s lust":                         false,
		"machine show %s":                 false,
		"vm show %s %s":                   false,
		"vm show %s --ful":                false,
		"disk grow %s":                    false,
		"vm list --limit many":            false,
		"operation list running":          false,
		"vm frobnicate --help":            false,
	} {
		if err := accepts(programs["berth"], strings.Fields(line)); (err == nil) != isRight {
			t.Errorf("%q: %v", line, err)
		}
	}
}

type suggestion struct {
	at   token.Position
	line string // with verbs of fmt where values go
}

// quoted is a suggestion as messages have it. The second group is missing where the closing quote is.
var quoted = regexp.MustCompile(`'(berth(?:-agent)?\s[^']*)('?)`)

// suggestions are read from the texts in the sources of the programs.
func suggestions(t *testing.T) []suggestion {
	t.Helper()
	var found []suggestion
	positions := token.NewFileSet()
	for _, tree := range []string{"agent", "coordinator", "shared"} {
		err := filepath.WalkDir(filepath.Join("../..", tree), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			syntax, err := parser.ParseFile(positions, path, nil, parser.ParseComments)
			if err != nil || ast.IsGenerated(syntax) {
				return err
			}
			for text, at := range texts(syntax) {
				for _, match := range quoted.FindAllStringSubmatch(text, -1) {
					position := positions.Position(at)
					if match[2] == "" {
						t.Errorf("%s: %q has no closing quote", position, match[0])
					}
					found = append(found, suggestion{position, match[1]})
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// texts yields every string of a file. In a sum of strings, a verb of fmt stands for what is not a literal.
func texts(syntax *ast.File) func(yield func(string, token.Pos) bool) {
	return func(yield func(string, token.Pos) bool) {
		on := true
		var visit func(ast.Node) bool
		visit = func(n ast.Node) bool {
			expression, isExpression := n.(ast.Expr)
			if !on || !isExpression {
				return on
			}
			text, others, isText := fold(expression)
			if !isText {
				return true
			}
			on = yield(text, expression.Pos())
			for _, other := range others {
				ast.Inspect(other, visit)
			}
			return false
		}
		ast.Inspect(syntax, visit)
	}
}

// fold reads a literal, or a sum with literals. Others are the parts that are no literals.
func fold(expression ast.Expr) (text string, others []ast.Expr, isText bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, nil, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", nil, false
		}
		for _, side := range []ast.Expr{e.X, e.Y} {
			part, inside, sideIsText := fold(side)
			if !sideIsText {
				part, inside = "%s", []ast.Expr{side}
			}
			text, others, isText = text+part, append(others, inside...), isText || sideIsText
		}
	}
	return text, others, isText
}

var (
	verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)
	slot = regexp.MustCompile(`%(\[\d+\])?[a-z]|\b[A-Z]+\b`)
)

// samples stand for values in turn: one of them suits any flag.
var samples = []string{"web1", "1", "1G", "on"}

// accepts tells why no command takes the line, whatever its values are. A verb of fmt in the place of a command stands for
// one command at least that takes the rest.
func accepts(program func() *cobra.Command, words []string) (err error) {
	for _, line := range named(program(), words) {
		for _, sample := range samples {
			if err = parse(program(), slot.ReplaceAllLiteralString(strings.Join(line, " "), sample)); err == nil {
				return nil
			}
		}
	}
	return err
}

// named are the lines that words can be with the names of commands in the places of commands.
func named(parent *cobra.Command, words []string) [][]string {
	if len(words) == 0 {
		return [][]string{nil}
	}
	var lines [][]string
	for _, child := range parent.Commands() {
		isOne := verb.MatchString(words[0]) && (parent.HasParent() || child.HasSubCommands()) // a verb, or a noun with verbs
		if child.Name() != words[0] && !isOne {
			continue
		}
		for _, rest := range named(child, words[1:]) {
			lines = append(lines, append([]string{child.Name()}, rest...))
		}
	}
	if lines == nil {
		return [][]string{words}
	}
	return lines
}

// parse reads a line as the program would, and runs nothing. A line that is only the name of a command, or asks for its
// help, needs no arguments.
func parse(root *cobra.Command, line string) error {
	found, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err
	}
	found.InitDefaultHelpFlag()
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	args := found.Flags().Args()
	switch {
	case found.HasSubCommands() && len(args) > 0:
		return fmt.Errorf("%s has no command %q", found.CommandPath(), args[0])
	case len(rest) == 0 || found.Flags().Changed("help"):
		return nil
	case found.HasSubCommands():
		return errors.New("names no verb")
	}
	return found.ValidateArgs(args)
}
