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
	set string // a variable of the environment, NAME=value; empty: none
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

// overlayIn is the path of what the go command lays over the tree.
func overlayIn(folder string) string { return filepath.Join(folder, "overlay.json") }

// compile lays the mutant over the tree, by way of a folder, and builds its package.
func (m *mutant) compile(ctx context.Context, root, folder string) error {
	source, err := m.changed(root)
	if err != nil {
		return err
	}
	over := filepath.Join(folder, "changed.go")
	if err := os.WriteFile(over, source, 0o600); err != nil {
		return err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): over}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlayIn(folder), list, 0o600); err != nil {
		return err
	}
	if out, err := command(ctx, root, "", "build", "-o", os.DevNull, "-overlay", overlayIn(folder), "./"+filepath.Dir(m.file)); err != nil {
		return fmt.Errorf("%w: %s", errCompile, out)
	}
	return nil
}

// try runs the suite with the bug. It reports whether the suite failed.
func (m *mutant) try(ctx context.Context, root, folder string) (caught bool, err error) {
	if err := m.compile(ctx, root, folder); err != nil {
		return false, err
	}
	return m.suite.fails(ctx, root, "-overlay", overlayIn(folder), "-count", "1")
}

// fails runs the suite once.
func (s suite) fails(ctx context.Context, root string, flags ...string) (bool, error) {
	arguments := append([]string{"test", "-short", "-timeout", limit.String()}, flags...)
	if s.run != "" {
		arguments = append(arguments, "-run", s.run)
	}
	out, err := command(ctx, root, s.set, append(arguments, s.pkg)...)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil && (strings.Contains(out, "[no tests to run]") || strings.Contains(out, "[no test files]")):
		return false, fmt.Errorf("%s: %w", s, errNoTests)
	case err == nil:
		return false, nil
	case errors.As(err, &exit) && strings.Contains(out, "FAIL") && !strings.Contains(out, "[build failed]") &&
		!strings.Contains(out, "[setup failed]"):
		return true, nil
	default:
		return false, fmt.Errorf("%s: %w: %w: %s", s, errNotTried, err, out)
	}
}

// command runs the go command, with a variable of the environment if there is one, and returns what it printed.
func command(ctx context.Context, root, set string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = root
	if set != "" {
		command.Env = append(command.Environ(), set)
	}
	out, err := command.CombinedOutput()
	return string(out), err
}
