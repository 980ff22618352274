package prometheus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/integration/bench/testbed"
	"berth/integration/lab"
)

func TestMain(m *testing.M) {
	lab.Child()
	code := m.Run()
	fmt.Println(lab.Watched("prometheus"))
	os.Exit(code)
}

// How long things may take on two busy CPUs. Neither is a promise.
const (
	raiseLimit = 3 * time.Minute
	patience   = 3 * time.Minute
)

// site is a lab whose figures other machines can read.
type site struct {
	*testing.T
	lab *lab.Lab
}

// tokenPath is where each machine has the token of those who read figures.
const (
	tokenPath = "/etc/berth/metrics.token"
	token     = "reads-figures"
)

// raise makes the lab: three coordinators, so that two of them can be missed, and two hosts.
func raise(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
	defer cancel()
	l, err := lab.Up(ctx, lab.Options{Name: "prometheus", Hosts: 2, Coordinators: 3, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	watch := l.Observe()
	t.Cleanup(func() {
		for _, fault := range append(watch.Faults(), l.Down()) {
			if fault != nil {
				t.Error(fault)
			}
		}
	})
	s := &site{T: t, lab: l}
	s.put(l.Operator, tokenPath, token)
	for _, c := range l.Coordinators {
		s.opens(c.Machine, "coordinator.yaml", "7424")
		s.check(c.Stop())
		s.check(c.Start(t.Context()))
	}
	for _, h := range l.Hosts {
		s.opens(h.Machine, "agent.yaml", "7425")
		s.check(h.StopAgent())
		s.check(h.StartAgent(t.Context()))
	}
	s.check(l.AwaitReady(ctx))
	return s
}

// opens lets other machines read what a program of this one serves at a port.
func (s *site) opens(m *lab.Machine, file, port string) {
	s.Helper()
	path := filepath.Join("/etc/berth", file)
	text, err := os.ReadFile(m.Path(path))
	s.check(err)
	config := map[string]any{}
	s.check(yaml.Unmarshal(text, &config))
	config["metrics"] = map[string]string{"listen": m.Address + ":" + port, "token_file": tokenPath}
	text, err = yaml.Marshal(config)
	s.check(err)
	s.put(m, path, string(text))
	s.put(m, tokenPath, token)
}

// put writes a file on a machine that everybody there may read.
func (s *site) put(m *lab.Machine, path, text string) {
	s.Helper()
	s.check(os.MkdirAll(filepath.Dir(m.Path(path)), 0o755))
	s.check(os.WriteFile(m.Path(path), []byte(text), 0o644))
}

// check ends the test with an error.
func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// does runs a command as the operator that has to work.
func (s *site) does(args ...string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if result, err := s.lab.CLI(ctx, args...); err != nil || result.Code != 0 {
		s.Fatalf("berth %s: exit code %d (%v)\n%s%s", strings.Join(args, " "), result.Code, err, result.Stdout, result.Stderr)
	}
}

// awaits repeats a check until it has no complaint.
func (s *site) awaits(what string, check func(context.Context) error) {
	s.Helper()
	s.check(testbed.Await(s.Context(), what, patience, check))
}
