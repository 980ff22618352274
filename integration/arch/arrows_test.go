package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are packages whose files have an order: each calls only files below itself.
var rooms = []string{"coordinator/control/...", "coordinator/evidence"}

// Files that call each other in a circle can only be read, changed and tested together.
func TestFilesOfARoomCallDownwards(t *testing.T) {
	found := make(map[string]int)
	exports := exportsOf(t)
	for _, p := range all(t) {
		if !withinAny(p.Path, rooms) {
			continue
		}
		circles := p.circles(t, exports)
		for _, circle := range circles {
			found[p.Path] += len(circle)
		}
		if found[p.Path] += 0; found[p.Path] > filesInCircles[p.Path] {
			for _, circle := range circles {
				t.Logf("%s: these files call each other in a circle: %s", p.Path, strings.Join(circle, ", "))
			}
		}
	}
	filesInCircles.hold(t, "files that call each other in circles", 0, found)
}

var filesInCircles = ratchet{
	"coordinator/control": 70,
}

// exportsOf are the files with what packages export, by import path, for all that the rooms import.
func exportsOf(t *testing.T) map[string]string {
	t.Helper()
	patterns := make([]string, len(rooms))
	for i, room := range rooms {
		patterns[i] = "./" + room
	}
	list := exec.Command("go", append([]string{
		"list", "-tags", "libvirt_dlopen", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
	}, patterns...)...)
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		exports[path] = file
	}
	return exports
}

// circles are groups of the package's files that call each other in a circle. Only calls count, and uses of a function as a
// value: a type may be declared above or below what uses it.
func (p pkg) circles(t *testing.T, exports map[string]string) [][]string {
	t.Helper()
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", lookup)}
	var files []*ast.File
	for _, f := range p.Files {
		files = append(files, f.Syntax)
	}
	self, err := config.Check(module+p.Path, positions, files, info)
	if err != nil {
		t.Fatal(err)
	}
	calls := make(map[string]map[string]bool)
	for use, object := range info.Uses {
		function, ok := object.(*types.Func)
		if !ok || function.Pkg() != self {
			continue
		}
		if of := function.Signature().Recv(); of != nil && types.IsInterface(of.Type()) {
			continue
		}
		from, to := filepath.Base(positions.Position(use.Pos()).Filename), filepath.Base(positions.Position(function.Pos()).Filename)
		if calls[from] == nil {
			calls[from] = make(map[string]bool)
		}
		calls[from][to] = true
	}
	return circles(calls)
}

// circles are the groups of names, ascending, that reach each other.
func circles(calls map[string]map[string]bool) [][]string {
	reach := make(map[string]map[string]bool)
	for from := range calls {
		reach[from] = make(map[string]bool)
		for next := []string{from}; len(next) > 0; {
			at := next[0]
			next = next[1:]
			for to := range calls[at] {
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
	calls := map[string]map[string]bool{
		"a": {"a": true, "b": true}, "b": {"c": true}, "c": {"b": true, "d": true}, "d": {"d": true}, "e": {"f": true}, "f": {"g": true},
		"g": {"e": true},
	}
	if found := fmt.Sprint(circles(calls)); found != "[[b c] [e f g]]" {
		t.Errorf("%s", found)
	}
}
