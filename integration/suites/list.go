package main

import (
	"context"
	"fmt"
	"os/exec"
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
// others are tested without it: the pure engines start no goroutine (integration/arch).
var concurrent = []string{
	"./agent/hypervisor/...", "./agent/jobs", "./agent/session", "./agent/tasks", "./agent/telemetry", "./agent/watchdog",
	"./coordinator/agents", "./coordinator/api/...", "./coordinator/cli/...", "./coordinator/consensus", "./coordinator/control/...",
	"./coordinator/daemon", "./coordinator/fence", "./coordinator/inventory", "./coordinator/state", "./shared/logging", "./shared/rpc",
}

// labs are the packages whose tests raise labs, the slowest first.
var labs = []string{"chaos", "admin", "moves", "lab", "storage", "hypervisor", "keys", "script"}

// bounds keep the random administrator from taking a slow machine's whole time. It says which seeds it did not come to.
var bounds = map[string][]string{"admin": {"WITHIN=10m"}}

// Of the long suites a run plays one part, and `make goals` plays all.
const (
	parts     = 8
	seeds     = 20000 // of integration/faults
	schedules = 5000  // of faults on Raft members
)

// raft are the long tests of consensus. The race detector has them in small.
const raft = "^Test(Schedules|AKilledMember|AMemberWhoseDisk|ADamagedStore)"

// drains are the long tests of random drains. The race detector has them in small.
const drains = "^TestRandomDrains"

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

// test is what a release of a small change needs. Of each kind the list begins with what takes longest. The packages of the product
// that are not concurrent are given.
func test(part uint64, others []string) []suite {
	list := []suite{{name: "acceptance", command: []string{"go", "run", "./integration/acceptance"}, waits: true}}
	for _, lab := range labs {
		// They run what is in bin, which the cache of the go command does not look at.
		// The time is for a slow machine: on a quick one the slowest takes a quarter of an hour.
		list = append(list, tests(lab, "-count", "1", "-timeout", "75m", "./integration/"+lab).with(bounds[lab]...).waiting())
	}
	return append(
		list,
		tests("race", slices.Concat([]string{"-race", "-timeout", "40m"}, concurrent)...),
		tests(
			"development", "-count", "1", "-timeout", "40m",
			"./integration/acceptance", "./integration/adversary", "./integration/arch", "./integration/conformance",
			"./integration/fuzz", "./integration/goals", "./integration/hostkeys", "./integration/loopback", "./integration/manual",
			"./integration/mutants", "./integration/scale", "./integration/simagent", "./integration/suggestions", "./integration/suites",
			"./integration/writer", "./packaging/...",
		),
		tests("faults", "-timeout", "40m", "./integration/faults").with(share("SEEDS", seeds, part)...),
		tests("raft", "-timeout", "40m", "-run", raft, "./coordinator/consensus").with(share("SCHEDULES", schedules, part)...),
		tests("drains", "-timeout", "40m", "-run", drains, "./coordinator/control"),
		tests("console", "-count", "1", "-timeout", "60m", "./integration/console"),
		suite{name: "fuzz", command: []string{"go", "run", "./integration/fuzz"}},
		tests("unit", slices.Concat([]string{"-timeout", "40m"}, others)...),
		tests("bench", "./integration/bench/...").exclusively(),
	)
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

// share is the environment of one part of a long suite.
func share(count string, of, part uint64) []string {
	each := of / parts
	return []string{fmt.Sprintf("%s=%d", count, each), fmt.Sprintf("FIRST=%d", part*each+1)}
}
