package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/integration/built"
)

// typed checks the types of packages that a mutant has changed, against what the go command has built of the others. To build hundreds of
// mutants, with all that imports them, takes minutes; their types take seconds.
type typed struct {
	root      string
	positions *token.FileSet
	importer  types.Importer
	packages  map[string]map[string]*ast.File // by folder below the root: files by name
}

// typedOf reads the packages in which mutants are. Each is parsed once.
func typedOf(t *testing.T, root string) *typed {
	t.Helper()
	folders := make(map[string]bool)
	for i := range mutants {
		folders["./"+filepath.Dir(mutants[i].file)] = true
	}
	packages, err := built.List(t.Context(), root, slices.Sorted(maps.Keys(folders))...)
	if err != nil {
		t.Fatal(err)
	}
	c := &typed{root: root, positions: token.NewFileSet(), packages: make(map[string]map[string]*ast.File)}
	c.importer = built.Importer(c.positions, packages)
	for i := range packages {
		one := &packages[i]
		if folder, err := filepath.Rel(root, one.Dir); err == nil && folders["./"+folder] {
			c.packages[folder] = c.parse(t, one.Dir, one.GoFiles)
		}
	}
	return c
}

func (c *typed) parse(t *testing.T, folder string, names []string) map[string]*ast.File {
	t.Helper()
	files := make(map[string]*ast.File)
	for _, name := range names {
		file, err := parser.ParseFile(c.positions, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return files
}

// check tells what is wrong with the types of a mutant's package.
func (c *typed) check(m *mutant) error {
	source, err := m.changed(c.root)
	if err != nil {
		return err
	}
	folder, name := filepath.Split(m.file)
	files := maps.Clone(c.packages[filepath.Clean(folder)])
	if files[name] == nil {
		return fmt.Errorf("%s: the go command does not build it here", m.file)
	}
	if files[name], err = parser.ParseFile(c.positions, m.file, source, parser.SkipObjectResolution); err != nil {
		return fmt.Errorf("%s: %w: %w", m.name, errCompile, err)
	}
	config := types.Config{Importer: c.importer}
	if _, err = config.Check(filepath.Clean(folder), c.positions, slices.Collect(maps.Values(files)), nil); err != nil {
		return fmt.Errorf("%s: %w: %w", m.name, errCompile, err)
	}
	return nil
}

// What does not compile is told from what does.
func TestTypesTellWhatCompiles(t *testing.T) {
	checked := typedOf(t, rootOf(t))
	good := mutant{file: "coordinator/operation/verdict.go", is: "return CannotTell\n}", becomes: "return LostBoth\n}"}
	if err := checked.check(&good); err != nil {
		t.Error(err)
	}
	for becomes, says := range map[string]string{
		"return 1\n}":                       "cannot use 1",
		"unused := 1\n\treturn LostBoth\n}": "declared and not used",
		"return\n":                          "expected",
	} {
		bad := good
		bad.becomes = becomes
		if err := checked.check(&bad); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", becomes, err, says)
		}
	}
}
