package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/state"
	"berth/integration/faults/downtime"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small and many
	os.Exit(m.Run())
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// each runs something for every seed, on all processors, until it says that it is enough.
func each(first, count uint64, do func(seed uint64) (enough bool)) {
	var next atomic.Uint64
	var over atomic.Bool
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := next.Add(1) - 1; n < count && !over.Load(); n = next.Add(1) - 1 {
				if do(first + n) {
					over.Store(true)
				}
			}
		})
	}
	workers.Wait()
}

// Goal G2: SEEDS seeds from FIRST on, of which each has its own site, wishes and faults. SEED=n runs one of them and prints its trace. A
// seed that fails is made small and left in a file: with a name that says what it shows, it belongs into testdata/seeds.
func TestSeeds(t *testing.T) {
	if seed := number(t, "SEED", 0); seed > 0 {
		result := Run(script.Generate(seed), os.Stdout, plant.None)
		for _, breach := range result.Breaches {
			t.Errorf("at %s: %s %s", breach.At, breach.Rule, breach.Text)
		}
		return
	}
	count, first := number(t, "SEEDS", 1000), number(t, "FIRST", 1)
	if testing.Short() {
		count = 200
	}
	open := openSeeds(t)
	var mu sync.Mutex
	var events, operations, proven, restarts, failed, known, doubles, others, stuck, disks uint64
	var hours float64
	drawn, back := map[string]int{}, map[string][]time.Duration{}
	each(first, count, func(seed uint64) bool {
		result := Run(script.Generate(seed), nil, plant.None)
		mu.Lock()
		defer mu.Unlock()
		events += result.Events
		operations += uint64(result.Operations)
		proven += uint64(result.Proven)
		restarts += uint64(result.Restarts)
		hours += result.Lasted.Hours()
		for fault, n := range result.Drawn {
			drawn[fault] += n
		}
		for cause, times := range result.Back {
			back[cause] = append(back[cause], times...)
		}
		for _, breach := range result.Breaches {
			switch breach.Rule {
			case "I8":
				doubles++
			case "stuck":
				stuck++
			case "disk":
				disks++
			default:
				others++
			}
			tell := t.Errorf
			if open[seed] {
				tell = t.Logf
			}
			tell("seed %d at %s: %s %s", seed, breach.At, breach.Rule, breach.Text)
		}
		switch {
		case result.Failed() && open[seed]:
			known++
		case open[seed]:
			t.Errorf("seed %d holds now: take its line out of testdata/open.txt", seed)
		case result.Failed():
			if failed++; failed == 1 {
				keep(t, seed, result)
			}
		}
		return failed >= 10
	})
	checkDrawn(t, count, drawn)
	met := "met"
	if failed+known > 0 {
		met = "not met"
	}
	t.Logf("GOAL G2: %d seeds from %d, %.1f M events, %d operations, %d nodes proven off, %d restarts, %.0f virtual hours, %d double runs, "+
		"%d lost disks, %d other broken invariants, %d stuck operations (%d seeds are known to fail) | wanted 0 of %d | %s",
		count, first, float64(events)/1e6, operations, proven, restarts, hours, doubles, disks, others, stuck, known, count, met)
	t.Log("from failure to running again (times, half, 99 %, worst):")
	for _, line := range downtime.Table(back) {
		t.Log(line)
	}
}

// openSeeds are those that are known to fail.
func openSeeds(t *testing.T) map[uint64]bool {
	t.Helper()
	text, err := os.ReadFile("testdata/open.txt")
	if err != nil {
		t.Fatal(err)
	}
	open := map[uint64]bool{}
	for line := range strings.Lines(string(text)) {
		if number, _, _ := strings.Cut(line, " "); number != "#" {
			seed, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				t.Fatalf("testdata/open.txt: %v", err)
			}
			open[seed] = true
		}
	}
	return open
}

// checkDrawn tells how often each fault of the world around Berth has happened. One that never does in so many seeds proves nothing.
func checkDrawn(t *testing.T, seeds uint64, drawn map[string]int) {
	t.Helper()
	const enough = 400
	told := "faults drawn:"
	for _, fault := range script.Faults() {
		told += fmt.Sprintf(" %s=%d", fault, drawn[fault])
		if drawn[fault] == 0 && seeds >= enough {
			t.Errorf("%s was never drawn in %d seeds", fault, seeds)
		}
	}
	t.Log(told)
}

// keep makes a failed seed small and writes it where a person finds it.
func keep(t *testing.T, seed uint64, result Result) {
	t.Helper()
	rule := result.Breaches[0].Rule
	small := script.Shrink(script.Generate(seed), 300, func(s script.Script) bool {
		r := Run(s, nil, plant.None)
		return r.Failed() && r.Breaches[0].Rule == rule
	})
	small.Found = result.Breaches[0].Text
	path := filepath.Join(os.TempDir(), fmt.Sprintf("berth-sim-%d.json", seed))
	if err := save(path, small); err != nil {
		t.Error(err)
		return
	}
	t.Logf("seed %d, made small, is %s", seed, path)
}

func save(path string, script script.Script) error {
	text, err := json.MarshalIndent(script, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Scripts that have failed once are run for ever.
func TestScriptsThatHaveFailed(t *testing.T) {
	paths, err := filepath.Glob("testdata/seeds/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var script script.Script
			if err := json.Unmarshal(text, &script); err != nil {
				t.Fatal(err)
			}
			result := Run(script, nil, plant.None)
			for _, breach := range result.Breaches {
				t.Errorf("at %s: %s %s", breach.At, breach.Rule, breach.Text)
			}
		})
	}
}

func TestASeedGivesOneTrace(t *testing.T) {
	each(1, 40, func(seed uint64) bool {
		first, second := Run(script.Generate(seed), nil, plant.None), Run(script.Generate(seed), nil, plant.None)
		if first.Hash != second.Hash || first.Events != second.Events {
			t.Errorf("seed %d gave trace %x of %d events, then %x of %d", seed, first.Hash, first.Events, second.Hash, second.Events)
		}
		if first.Events < 300 {
			t.Errorf("seed %d has only %d events", seed, first.Events)
		}
		return false
	})
	if Run(script.Generate(1), nil, plant.None).Hash == Run(script.Generate(2), nil, plant.None).Hash {
		t.Error("two seeds gave one trace")
	}
}

// The rules find what they are there for: each planted bug within some hundred seeds of the sites that it belongs to. Where
// nodes are fenced less goes wrong by itself.
func TestPlantedBugsAreFound(t *testing.T) {
	known := shownBy(t)
	for _, bug := range slices.Concat(plant.Bugs, plant.FenceBugs) {
		t.Run(string(bug), func(t *testing.T) {
			if seed, ok := known[bug]; ok {
				if result := Run(script.Generate(seed), nil, bug); result.Failed() {
					return
				}
			}
			seed, result := lookFor(bug)
			if result == nil {
				t.Fatal("no seed shows it")
			}
			t.Logf("shown by %s; the line for %s is\n%s: %d", result.Breaches[0].Text, shown, bug, seed)
		})
	}
}

const shown = "testdata/planted.txt"

// shownBy reads which seed has shown which bug. Playing it again is much quicker than looking for one.
func shownBy(t *testing.T) map[plant.Bug]uint64 {
	t.Helper()
	text, err := os.ReadFile(shown)
	if err != nil {
		t.Fatal(err)
	}
	known := map[plant.Bug]uint64{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		bug, number, _ := strings.Cut(strings.TrimSpace(line), ": ")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !slices.Contains(slices.Concat(plant.Bugs, plant.FenceBugs), plant.Bug(bug)) {
			t.Fatalf("%s: %q names no bug that is planted, or no seed", shown, line)
		}
		known[plant.Bug(bug)] = seed
	}
	return known
}

// lookFor plays seeds until one shows the bug. The result is nil when none does.
func lookFor(bug plant.Bug) (seed uint64, result *Result) {
	var mu sync.Mutex
	within := uint64(4000)
	switch bug {
	case plant.LossesForgotten, // it takes a killer, and two hosts whose loss nothing else tells of
		plant.VirtualWatchdog: // it takes a virtual host that goes on after its watchdog was to fire, and a guest that is started elsewhere
		within = 20_000
	}
	each(1, within, func(n uint64) bool {
		script := script.Generate(n)
		if slices.Contains(plant.FenceBugs, bug) != (len(script.Fences) > 0) || !mayShow(bug, &script) {
			return false
		}
		played := Run(script, nil, bug)
		mu.Lock()
		defer mu.Unlock()
		if result == nil && played.Failed() {
			seed, result = n, &played
		}
		return result != nil
	})
	return seed, result
}

// mayShow leaves out sites that cannot show a bug, which is quicker than playing them.
func mayShow(bug plant.Bug, played *script.Script) bool {
	switch bug {
	case plant.GateLeftOut:
		return len(played.Old) > 0 && played.Draws(script.PausedHost)
	case plant.RemovedSentAway:
		return played.Draws(script.Removed)
	case plant.PausedRuns:
		return played.Draws(script.PoolFills)
	case plant.RestoredRuns, plant.DiskUnasked:
		return played.Draws(script.Restore)
	case plant.BoundMoves:
		return played.Draws(script.Attach)
	case plant.JobUnasked:
		return played.Draws(script.Backup)
	case plant.WrongFile, plant.OneLiarBindsAll:
		return len(played.Liars) > 0
	case plant.DriftUnfollowed, plant.LastRunUnheeded, plant.EditsUnwritten:
		return played.Drifts
	case plant.LocalMoves:
		return played.Local > 0
	case plant.DiskSizeUnasked:
		return slices.ContainsFunc(script.Resizes, played.Draws)
	case plant.LossesForgotten:
		return played.Draws(script.Killer)
	case plant.SickAtOnce:
		return played.SickAfter > 0
	default:
		return true
	}
}

// Every member that applies the log comes to the same state, also by way of a snapshot.
func TestTheLogGivesOneState(t *testing.T) {
	each(1, 20, func(seed uint64) bool {
		w := play(script.Generate(seed), nil, plant.None)
		replayed := state.NewStore()
		if w.shelf.Base != nil {
			var err error
			if replayed, err = state.Load(bytes.NewReader(w.shelf.Base)); err != nil {
				t.Fatal(err)
			}
		}
		for i, data := range w.log {
			replayed.FSM().Apply(&raft.Log{Index: w.shelf.Since + uint64(i+1), Data: data})
		}
		if want, got := w.store.Hash(), replayed.Hash(); want != got {
			t.Errorf("seed %d: the log gives %s, then %s", seed, want, got)
		}
		return false
	})
}
