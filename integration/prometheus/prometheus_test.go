package prometheus

import (
	"fmt"
	"testing"
)

// A real Prometheus reads the lab with what is shipped. It finds the agents by itself, every query of the dashboard is answered, and alerts
// fire when something is taken away, and clear when it is back.
func TestARealPrometheusReadsALab(t *testing.T) {
	s := raise(t)
	s.does("vm", "start", "web1", "--memory", "64M", "--node", "node1")
	p := s.serve()
	p.comes("the figures of all coordinators", fmt.Sprintf(`sum(up{job="berth"}) == %d`, len(s.lab.Coordinators)))
	p.comes("the agents of all hosts", fmt.Sprintf(`sum(up{job="berth-agents"}) == %d`, len(s.lab.Hosts)))
	p.comes("a rule that is recorded", `{__name__=~"berth:.+"}`)
	p.comes("the figures of the guest", `berth_vm_info{vm="web1"}`)
	s.does("vm", "migrate", "web1", "--to", "node2")
	p.comes("the migration", `berth_migration_duration_seconds_count > 0`)
	p.answersTheDashboard()

	down := firing("BerthNodeDown", `node="node1"`)
	p.goes("no alert about a node that is up", down)
	s.check(s.lab.Hosts[0].StopAgent())
	p.comes("an alert about a node that is gone", down)
	p.goes("none about the other one", firing("BerthNodeDown", `node="node2"`))
	p.comes("the agent's own figures being gone", `up{job="berth-agents",node="node1"} == 0`)
	s.check(s.lab.Hosts[0].StartAgent(t.Context()))
	p.goes("the alert's end", down)
	p.comes("the node being back", `berth_node_up{node="node1"} == 1 and on (node) up{job="berth-agents",node="node1"} == 1`)

	leaderless := firing("BerthNoLeader", "")
	p.goes("no alert about the leader", leaderless)
	for _, c := range s.lab.Coordinators[1:] {
		s.check(c.Stop())
	}
	p.comes("an alert that nobody leads", leaderless)
	for _, c := range s.lab.Coordinators[1:] {
		s.check(c.Start(t.Context()))
	}
	p.goes("that alert's end", leaderless)
	p.comes("the nodes being heard", fmt.Sprintf(`count(berth_node_up == 1) == %d`, len(s.lab.Hosts)))
}

// firing is an alert that fires, with these labels.
func firing(alert, labels string) string {
	return fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing",%s}`, alert, labels)
}
