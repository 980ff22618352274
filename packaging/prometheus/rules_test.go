package prometheus

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	agent "berth/agent/metrics"
	coordinator "berth/coordinator/metrics"
	"berth/shared/exposition"
	"berth/shared/scrape"
)

const (
	rulesFile     = "berth.rules.yaml"
	dashboardFile = "../grafana/berth.json"
)

// rules is a file of rules.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Record, Alert, Expr string
			Labels, Annotations map[string]string
		}
	}
}

func readRules(t *testing.T) (read rules) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// dashboard is what of a dashboard asks Prometheus.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
		GridPos struct{ X, Y, W, H int }
	}
}

func readDashboard(t *testing.T) (read dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

var (
	metric  = regexp.MustCompile(`[a-z0-9_:]*\bberth[a-z0-9_:]+`)
	matcher = regexp.MustCompile(`(berth_[a-z0-9_]+)\{([^}]*)\}`)
	label   = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
)

// exported are the labels of what the programs export, by the names of their series.
func exported() map[string][]string {
	found := map[string][]string{}
	for _, family := range slices.Concat(coordinator.Families(), agent.Families(), scrape.Families()) {
		names := []string{family.Name}
		if family.Type == exposition.Histogram {
			names = []string{family.Name + "_bucket", family.Name + "_sum", family.Name + "_count"}
		}
		for _, name := range names {
			found[name] = family.Labels
		}
	}
	return found
}

// A rule or a panel whose metric is not there shows nothing, for ever, and nobody is told.
func TestWhatRulesAndPanelsAskForIsExported(t *testing.T) {
	known, recorded := exported(), map[string]bool{}
	asked := map[string]string{} // expression by where it stands
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			asked[rulesFile+": "+rule.Record+rule.Alert] = rule.Expr
			if rule.Record != "" {
				recorded[rule.Record] = true
			}
		}
	}
	read := readDashboard(t)
	for _, variable := range read.Templating.List {
		asked[dashboardFile+": variable "+variable.Name] = variable.Definition
	}
	for _, panel := range read.Panels {
		for _, target := range panel.Targets {
			asked[dashboardFile+": "+panel.Title+": "+target.Expr] = target.Expr
		}
	}
	named := 0
	for where, expression := range asked {
		for _, name := range metric.FindAllString(expression, -1) {
			named++
			if _, is := known[name]; !is && !recorded[name] {
				t.Errorf("%s: nothing exports %s", where, name)
			}
		}
		for _, found := range matcher.FindAllStringSubmatch(expression, -1) {
			for _, one := range label.FindAllStringSubmatch(found[2], -1) {
				if labels, is := known[found[1]]; is && !slices.Contains(labels, one[1]) && one[1] != "le" {
					t.Errorf("%s: %s has no label %s", where, found[1], one[1])
				}
			}
		}
	}
	if named < 60 || len(recorded) < 5 {
		t.Errorf("only %d metrics and %d recordings are found: this test looks at the wrong place", named, len(recorded))
	}
}

func TestAnAlertSaysHowBadItIs(t *testing.T) {
	seen := map[string]bool{}
	for _, group := range readRules(t).Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" {
				continue
			}
			if seen[rule.Alert] || !strings.HasPrefix(rule.Alert, "Berth") {
				t.Errorf("%s: want a name of its own that begins with Berth", rule.Alert)
			}
			seen[rule.Alert] = true
			if s := rule.Labels["severity"]; s != "critical" && s != "warning" || rule.Annotations["summary"] == "" {
				t.Errorf("%s: severity %q, annotations %v", rule.Alert, s, rule.Annotations)
			}
		}
	}
}

func TestPanelsHaveTheirPlaces(t *testing.T) {
	ids, taken := map[int]bool{}, map[[2]int]string{}
	read := readDashboard(t)
	if read.UID == "" || len(read.Panels) < 20 {
		t.Errorf("the dashboard %q has %d panels", read.UID, len(read.Panels))
	}
	for _, panel := range read.Panels {
		at := panel.GridPos
		if ids[panel.ID] || at.X+at.W > 24 {
			t.Errorf("%s: ID %d, place %+v", panel.Title, panel.ID, at)
		}
		ids[panel.ID] = true
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s is on %s", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}

// Promtool knows whether Prometheus takes the rules, and whether alerts fire and clear. `make deps` gets it.
func TestPromtoolAgrees(t *testing.T) {
	promtool, err := exec.LookPath("../../bin/lab/promtool")
	if err != nil {
		if testing.Short() {
			t.Skip(err, ": 'make deps' gets it")
		}
		t.Fatal(err, ": 'make deps' gets it")
	}
	for _, arguments := range [][]string{
		{"check", "rules", rulesFile},
		{"test", "rules", "berth.rules.test.yaml"},
		{"check", "config", "--syntax-only", "prometheus.example.yaml"},
	} {
		if out, err := exec.Command(promtool, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
}
