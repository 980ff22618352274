package keys

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestMain(m *testing.M) {
	lab.Child()
	code := m.Run()
	fmt.Println(lab.Watched("keys"))
	os.Exit(code)
}

// How long things may take on two busy CPUs. Neither is a promise.
const (
	raiseLimit   = 90 * time.Second
	commandLimit = 2 * time.Minute
)

// site is a lab in the hands of the test.
type site struct {
	*testing.T
	lab *lab.Lab
}

// raise gives the test three hosts and a coordinator of its own.
func raise(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
	defer cancel()
	l, err := lab.Up(ctx, lab.Options{Name: "keys", Hosts: 3, Coordinators: 1, Log: t.Output()})
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
	return &site{T: t, lab: l}
}

// sub runs a part of the test under a name of its own.
func (s *site) sub(name string, part func(*site)) {
	s.Run(name, func(t *testing.T) { part(&site{T: t, lab: s.lab}) })
}

// berth runs the command line on the operator's machine and checks its exit code and that it says all of these.
func (s *site) berth(code int, args []string, says ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), commandLimit)
	defer cancel()
	result, err := s.lab.CLI(ctx, args...)
	said := result.Stdout + result.Stderr
	if err != nil || result.Code != code {
		s.Fatalf("berth %s: exit code %d, want %d (%v)\n%s", strings.Join(args, " "), result.Code, code, err, said)
	}
	for _, words := range says {
		if !strings.Contains(said, words) {
			s.Errorf("berth %s does not say %q:\n%s", strings.Join(args, " "), words, said)
		}
	}
	return result.Stdout
}

// does runs a command that has to work.
func (s *site) does(args ...string) string {
	s.Helper()
	return s.berth(0, args)
}

// file puts a file on the operator's machine and returns its path there.
func (s *site) file(name, text string) string {
	s.Helper()
	path := filepath.Join("/root", name)
	if err := os.WriteFile(s.lab.Operator.Path(path), []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	return path
}

// start starts a VM and returns the host that runs it, as the hosts themselves show it.
func (s *site) start(name string, flags ...string) string {
	s.Helper()
	s.does(append([]string{"vm", "start", name}, flags...)...)
	host, err := s.lab.HostOf(name)
	if err != nil {
		s.Fatal(err)
	}
	return host.Name
}

// clear stops and deletes VMs.
func (s *site) clear(names ...string) {
	s.Helper()
	for _, name := range names {
		s.does("vm", "stop", name, "--force")
		s.does("vm", "delete", name, "--yes")
	}
}

// last is the newest decision.
func (s *site) last() *berthv1.Decision {
	s.Helper()
	var answer berthv1.GetDecisionResponse
	if err := s.lab.Ask(s.Context(), &answer, "decision", "show", "last"); err != nil {
		s.Fatal(err)
	}
	return answer.GetDecision()
}

// verdict is what one constraint said of one node.
func (s *site) verdict(decision *berthv1.Decision, node, constraint string) *berthv1.ConstraintResult {
	s.Helper()
	for _, one := range decision.GetNodes() {
		if one.GetNode() != node {
			continue
		}
		for _, result := range one.GetConstraints() {
			if result.GetConstraint() == constraint {
				return result
			}
		}
	}
	s.Fatalf("decision %s has no verdict of %s on %s", decision.GetId(), constraint, node)
	return nil
}
