package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.yaml.in/yaml/v3"

	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
)

// The binary is that of Debian's package; `make deps` gets it.
const prometheusProgram = "../../bin/lab/prometheus"

// What is shipped for Prometheus.
const (
	shippedRules     = "../../packaging/prometheus/berth.rules.yaml"
	shippedDashboard = "../../packaging/grafana/berth.json"
)

// A real Prometheus reads the coordinators and the shipped rules. Every query of the dashboard is answered. An alert fires when a node is
// gone, and clears when it is back.
func TestARealPrometheus(t *testing.T) {
	program, err := filepath.Abs(prometheusProgram)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatal(err, ": 'make deps' gets it")
	}
	s := &site{T: t, program: filepath.Join(t.TempDir(), "berth")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, "berth/coordinator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
	s.coordinators, err = testbed.RaiseCoordinators(t.Context(), s.program, t.TempDir(), 3)
	s.check(err)
	t.Cleanup(func() {
		if err := s.coordinators.Close(); err != nil {
			t.Error(err)
		}
	})
	s.fleet, err = testbed.EnrolFleet(t.Context(), s.coordinators, 2)
	s.check(err)
	t.Cleanup(s.fleet.Close)
	_, err = s.api().StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{
		Name: "web1", Node: "node1", RequestId: "web1", Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
	}))
	s.check(err)
	s.stands("web1", running, "node1")
	p := s.scraped(program)
	p.answersTheDashboard()

	const alert = `ALERTS{alertname="BerthNodeDown",node="odd",alertstate="firing"}`
	runs := s.enrols("odd")
	end := runs()
	p.awaits("the node", `berth_node_up{node="odd"} == 1`, true)
	p.awaits("no alert", alert, false)
	end()
	p.awaits("an alert about the node that is gone", alert, true)
	end = runs()
	defer end()
	p.awaits("the alert's end", alert, false)
	p.awaits("the node being back", `berth_node_up{node="odd"} == 1`, true)
}

// prometheus is a server that reads the coordinators.
type prometheus struct {
	*site
	at string
}

// patient is how long an alert waits, in the shipped rules. The test has not so long.
var patient = regexp.MustCompile(`(?m)^(\s+for: ).*$`)

// scraped starts a Prometheus with the shipped rules.
func (s *site) scraped(program string) *prometheus {
	s.Helper()
	dir := s.TempDir()
	rules, err := os.ReadFile(shippedRules)
	s.check(err)
	s.check(os.WriteFile(filepath.Join(dir, "rules.yaml"), patient.ReplaceAll(rules, []byte("${1}1s")), 0o600))
	var targets []string
	for _, member := range s.coordinators.Members {
		targets = append(targets, member.Metrics)
	}
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{"job_name": "berth", "static_configs": []any{map[string]any{"targets": targets}}}},
	})
	s.check(err)
	s.check(os.WriteFile(filepath.Join(dir, "prometheus.yaml"), config, 0o600))
	addresses, err := testbed.FreeAddresses(1)
	s.check(err)
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	command := exec.CommandContext(ctx, program, "--config.file", filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addresses[0], "--log.level", "warn")
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	s.check(command.Start())
	s.Cleanup(func() {
		stop()
		_ = command.Wait() // it was ended
		if s.Failed() {
			s.Logf("Prometheus said\n%s", said.String())
		}
	})
	p := &prometheus{s, "http://" + addresses[0]}
	p.awaits("the figures of all coordinators", fmt.Sprintf(`sum(up{job="berth"}) == %d`, len(targets)), true)
	p.awaits("a rule that is recorded", `{__name__=~"berth:.+"}`, true)
	return p
}

var errAnswer = errors.New("prometheus does not answer")

// ask is how many series a query has.
func (p *prometheus) ask(ctx context.Context, query string) (series int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.at+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string            `json:"resultType"`
			Result     []json.RawMessage `json:"result"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("%w: %s", errAnswer, answer.Error)
	}
	return len(answer.Data.Result), nil
}

// awaits waits until a query has series, or none.
func (p *prometheus) awaits(what, query string, some bool) {
	p.Helper()
	p.site.awaits(what, func(ctx context.Context) error {
		series, err := p.ask(ctx, query)
		if err == nil && series > 0 != some {
			err = fmt.Errorf("%s has %d series", query, series)
		}
		return err
	})
}

// answersTheDashboard asks all queries of the dashboard, as Grafana would.
func (p *prometheus) answersTheDashboard() {
	p.Helper()
	text, err := os.ReadFile(shippedDashboard)
	p.check(err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	p.check(json.Unmarshal(text, &dashboard))
	asked := 0
	var empty []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			asked++
			query := strings.NewReplacer("$cluster", ".*", "$__rate_interval", "1m", "$__range", "5m").Replace(target.Expr)
			series, err := p.ask(p.Context(), query)
			switch {
			case err != nil:
				p.Errorf("%s: %s: %v", panel.Title, query, err)
			case series == 0:
				empty = append(empty, panel.Title+": "+query)
			}
		}
	}
	slices.Sort(empty)
	p.Logf("%d of %d queries have nothing to show:\n%s", len(empty), asked, strings.Join(empty, "\n"))
	if asked < 30 || len(empty) > asked/3 {
		p.Errorf("%d of %d queries of the dashboard have no answer", len(empty), asked)
	}
}
