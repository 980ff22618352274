package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/integration/bench/testbed"
)

// The binary is that of Debian's package; `make deps` gets it.
const program = "../../bin/lab/prometheus"

// What is shipped for Prometheus.
const (
	shippedRules     = "../../packaging/prometheus/berth.rules.yaml"
	shippedDashboard = "../../packaging/grafana/berth.json"
)

// server is a Prometheus on the operator's machine.
type server struct {
	*site
	client *http.Client
}

// What it is called and where it answers, there.
const (
	service = "prometheus"
	folder  = "/var/lib/prometheus"
	address = "127.0.0.1:9090"
)

// patient is how long an alert waits, in the shipped rules. The test has not so long.
var patient = regexp.MustCompile(`(?m)^(\s+for: ).*$`)

// serve starts a Prometheus with the shipped rules, which asks the coordinators where agents are.
func (s *site) serve() *server {
	s.Helper()
	run, err := filepath.Abs(program)
	if err == nil {
		_, err = os.Stat(run)
	}
	if err != nil {
		s.Fatal(err, ": 'make deps' gets it")
	}
	rules, err := os.ReadFile(shippedRules)
	s.check(err)
	s.put(s.lab.Operator, folder+"/rules.yaml", string(patient.ReplaceAll(rules, []byte("${1}1s"))))
	shown := map[string]string{"type": "Bearer", "credentials_file": tokenPath}
	var targets []string
	var discovery []any
	for _, c := range s.lab.Coordinators {
		targets = append(targets, c.Address+":7424")
		discovery = append(discovery, map[string]any{
			"url": "http://" + c.Address + ":7424/targets", "authorization": shown, "refresh_interval": "2s",
		})
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]string{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{folder + "/rules.yaml"},
		"scrape_configs": []any{
			map[string]any{"job_name": "berth", "authorization": shown, "static_configs": []any{map[string]any{"targets": targets}}},
			map[string]any{
				"job_name": "berth-agents", "authorization": shown, "http_sd_configs": discovery,
				"relabel_configs": []any{map[string]any{"source_labels": []string{"role"}, "regex": "agent", "action": "keep"}},
			},
		},
	})
	s.check(err)
	s.put(s.lab.Operator, folder+"/prometheus.yaml", string(config))
	s.check(s.lab.Operator.Start(s.Context(), service, run, "--config.file", folder+"/prometheus.yaml",
		"--storage.tsdb.path", folder+"/data", "--web.listen-address", address, "--log.level", "warn"))
	pid := s.lab.Operator.Pid(service)
	p := &server{s, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			return testbed.DialFrom(ctx, pid, network, at)
		},
	}}}
	s.Cleanup(func() {
		p.client.CloseIdleConnections()
		if s.Failed() {
			s.Logf("Prometheus said\n%s", s.lab.Operator.Log(service))
		}
	})
	return p
}

var errAnswer = errors.New("prometheus does not answer")

// ask is how many series a query has.
func (p *server) ask(ctx context.Context, query string) (series int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	response, err := p.client.Do(request)
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

// comes waits until a query has series, and goes until it has none.
func (p *server) comes(what, query string) { p.Helper(); p.until(what, query, true) }
func (p *server) goes(what, query string)  { p.Helper(); p.until(what, query, false) }

func (p *server) until(what, query string, some bool) {
	p.Helper()
	p.awaits(what, func(ctx context.Context) error {
		series, err := p.ask(ctx, query)
		if err == nil && series > 0 != some {
			err = fmt.Errorf("%s has %d series", query, series)
		}
		return err
	})
}

// ofGroups is a figure that guests of a lab do not have: its libvirt makes no control groups.
const ofGroups = "berth_vm_pressure_ratio"

// answersTheDashboard asks all queries of the dashboard, as Grafana would.
func (p *server) answersTheDashboard() {
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
			case series == 0 && !strings.Contains(query, ofGroups):
				empty = append(empty, panel.Title+": "+query)
			}
		}
	}
	slices.Sort(empty)
	p.Logf("%d of %d queries have nothing to show:\n%s", len(empty), asked, strings.Join(empty, "\n"))
	if asked < 30 || len(empty) > asked/5 {
		p.Errorf("%d of %d queries of the dashboard have no answer", len(empty), asked)
	}
}
