package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suite is one command of a run.
type suite struct {
	name    string
	command []string
	set     []string // of the environment: NAME=value
	alone   bool     // it measures time, so nothing runs next to it
	waits   bool     // most of its time it waits for machines and containers
}

// product are the packages of the product.
var product = []string{"./agent/...", "./coordinator/...", "./shared/..."}

// concurrent are those of them whose goroutines share memory. The race detector makes a test five to ten times as slow, so the
// others are tested without it: the pure engines start no goroutine (integration/arch), and most nouns of the command line neither.
var concurrent = []string{
	"./agent/hypervisor/...", "./agent/jobs", "./agent/profile/recorder", "./agent/session", "./agent/tasks",
	"./agent/telemetry", "./agent/watchdog",
	"./coordinator/agents", "./coordinator/api/...", "./coordinator/cli/event", "./coordinator/cli/fieldform", "./coordinator/cli/follow",
	"./coordinator/cli/node", "./coordinator/cli/plan", "./coordinator/cli/resource", "./coordinator/cli/term", "./coordinator/cli/vm",
	"./coordinator/consensus/...", "./coordinator/control/...", "./coordinator/daemon", "./coordinator/fence",
	"./coordinator/inventory", "./coordinator/state", "./shared/logging", "./shared/rpc",
}

// lab is a package whose tests raise labs.
type lab struct {
	name      string
	long      bool     // its tests are played in parts
	seeds     uint64   // of its TestSeeds, which are played in parts themselves; 0: it has none
	set       []string // of the environment
	arguments []string
}

// labs are those packages, the slowest first. The random administrator begins no further seeds after a time, so that it does not take a
// slow machine's whole time: it says which ones were not begun. Chaos has one lab, because another suite has one at the same time.
var labs = []lab{
	{name: "chaos", long: true, arguments: []string{"-labs", "1"}},
	{name: "admin", long: true, seeds: 800, set: []string{"WITHIN=8m"}},
	{name: "moves", long: true},
	{name: "lab", long: true},
	{name: "storage", long: true},
	{name: "hypervisor"},
	{name: "hostile"},
	{name: "keys"},
	{name: "prometheus"},
	{name: "script"},
}

// Of the long suites a run plays one part.
const (
	parts     = 8
	seeds     = 20000 // of integration/faults
	schedules = 5000  // of faults on Raft members
)

// part is the one that is played: its number, from 0 on, and how many there are.
type part struct{ index, of uint64 }

// whole is all of the long suites.
var whole = part{of: 1}

// raft are the long tests of consensus, and one that has to do without the race detector.
const raft = "^Test(Schedules|AKilledMember|AMemberWhoseDisk|ADamagedStore|AMemberChangesItsAddress)"

// decisions are the long tests of what a leader decides, by itself and beside the simulator.
const decisions = "^Test(RandomDrains|TheLeaderAndTheSimulator|StartsThatAreDecidedTogether|AnExportedCluster)"

// unraced are those of both that share no memory which shorter tests do not share as well: processes that are killed, and a leader that
// decides the same thing again and again. They are not tried with the race detector. Nor is a member that changes its address: a leader
// that cannot reach the old one reads it for its log, in hashicorp/raft 1.8.0, while it is replaced (its issue 681).
const unraced = "^Test(AKilledMember|AMemberWhoseDisk|ADamagedStore|AMemberChangesItsAddress|" +
	"TheLeaderAndTheSimulator|StartsThatAreDecidedTogether|AnExportedCluster)"

// others are the packages of the product that are not concurrent.
func others(ctx context.Context) ([]string, error) {
	all, err := packages(ctx, product)
	if err != nil {
		return nil, err
	}
	raced, err := packages(ctx, concurrent)
	return slices.DeleteFunc(all, func(path string) bool { return slices.Contains(raced, path) }), err
}

// packages are those that patterns stand for.
func packages(ctx context.Context, patterns []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// check is what a developer runs before a commit. It needs no root, no network and no lab, and what nothing has changed since
// the last time comes from the cache of the go command.
func check() []suite {
	return []suite{
		tests(
			"laws", "-count", "1", "-short", "./integration/arch", "./integration/mutants", "./integration/suggestions", "./integration/suites",
			"./integration/goals",
		),
		// Many of them wait more than they compute.
		tests("unit", slices.Concat([]string{"-short", "-p", "4"}, product)...),
		{name: "lint", command: []string{"make", "--no-print-directory", "lint"}},
	}
}

// test is what a change needs. Of each kind the list begins with what takes longest. The packages of the product that are not
// concurrent are given, and the folder of the packages with labs.
func test(p part, others []string, integration string) ([]suite, error) {
	list := []suite{{name: "acceptance", command: []string{"go", "run", "./integration/acceptance"}, waits: true}}
	for _, lab := range labs {
		// They run what is in bin, which the cache of the go command does not look at.
		// The time is for a slow machine.
		run := []string{"-count", "1", "-timeout", "75m"}
		if lab.long {
			names, err := named(filepath.Join(integration, lab.name))
			if err != nil {
				return nil, err
			}
			run = append(run, "-run", "^("+strings.Join(p.testsOf(lab, names), "|")+")$")
		}
		set := lab.set
		if lab.seeds > 0 {
			set = slices.Concat(set, p.seeds("SEEDS", lab.seeds))
		}
		run = append(append(run, "./integration/"+lab.name), lab.arguments...)
		list = append(list, tests(lab.name, run...).with(set...).waiting())
	}
	return append(
		list,
		tests("race", slices.Concat([]string{"-race", "-p", "4", "-timeout", "40m", "-skip", unraced}, concurrent)...), // many of them wait
		tests(
			"development", "-count", "1", "-timeout", "40m",
			"./integration/acceptance", "./integration/adversary", "./integration/arch", "./integration/conformance",
			"./integration/fuzz", "./integration/goals", "./integration/hostkeys", "./integration/lab/demo", "./integration/loopback",
			"./integration/manual",
			"./integration/mutants", "./integration/scale", "./integration/simagent", "./integration/suggestions", "./integration/suites",
			"./integration/traces", "./integration/writer", "./packaging/...",
		),
		tests("faults", "-timeout", "40m", "./integration/faults").with(p.seeds("SEEDS", seeds)...),
		tests("raft", "-timeout", "40m", "-run", raft, "./coordinator/consensus").with(p.seeds("SCHEDULES", schedules)...),
		tests("decisions", "-timeout", "40m", "-run", decisions, "./coordinator/control"),
		tests("console", "-count", "1", "-timeout", "60m", "./integration/console"),
		suite{name: "fuzz", command: []string{"go", "run", "./integration/fuzz"}},
		suite{name: "vuln", command: []string{"make", "--no-print-directory", "vuln"}},
		tests("unit", slices.Concat([]string{"-timeout", "40m"}, others)...),
		tests("bench", "./integration/bench/...", "./integration/scale/storms").exclusively(),
		suite{name: "scale", command: []string{"go", "run", "./integration/scale", "-nodes", "1000", "-storm=false"}}.exclusively(),
	), nil
}

// named are the tests of the package in a folder, in the order of its files.
func named(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no test is in %s", folder)
	}
	return names, nil
}

// tests are those of the names that the part has. Neighbours are in different parts: they take the same time, as a rule.
func (p part) tests(names []string) []string {
	var mine []string
	for i, name := range names {
		if uint64(i)%p.of == p.index {
			mine = append(mine, name)
		}
	}
	return mine
}

// seedTest is the test that plays seeds, in packages with labs too.
const seedTest = "TestSeeds"

// testsOf are those of a lab's names that the part has. A part of the seeds is in each.
func (p part) testsOf(lab lab, names []string) []string {
	if lab.seeds == 0 {
		return p.tests(names)
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == seedTest })
	return append(p.tests(others), seedTest)
}

// seeds is the environment of a suite that plays the part of some seeds.
func (p part) seeds(count string, of uint64) []string {
	each := of / p.of
	return []string{fmt.Sprintf("%s=%d", count, each), fmt.Sprintf("FIRST=%d", p.index*each+1)}
}

// tests runs tests of packages.
func tests(name string, arguments ...string) suite {
	return suite{name: name, command: append([]string{"go", "test"}, arguments...)}
}

func (s suite) with(set ...string) suite {
	s.set = set
	return s
}

func (s suite) waiting() suite {
	s.waits = true
	return s
}

func (s suite) exclusively() suite {
	s.alone = true
	return s
}
