package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func rootOf(t *testing.T) string {
	t.Helper()
	found, err := root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A mutant that has come apart from the code proves nothing any more.
func TestMutantsApplyAndCompile(t *testing.T) {
	root, names := rootOf(t), make(map[string]bool)
	var checked *typed
	if !testing.Short() { // that the texts are still there is what breaks most often
		checked = typedOf(t, root)
	}
	for i := range mutants {
		m := &mutants[i]
		if names[m.name] {
			t.Errorf("two mutants are named %s", m.name)
		}
		names[m.name] = true
		if _, err := os.Stat(filepath.Join(root, m.suite.pkg)); err != nil || !strings.HasPrefix(m.suite.pkg, "./") {
			t.Errorf("%s: its suite is in %q: %v", m.name, m.suite.pkg, err)
		}
		_, err := m.changed(root)
		if err == nil && checked != nil {
			err = checked.check(m)
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if len(mutants) < wanted {
		t.Errorf("%d mutants, want at least %d", len(mutants), wanted)
	}
}

func TestQuickMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("each builds and runs a suite")
	}
	root, tried := rootOf(t), 0
	for i := range mutants {
		m := &mutants[i]
		if !m.quick {
			continue
		}
		tried++
		if caught, err := m.try(t.Context(), root, t.TempDir()); err != nil || !caught {
			t.Errorf("%s survives %s: %v", m.name, m.suite, err)
		}
	}
	if tried < 3 {
		t.Errorf("%d quick mutants were tried", tried)
	}
}

// What proves nothing is told from what survives.
func TestBrokenMutantsAreErrors(t *testing.T) {
	root, folder := rootOf(t), t.TempDir()
	good := mutant{
		file: "coordinator/operation/verdict.go", is: "return CannotTell\n}", becomes: "return LostBoth\n}",
		suite: suite{pkg: "./coordinator/operation", run: "^TestJudge"},
	}
	for name, change := range map[string]func(*mutant){
		errNoText.Error():  func(m *mutant) { m.is = "nothing of the kind" },
		errCompile.Error(): func(m *mutant) { m.becomes = "return 1\n}" },
		errNoTests.Error(): func(m *mutant) { m.suite.run = "^TestNothing$" },
	} {
		m := good
		change(&m)
		if caught, err := m.try(t.Context(), root, folder); caught || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, %v, want %q", caught, err, name)
		}
	}
	harmless := good
	harmless.becomes = "return CannotTell // as it was\n}"
	if caught, err := harmless.try(t.Context(), root, folder); caught || err != nil {
		t.Errorf("what changes nothing: %v, %v", caught, err)
	}
	if caught, err := good.try(t.Context(), root, folder); !caught || err != nil {
		t.Errorf("what changes a verdict: %v, %v", caught, err)
	}
}
