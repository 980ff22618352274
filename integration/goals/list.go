package main

import "strings"

// goal is one line of the table (FAULTS.md, "Goals").
type goal struct {
	name string
	what string
	why  string // it is not measured here; empty: a suite measures it
}

var goals = []goal{
	{name: "G1", what: "real Raft: schedules of faults"},
	{name: "G2", what: "whole system, simulated"},
	{name: "G3", what: "histories of clients linearizable"},
	{name: "G4", what: "coordinator killed at log indexes"},
	{name: "G5", what: "agent killed at every journal step"},
	{name: "G6", what: "lab: faults at moments of a migration"},
	{name: "G7", what: "no guest runs twice, as seen outside"},
	{name: "G8", what: "planted bugs are caught"},
	{name: "G9", what: "write gap when a leader is killed"},
	{name: "G10", what: "fuzzing finds no panic"},
	{name: "G11", what: "storage faults are never silent"},
	{name: "G12", what: "1,000 nodes, 10,000 VMs"},
	{name: "G13", what: "overload: goodput and recovery"},
	{name: "G14", what: "restore over a running site"},
	{name: "G15", what: "rolling upgrade, golden snapshots"},
	{
		name: "G16", what: "tenants do not feel each other",
		why: "no suite compares pairs of sites yet; strangers' keys are tested by coordinator/placement",
	},
	{name: "G17", what: "authorisation, every call and role"},
	{name: "G18", what: "races, leaks, known vulnerabilities"},
	{name: "G19", what: "certificates rotated under load"},
	{name: "G20", what: "recovery from one backup, 1,000 nodes", why: "no recovery of that size is timed yet"},
}

// suite is one command that tells of goals, with what its environment has at either size.
type suite struct {
	goals       []string
	command     []string
	ci, release []string
}

func (s *suite) name() string {
	return strings.Join(s.goals, ", ") + ": " + strings.Join(s.command, " ")
}

// tests are those of a package whose names match, with what they tell.
func tests(pkg, run string) []string {
	return []string{"go", "test", "-v", "-count", "1", "-timeout", "12h", "-run", run, pkg}
}

var suites = []suite{
	{
		goals: []string{"G1", "G3"}, command: tests("./coordinator/consensus", "^TestSchedules$"), ci: []string{"SCHEDULES=5000"},
		release: []string{"SCHEDULES=250000"},
	},
	{goals: []string{"G2"}, command: tests("./integration/faults", "."), ci: []string{"SEEDS=20000"}, release: []string{"SEEDS=2000000"}},
	{
		goals: []string{"G4", "G11"}, command: tests("./coordinator/consensus", "Goal|AKilledMember|AMemberWhoseDisk|ADamagedStore"),
		release: []string{"RELEASE=1", "KILLS=2000", "FAULTS=800"},
	},
	{goals: []string{"G5"}, command: tests("./agent/jobs", "Kill|Crash|Every")},
	{goals: []string{"G6", "G7"}, command: tests("./integration/chaos", "."), release: []string{"RELEASE=1"}},
	{goals: []string{"G8"}, command: []string{"go", "run", "./integration/mutants"}},
	{goals: []string{"G9"}, command: []string{"go", "run", "./integration/bench", "-only", "R4"}, release: []string{"FAILOVERS=500"}},
	{goals: []string{"G10"}, command: []string{"go", "run", "./integration/fuzz"}},
	{goals: []string{"G12", "G13"}, command: tests("./integration/bench", "Goal|Overload")},
	{goals: []string{"G14"}, command: tests("./integration/lab", "^TestWhatTheCoordinatorsKnew"), release: []string{"RESTORES=50"}},
	{goals: []string{"G15"}, command: tests("./coordinator/state", "Goal|Golden|Quarantine")},
	{goals: []string{"G17"}, command: tests("./coordinator/api", "Authoris|EachProcedure|RolesReach|SpeakForOthers")},
	{
		goals: []string{"G18"},
		command: []string{
			"go", "test", "-race", "./coordinator/control/...", "./coordinator/agents", "./coordinator/inventory", "./agent/jobs",
			"./agent/session",
		},
	},
	{goals: []string{"G19"}, command: tests("./coordinator/daemon", "^TestTheAuthorityIsReplacedWithoutARefusedCall$")},
	{goals: []string{"G18"}, command: []string{"make", "--no-print-directory", "vuln"}},
}
