package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxLines   = 600  // of a file
	maxPackage = 4000 // lines of a package, tests left out: what one person keeps in mind
	maxMethods = 40   // of a type
	maxColumns = 140  // of a line, in tests too
)

// A ratchet lists what breaks a law since before the law was made, with the figure that it may not exceed. A figure may be
// lowered but not raised, and a row that is no longer needed has to go.
type ratchet map[string]int

// hold compares the figures of a law with its limit.
func (r ratchet) hold(t *testing.T, what string, limit int, found map[string]int) {
	t.Helper()
	if len(found) == 0 {
		t.Error("nothing was measured: this test looks at the wrong place")
	}
	for name, n := range found {
		if most := max(limit, r[name]); n > most {
			t.Errorf("%s has %d %s, more than %d: split it by idea", name, n, what, most)
		}
	}
	for name := range r {
		if n, known := found[name]; !known || n <= limit {
			t.Errorf("%s: it has %d %s now and keeps the law: delete its row", name, n, what)
		}
	}
}

func TestFilesHoldOneIdea(t *testing.T) {
	found := make(map[string]int)
	for _, p := range all(t) {
		for _, f := range p.Files {
			found[f.Path] = f.Lines
		}
	}
	ratchet{}.hold(t, "lines", maxLines, found)
}

func TestPackagesAreRooms(t *testing.T) {
	found := make(map[string]int)
	for _, p := range all(t) {
		for _, f := range p.Files {
			found[p.Path] += f.Lines
		}
	}
	ratchet{}.hold(t, "lines", maxPackage, found)
}

func TestEveryTypeHasFewMethods(t *testing.T) {
	found := make(map[string]int)
	for _, p := range all(t) {
		for _, f := range p.Files {
			for _, declaration := range f.Syntax.Decls {
				if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil {
					found[p.Path+"."+receiver(method)]++
				}
			}
		}
	}
	ratchet{}.hold(t, "methods", maxMethods, found)
}

// receiver is the name of the type that a method belongs to.
func receiver(method *ast.FuncDecl) string {
	of := method.Recv.List[0].Type
	for {
		switch at := of.(type) {
		case *ast.StarExpr:
			of = at.X
		case *ast.IndexExpr:
			of = at.X
		case *ast.IndexListExpr:
			of = at.X
		case *ast.Ident:
			return at.Name
		default:
			return ""
		}
	}
}

// A line of a raw string over several lines is text of its own, such as a golden file in a test.
func TestEveryLineFitsTheScreen(t *testing.T) {
	var long []string
	sources(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		syntax, err := parser.ParseFile(positions, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(syntax) {
			return
		}
		raw := rawLines(syntax)
		for i, line := range bytes.Split(text, []byte("\n")) {
			if utf8.RuneCount(line) > maxColumns && !raw[i+1] {
				long = append(long, fmt.Sprintf("%s:%d", path, i+1))
			}
		}
	})
	if len(long) > 0 {
		t.Errorf("lines are longer than %d columns: %s", maxColumns, strings.Join(long, ", "))
	}
}

// rawLines are the numbers of the lines of raw strings over several lines.
func rawLines(syntax *ast.File) map[int]bool {
	raw := make(map[int]bool)
	ast.Inspect(syntax, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && text.Value[0] == '`' {
			first, last := positions.Position(text.Pos()).Line, positions.Position(text.End()).Line
			for line := first; line <= last && first != last; line++ {
				raw[line] = true
			}
		}
		return true
	})
	return raw
}

// sources visits every file of the repository with its text, but for what is built.
func sources(t *testing.T, visit func(path string, text []byte)) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, at)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == ".git" || path == "bin" || path == "dist"):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(at)
		if err == nil {
			visit(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
