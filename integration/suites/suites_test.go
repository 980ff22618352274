package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A failed suite is shown whole and ends the run with an error; of the others there is one line.
func TestFailuresAreShownAndEndTheRun(t *testing.T) {
	var out strings.Builder
	err := runAll(t.Context(), &out, []suite{
		{name: "good", command: []string{"sh", "-c", "echo quiet; sleep 0.1"}},
		{name: "tests", command: []string{"sh", "-c", "echo '?   p [no test files]'; echo 'ok  q 1.2s'"}},
		{name: "unreachable", command: []string{"sh", "-c", "echo 'skipped: nobody answers'"}},
		{name: "bad", command: []string{"sh", "-c", "echo $WHY; exit 1"}, set: []string{"WHY=because"}, alone: true},
		{name: "absent", command: []string{"/nowhere"}},
	}, 2)
	if err == nil || err.Error() != "failed: absent, bad" && err.Error() != "failed: bad, absent" {
		t.Errorf("%v", err)
	}
	for text, wanted := range map[string]bool{
		"ok  \tgood\t": true, "ok  q 1.2s": true, "because\nFAIL\tbad\t": true, "quiet": false,
		"unreachable\tskipped: nobody answers": true, "ok  \tunreachable": false, "no test files": false, "of processors": true,
	} {
		if strings.Contains(out.String(), text) != wanted {
			t.Errorf("%q is there: %t, in\n%s", text, !wanted, out.String())
		}
	}
}

// A package with tests that no suite runs would never fail.
func TestEveryPackageWithTestsIsRun(t *testing.T) {
	run := make([]string, 0, 50)
	list, err := test(whole, product, "..")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.command[1] == "test" {
			run = append(run, s.command[2:]...)
		}
	}
	files, err := filepath.Glob("../../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("../../integration/*/*_test.go")
	if err != nil || len(below) == 0 {
		t.Fatalf("%d files, %v", len(below), err)
	}
	for _, file := range append(files, below...) {
		pkg := "./" + strings.TrimPrefix(filepath.Dir(file), "../../")
		top := strings.SplitN(pkg, "/", 3)[1]
		if !slices.Contains(run, pkg) && !slices.Contains(run, pkg+"/...") && !slices.Contains(run, "./"+top+"/...") {
			t.Errorf("no suite runs %s", pkg)
		}
	}
}

// All parts together play each seed and each test of a lab once.
func TestPartsAreWhole(t *testing.T) {
	for _, lab := range labs {
		names, err := named("../" + lab.name)
		if err != nil {
			t.Fatal(err)
		}
		var played []string
		for i := range uint64(parts) {
			mine := part{i, parts}.testsOf(lab, names)
			if lab.long && len(mine) == 0 {
				t.Errorf("%s: part %d has no test, so it would run all", lab.name, i)
			}
			if i > 0 && lab.seeds > 0 { // its seeds are what is divided
				mine = slices.DeleteFunc(mine, func(name string) bool { return name == seedTest })
			}
			played = append(played, mine...)
		}
		if lab.seeds%parts != 0 {
			t.Errorf("%s: %d seeds do not make %d parts", lab.name, lab.seeds, parts)
		}
		slices.Sort(played)
		if slices.Sort(names); !slices.Equal(played, names) {
			t.Errorf("%s: %s\nbut there are\n%s", lab.name, played, names)
		}
	}
	if seeds%parts != 0 || schedules%parts != 0 {
		t.Errorf("%d seeds or %d schedules do not make %d parts", seeds, schedules, parts)
	}
	if last := strings.Join(part{parts - 1, parts}.seeds("SEEDS", seeds), " "); last != "SEEDS=2500 FIRST=17501" {
		t.Error(last)
	}
}

// Each package of the product is run with the race detector or without it.
func TestNoPackageIsLeftOut(t *testing.T) {
	t.Chdir("../..")
	all, err := packages(t.Context(), product)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range concurrent {
		raced, err := packages(t.Context(), []string{pattern})
		if err != nil || len(raced) == 0 {
			t.Errorf("%s: %d packages, %v", pattern, len(raced), err)
		}
		all = slices.DeleteFunc(all, func(path string) bool { return slices.Contains(raced, path) })
	}
	rest, err := others(t.Context())
	if err != nil || !slices.Equal(rest, all) || len(rest) == 0 {
		t.Errorf("%v\n%v\n%v", rest, all, err)
	}
}

// What the race detector leaves out is run without it.
func TestWhatIsNotRacedIsRun(t *testing.T) {
	for name := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(unraced, "^Test("), ")"), "|") {
		if !strings.Contains(raft+decisions, name) {
			t.Errorf("no suite runs %s", name)
		}
	}
}

func TestOnlyKnownSuitesAreChosen(t *testing.T) {
	if some, err := pick(check(), "lint,unit"); err != nil || len(some) != 2 || some[1].name != "unit" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := pick(check(), "lint,nothing"); err == nil || !strings.Contains(err.Error(), "unit") {
		t.Errorf("%v", err)
	}
}
