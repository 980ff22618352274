package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pkg is one package of the module with its parsed product files; tests and generated code are left out.
type pkg struct {
	Path    string // without the module's name: "coordinator/model"
	Name    string
	Dir     string
	Imports []string
	Cgo     bool
	Files   []file
}

type file struct {
	Path   string // relative to the module
	Syntax *ast.File
	Lines  int
}

const module = "berth/"

var positions = token.NewFileSet()

// packages reads the module once for all tests.
var packages = sync.OnceValues(func() ([]pkg, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", "-e", "-tags", "libvirt_dlopen", "-json=ImportPath,Name,Dir,Imports,GoFiles,CgoFiles", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	var found []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var entry struct {
			ImportPath, Name, Dir      string
			Imports, GoFiles, CgoFiles []string
		}
		switch err := decoder.Decode(&entry); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		p := pkg{
			Path: strings.TrimPrefix(entry.ImportPath, module), Name: entry.Name, Dir: entry.Dir, Imports: entry.Imports,
			Cgo: len(entry.CgoFiles) > 0,
		}
		for _, name := range append(entry.GoFiles, entry.CgoFiles...) {
			parsed, err := parse(root, filepath.Join(entry.Dir, name))
			if err != nil {
				return nil, err
			}
			if !ast.IsGenerated(parsed.Syntax) {
				p.Files = append(p.Files, parsed)
			}
		}
		found = append(found, p)
	}
})

func parse(root, path string) (file, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	syntax, err := parser.ParseFile(positions, path, source, parser.ParseComments)
	if err != nil {
		return file{}, err
	}
	relative, err := filepath.Rel(root, path)
	return file{Path: relative, Syntax: syntax, Lines: bytes.Count(source, []byte("\n"))}, err
}

// all is every package of the module.
func all(t *testing.T) []pkg {
	t.Helper()
	found, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("go list found no package")
	}
	return found
}

// within tells whether path matches the pattern: "a/b" is that package, "a/b/..." also everything below it.
func within(path, pattern string) bool {
	tree, found := strings.CutSuffix(pattern, "/...")
	return path == tree || found && strings.HasPrefix(path, tree+"/")
}

func withinAny(path string, patterns []string) bool {
	for _, pattern := range patterns {
		if within(path, pattern) {
			return true
		}
	}
	return false
}

// ours are the imports of p from this module, without the module's name.
func (p pkg) ours() []string {
	var paths []string
	for _, path := range p.Imports {
		if short, found := strings.CutPrefix(path, module); found {
			paths = append(paths, short)
		}
	}
	return paths
}

// uses visits every use in f of a name from another package. A call is told apart from any other use.
func (f file) uses(visit func(path, name string, at token.Position, called bool)) {
	imported := map[string]string{}
	for _, spec := range f.Syntax.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		} else if name == "v2" || name == "v3" {
			name = filepath.Base(filepath.Dir(path))
		}
		imported[name] = path
	}
	called := map[ast.Expr]bool{}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[n.Fun] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imported[x.Name] != "" {
				visit(imported[x.Name], n.Sel.Name, positions.Position(n.Pos()), called[n])
			}
		}
		return true
	})
}
