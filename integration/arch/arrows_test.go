package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/integration/built"
)

// rooms are packages whose files have an order: each uses only what files below it declare.
var rooms = []string{"coordinator/control/...", "coordinator/evidence"}

// Files that use each other in a circle can only be read, changed and tested together.
func TestFilesOfARoomUseOnlyFilesBelow(t *testing.T) {
	importer := imports(t)
	for _, p := range all(t) {
		if !withinAny(p.Path, rooms) {
			continue
		}
		uses := p.uses(t, importer)
		for _, circle := range circles(uses) {
			t.Errorf("%s: these files use each other in a circle: %s", p.Path, strings.Join(circle, ", "))
			for _, from := range circle {
				for _, to := range circle {
					if names := uses[from][to]; from != to && len(names) > 0 {
						t.Logf("%s -> %s: %s", from, to, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
					}
				}
			}
		}
	}
}

// imports imports what the rooms import.
func imports(t *testing.T) types.Importer {
	t.Helper()
	patterns := make([]string, len(rooms))
	for i, room := range rooms {
		patterns[i] = "./" + room
	}
	packages, err := built.List(t.Context(), "../..", patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return built.Importer(positions, packages)
}

// uses are the names that each of the package's files uses of each file: functions, methods, types, constants and variables. A call
// through an interface uses the interface only.
func (p pkg) uses(t *testing.T, importer types.Importer) map[string]map[string]map[string]bool {
	t.Helper()
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: importer}
	var files []*ast.File
	for _, f := range p.Files {
		files = append(files, f.Syntax)
	}
	self, err := config.Check(module+p.Path, positions, files, info)
	if err != nil {
		t.Fatal(err)
	}
	fileOf := func(at token.Pos) string { return filepath.Base(positions.Position(at).Filename) }
	uses := make(map[string]map[string]map[string]bool)
	for use, object := range info.Uses {
		function, isFunction := object.(*types.Func)
		switch {
		case object.Pkg() != self:
			continue
		case isFunction && function.Signature().Recv() != nil:
			if types.IsInterface(function.Signature().Recv().Type()) {
				continue
			}
		case object.Parent() != self.Scope(): // a parameter, a local variable, a field
			continue
		}
		from, to := fileOf(use.Pos()), fileOf(object.Pos())
		if uses[from] == nil {
			uses[from] = make(map[string]map[string]bool)
		}
		if uses[from][to] == nil {
			uses[from][to] = make(map[string]bool)
		}
		uses[from][to][object.Name()] = true
	}
	return uses
}

// circles are the groups of names, ascending, that reach each other.
func circles[V any](uses map[string]map[string]V) [][]string {
	reach := make(map[string]map[string]bool)
	for from := range uses {
		reach[from] = make(map[string]bool)
		for next := []string{from}; len(next) > 0; {
			at := next[0]
			next = next[1:]
			for to := range uses[at] {
				if to != at && !reach[from][to] {
					reach[from][to] = true
					next = append(next, to)
				}
			}
		}
	}
	var found [][]string
	grouped := make(map[string]bool)
	for _, from := range slices.Sorted(maps.Keys(reach)) {
		if grouped[from] || !reach[from][from] {
			continue
		}
		var circle []string
		for _, to := range slices.Sorted(maps.Keys(reach[from])) {
			if reach[to][from] {
				circle, grouped[to] = append(circle, to), true
			}
		}
		found = append(found, circle)
	}
	return found
}

func TestCirclesAreFound(t *testing.T) {
	uses := map[string]map[string]bool{
		"a": {"a": true, "b": true}, "b": {"c": true}, "c": {"b": true, "d": true}, "d": {"d": true}, "e": {"f": true}, "f": {"g": true},
		"g": {"e": true},
	}
	if found := fmt.Sprint(circles(uses)); found != "[[b c] [e f g]]" {
		t.Errorf("%s", found)
	}
}
