package scrape

import "encoding/json"

// Target is one program whose figures are read, in the form of Prometheus' discovery by HTTP and by files.
type Target struct {
	Targets []string          `json:"targets"` // one HOST:PORT
	Labels  map[string]string `json:"labels"`
}

// CoordinatorTarget is that of a coordinator.
func CoordinatorTarget(address, name string) Target {
	return Target{[]string{address}, map[string]string{"role": "coordinator", "coordinator": name}}
}

// AgentTarget is that of a node's agent. Its own page has neither the name of its node nor that of the cluster.
func AgentTarget(address, node, cluster string) Target {
	return Target{[]string{address}, map[string]string{"role": "agent", "node": node, "cluster": cluster}}
}

// Discovery is a list of targets as Prometheus reads it.
func Discovery(targets []Target) ([]byte, error) {
	if targets == nil {
		targets = []Target{} // Prometheus wants a list
	}
	text, err := json.MarshalIndent(targets, "", "  ")
	return append(text, '\n'), err
}
