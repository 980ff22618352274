package conformance

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// foldersVariable names further folders with cases.
const foldersVariable = "BERTH_CONFORMANCE_DIR"

// runner runs one case: what is given, and what is expected.
type runner = func(c *checker, given, expect json.RawMessage)

// cloudStack is what the file of its cases names.
const cloudStack = "CloudStack user dispersing planner (with first-fit, host allocator and cluster DRS)"

// systems have kinds of their own, by the system that a file names: words that others use for something else.
var systems = map[string]map[string]runner{
	"oVirt even VM count distribution": evenVMCountRunners,
	cloudStack:                         cloudStackRunners,
}

// runners know how to run a kind of case.
var runners = map[string]runner{
	"proximity":         runProximity,
	"thresholds":        runThresholds,
	"select":            runSelect,
	"score":             runScore,
	"special_keys":      runSpecialKeys,
	"constraint":        runConstraint,
	"constraint_states": runConstraintStates,
	"pipeline":          runPipeline,
	"compile":           runCompile,
	"compile_ladder":    runCompileLadder,
	"compile_classes":   runCompileClasses,
	"licensing":         runLicensing,
	"key_rules":         runKeyRules,
	"node_keys":         runNodeKeys,
	"node_compile":      runNodeCompile,
	"customer_round":    runCustomerRound,
	"migrate_best_node": runMigrateBestNode,
	"lifecycle":         runLifecycle,
	"sticky":            runSticky,

	"host_filter":       runHostFilter,
	"host_filter_empty": runHostFilter,
	"host_weight":       runHostWeight,
	"vm_filter":         runHostFilter,
	"vm_weight":         runVMWeight,
	"place":             runPlace,
	"unify":             runUnify,
	"broken":            runBroken,
	"conflict":          runConflict,
	"api_mapping":       runAPIMapping,
	"soft_improvement":  runSoftImprovement,
	"enforcer":          runEnforcer,
	"enforcer_soft_vm":  runSoftVMs,
	"enforce_step":      runEnforceStep,
	"manager":           runManager,
	"defaults":          runDefaults,

	"declared_cluster": runDeclaredCluster,
	"declared_group":   runDeclaredGroup,
	"exported":         runExported,
	"planner_in":       runPlannerIn,

	"prefer": runPrefer,
	"vcpus":  runVCPUs,

	"rank_select":                runRankSelect,
	"rank_select_empty":          runRankEmpty,
	"scheduler_shortcut":         runShortcut,
	"rank_csv":                   runRankCSV,
	"list_ranks":                 runListRanks,
	"list_order":                 runListOrder,
	"basic_select":               runBasicSelect,
	"normalisation_alternatives": runAlternatives,
	"weights":                    runPreferredWeights,
}

func TestConformance(t *testing.T) {
	folders := append([]string{"testdata"}, filepath.SplitList(os.Getenv(foldersVariable))...)
	for i, folder := range folders {
		if i > 0 && !filepath.IsAbs(folder) {
			folder = filepath.Join("..", "..", folder)
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("no cases in %s: %v", folder, err)
		}
		for _, file := range files {
			runFile(t, file)
		}
	}
}

// runFile runs each case of a file as a subtest named by its id.
func runFile(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct {
		System      string
		CaseCount   *int `json:"case_count"`
		Cases       []json.RawMessage
		Conventions struct{ Tolerance float64 }
	}
	if err := json.Unmarshal(content, &suite); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(suite.Cases) == 0 || suite.CaseCount != nil && *suite.CaseCount != len(suite.Cases) {
		t.Errorf("%s has %d cases, and another case_count or none", file, len(suite.Cases))
	}
	seen := map[string]bool{}
	for i, raw := range suite.Cases {
		var one struct {
			ID, Kind      string
			Given, Expect json.RawMessage

			// For people.
			Title, Source, Ambiguity, Note, Notes, Comment, Description, Tags json.RawMessage
		}
		if err := strictly(raw, &one); err != nil {
			t.Errorf("%s: case %d, %q: %v", file, i+1, one.ID, err)
			continue
		}
		if seen[one.ID] || one.ID == "" {
			t.Errorf("%s: case %d: its id %q is empty or there twice", file, i+1, one.ID)
		}
		seen[one.ID] = true
		t.Run(one.ID, func(t *testing.T) {
			run, known := systems[suite.System][one.Kind]
			if !known {
				run, known = runners[one.Kind]
			}
			if !known {
				t.Fatalf("unknown kind %q", one.Kind)
			}
			c := &checker{T: t, tolerance: suite.Conventions.Tolerance}
			if c.tolerance == 0 {
				c.tolerance = 1e-6
			}
			run(c, one.Given, one.Expect)
			if c.checked == 0 {
				t.Error("nothing was expected")
			}
		})
	}
}

// checker is one running case. It counts what was compared.
type checker struct {
	*testing.T
	tolerance float64
	checked   int
}

// decode reads one side of a case.
func decode[T any](c *checker, raw json.RawMessage) T {
	c.Helper()
	var into T
	if err := strictly(raw, &into); err != nil {
		c.Fatal(err)
	}
	return into
}

// must ends a case that cannot be run.
func (c *checker) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *checker) near(what string, got, want float64) {
	c.Helper()
	c.checked++
	if !(math.Abs(got-want) <= c.tolerance) { // not a number is near nothing
		c.Errorf("%s is %v, want %v", what, got, want)
	}
}

func (c *checker) same(what string, got, want any) {
	c.Helper()
	c.checked++
	if got != want {
		c.Errorf("%s is %v, want %v", what, got, want)
	}
}

// sameSet compares without regard to order.
func (c *checker) sameSet(what string, got, want []string) {
	c.Helper()
	c.checked++
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		c.Errorf("%s is %v, want %v", what, got, want)
	}
}

// sameScores compares what is expected of each node, and nothing of the others.
func (c *checker) sameScores(what string, got, want map[string]float64) {
	c.Helper()
	for name, score := range want {
		found, there := got[name]
		if !there {
			c.Errorf("%s of %s is not there", what, name)
			continue
		}
		c.near(what+" of "+name, found, score)
	}
}
