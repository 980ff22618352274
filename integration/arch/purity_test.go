package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// pure packages get time, seed and facts as arguments, so that the same view gives the same decision on every member, in
// a simulation and in a replay (laws 1 and 2).
var pure = []string{
	"coordinator/model", "coordinator/unanswered",
	"coordinator/session",
	"coordinator/profile",
	"coordinator/cpumodel",
	"coordinator/view/...",
	"coordinator/affinity",
	"coordinator/placement/...",
	"coordinator/balance/...",
	"coordinator/agenda",
	"coordinator/moving",
	"coordinator/metrics",
	"coordinator/operation",
	"coordinator/state/naming",
	"coordinator/prediction",
	"coordinator/evidence",
	"coordinator/scenario/...",
	"coordinator/strictyaml",
	"coordinator/yamlnode",
	"coordinator/schema",
	"coordinator/document",
	"coordinator/binding",
	"coordinator/connected",
	"coordinator/estate",
	"shared/domxml/...",
	"shared/exposition",
	"shared/qcow2",
	"shared/units",
	"shared/week",
	"agent/profile",
}

// impureImports end purity, whatever is used of them.
var impureImports = []string{
	"net/...", "os/...", "log/...", "syscall", "io/ioutil", "crypto/rand", "runtime/...",
	"google.golang.org/protobuf/...", "github.com/hashicorp/raft/...", "github.com/hashicorp/go-hclog",
	"golang.org/x/sys/...", "C",
}

// impureUses are what a package may not take from one that it may import.
var impureUses = map[string][]string{
	"time":          {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
}

// seeded is what math/rand offers that is not its global source.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewSource", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// impureUse tells whether a use of that name brings in the clock, the outside or the global random source.
func impureUse(path, name string) bool {
	if path == "math/rand" || path == "math/rand/v2" {
		return !slices.Contains(seeded, name)
	}
	return slices.Contains(impureUses[path], name)
}

func TestPurePackagesStayPure(t *testing.T) {
	for _, p := range all(t) {
		if !withinAny(p.Path, pure) {
			continue
		}
		for _, path := range p.Imports {
			if withinAny(path, impureImports) {
				t.Errorf("%s imports %s: a pure package has no clock, network, files, logger, protobuf or raft", p.Path, path)
			}
		}
		for _, path := range p.ours() {
			if !withinAny(path, pure) {
				t.Errorf("%s imports %s, which is not pure", p.Path, path)
			}
		}
		for _, f := range p.Files {
			f.uses(func(path, name string, at token.Position, _ bool) {
				if impureUse(path, name) {
					t.Errorf("%s: %s.%s: time and randomness come in as arguments", at, path, name)
				}
			})
		}
	}
}

// Law 3: members of two releases that apply the same log must end with the same records.
func TestTheReplicatedStateNeitherDecidesNorReadsAClock(t *testing.T) {
	for _, p := range all(t) {
		if p.Path != "coordinator/state" {
			continue
		}
		for _, f := range p.Files {
			f.uses(func(path, name string, at token.Position, called bool) {
				if impureUse(path, name) {
					t.Errorf("%s: %s.%s: the log carries time and chance, the state machine has none", at, path, name)
				}
				if called && within(path, module+"coordinator/placement/...") {
					t.Errorf("%s: calls %s.%s: decisions are made before they are proposed", at, path, name)
				}
			})
		}
	}
}

// What runs in parallel or waits for somebody else may end in another order each time.
func TestPurePackagesRunNothingInParallel(t *testing.T) {
	for _, p := range all(t) {
		if !withinAny(p.Path, pure) {
			continue
		}
		for _, f := range p.Files {
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				switch n.(type) {
				case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
					t.Errorf("%s: goroutines and channels are for those who call", positions.Position(n.Pos()))
				}
				return true
			})
		}
	}
}

func TestEveryRowNamesAPackage(t *testing.T) {
	named := slices.Clone(pure)
	for _, layer := range layers {
		named = append(named, layer.packages...)
	}
	for i, pattern := range named {
		if !slices.ContainsFunc(all(t), func(p pkg) bool { return within(p.Path, pattern) }) {
			t.Errorf("no package matches %s", pattern)
		}
		if i < len(pure) && slices.Contains(pure[:i], pattern) {
			t.Errorf("%s is listed twice", pattern)
		}
	}
}
