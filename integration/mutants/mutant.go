// Mutants plants bugs of the kind that would run a VM twice or lose a change, one at a time, and tells which of them the tests
// would catch. Nothing is written into the tree: the changed file is laid over it (go build -overlay).
//
// A mutant is a file, an exact text in it, another text, and the suite that has to fail with it. A text that is not there any
// more, or a change that does not compile, is an error and no success: write the mutant anew.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mutant is one planted bug.
type mutant struct {
	name    string
	file    string // below the module's root
	is      string // text that stands in the file once
	becomes string
	suite   suite
	quick   bool // caught within seconds: tried by every run of the tests
}

// suite is what has to fail.
type suite struct {
	pkg string // "./agent/jobs"
	run string // a regular expression for tests; empty: all of the package
}

func (s suite) String() string {
	if s.run == "" {
		return s.pkg
	}
	return s.pkg + " " + s.run
}

// limit bounds one run of a suite. A mutant that makes it hang is caught, too.
const limit = 5 * time.Minute

// The errors of a mutant that proves nothing.
var (
	errNoText   = errors.New("the text to change does not stand in the file exactly once")
	errCompile  = errors.New("it does not compile any more")
	errNoTests  = errors.New("its suite runs no tests")
	errAnyway   = errors.New("its suite fails without it, too")
	errNotTried = errors.New("the go command failed")
)

// changed is the file's content with the bug.
func (m *mutant) changed(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if m.is == m.becomes || strings.Count(string(source), m.is) != 1 {
		return nil, fmt.Errorf("%s: %w: %q", m.file, errNoText, m.is)
	}
	return bytes.Replace(source, []byte(m.is), []byte(m.becomes), 1), nil
}

// overlay writes what the go command lays over the tree into a folder, and returns its path.
func (m *mutant) overlay(root, folder string) (string, error) {
	source, err := m.changed(root)
	if err != nil {
		return "", err
	}
	over := filepath.Join(folder, "changed.go")
	path := filepath.Join(folder, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): over}})
	if err != nil {
		return "", err
	}
	return path, errors.Join(os.WriteFile(over, source, 0o600), os.WriteFile(path, list, 0o600))
}

// compile builds the package of the changed file.
func (m *mutant) compile(ctx context.Context, root, folder string) error {
	overlay, err := m.overlay(root, folder)
	if err != nil {
		return err
	}
	if out, err := command(ctx, root, "build", "-o", os.DevNull, "-overlay", overlay, "./"+filepath.Dir(m.file)); err != nil {
		return fmt.Errorf("%s: %w: %s", m.file, errCompile, out)
	}
	return nil
}

// try runs the suite with the bug. It reports whether the suite failed.
func (m *mutant) try(ctx context.Context, root, folder string) (caught bool, err error) {
	if err := m.compile(ctx, root, folder); err != nil {
		return false, err
	}
	return m.suite.fails(ctx, root, "-overlay", filepath.Join(folder, "overlay.json"), "-count", "1")
}

// fails runs the suite once.
func (s suite) fails(ctx context.Context, root string, flags ...string) (bool, error) {
	arguments := append([]string{"test", "-short", "-timeout", limit.String()}, flags...)
	if s.run != "" {
		arguments = append(arguments, "-run", s.run)
	}
	out, err := command(ctx, root, append(arguments, s.pkg)...)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil && (strings.Contains(out, "[no tests to run]") || strings.Contains(out, "[no test files]")):
		return false, fmt.Errorf("%s: %w", s, errNoTests)
	case err == nil:
		return false, nil
	case errors.As(err, &exit) && strings.Contains(out, "FAIL") && !strings.Contains(out, "[build failed]") && !strings.Contains(out, "[setup failed]"):
		return true, nil
	default:
		return false, fmt.Errorf("%s: %w: %w: %s", s, errNotTried, err, out)
	}
}

// command runs the go command and returns what it printed.
func command(ctx context.Context, root string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = root
	out, err := command.CombinedOutput()
	return string(out), err
}
