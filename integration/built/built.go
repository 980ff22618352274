// Package built tells what the go command has built of packages, so that the types of others can be checked against that.
package built

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
)

// Package is one of them.
type Package struct {
	ImportPath, Dir string
	GoFiles         []string // names in Dir, without those of tests
	Export          string   // the file that has what it exports
}

// List builds packages, given by patterns below a module's root, and tells of them and of all that they import.
func List(ctx context.Context, root string, patterns ...string) (packages []Package, err error) {
	list := exec.CommandContext(ctx, "go", append([]string{
		"list", "-tags", "libvirt_dlopen", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export",
	}, patterns...)...)
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one Package
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, one)
	}
}

// Importer imports packages that were listed.
func Importer(positions *token.FileSet, packages []Package) types.Importer {
	exports := make(map[string]string, len(packages))
	for i := range packages {
		exports[packages[i].ImportPath] = packages[i].Export
	}
	return importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}
