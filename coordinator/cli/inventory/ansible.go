package inventory

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// group is one group of an Ansible inventory.
type group struct {
	Hosts    []string `json:"hosts,omitempty"`
	Children []string `json:"children,omitempty"`

	Variables map[string]any `json:"vars,omitempty"`
}

const (
	allGroup         = "berth"
	nodesGroup       = "berth_nodes"
	coordinatorGroup = "berth_coordinators"
)

// ansibleInventory is what Ansible reads of a program that is asked for --list. With _meta it asks for no host by itself.
func ansibleInventory(ctx context.Context, session *term.Session, s *site) (any, error) {
	if err := s.readHosts(ctx, session); err != nil {
		return nil, err
	}
	variables, groups := map[string]map[string]any{}, map[string]*group{}
	add := func(name, host string) {
		if groups[name] == nil {
			groups[name] = &group{}
		}
		if !slices.Contains(groups[name].Hosts, host) {
			groups[name].Hosts = append(groups[name].Hosts, host)
		}
	}
	for _, member := range s.members {
		name := member.GetName()
		of := variablesOf(variables, name, "coordinator")
		if host, _, err := net.SplitHostPort(member.GetApiAddress()); err == nil && host != name {
			of["ansible_host"] = host
		}
		of["berth_leader"], of["berth_voter"] = member.GetLeader(), member.GetVoter()
		if s.known == nil { // only the leader knows
			of["berth_healthy"] = member.GetHealthy()
		}
		add(coordinatorGroup, name)
	}
	clusters := map[string]bool{}
	for _, node := range s.nodes {
		name, cluster := node.GetName(), cmp.Or(node.GetCluster(), model.DefaultCluster)
		maps.Copy(variablesOf(variables, name, "node"), nodeVariables(node, cluster))
		clusters[groupName("cluster", cluster)] = true
		add(groupName("cluster", cluster), name)
		for _, label := range node.GetLabels() {
			add(groupName("label", label), name)
		}
	}
	told := map[string]any{
		"_meta":    map[string]any{"hostvars": variables},
		allGroup:   group{Children: []string{coordinatorGroup, nodesGroup}, Variables: asOf(s.known)},
		nodesGroup: group{Children: slices.Sorted(maps.Keys(clusters))},
	}
	for name, one := range groups {
		told[name] = one
	}
	if groups[coordinatorGroup] == nil {
		told[coordinatorGroup] = group{}
	}
	return told, nil
}

// asOf says as of when the inventory is, and who tells it; nil: it is of now.
func asOf(known *berthv1.LastKnown) map[string]any {
	if known == nil {
		return nil
	}
	said := map[string]any{"berth_answered_by": inert(known.GetAnsweredBy())}
	if known.GetAt() != nil {
		said["berth_as_of"] = known.GetAt().AsTime().Format(time.RFC3339)
	}
	return said
}

// variablesOf are those of a host. A machine may be a node and a coordinator.
func variablesOf(all map[string]map[string]any, host, role string) map[string]any {
	if all[host] == nil {
		all[host] = map[string]any{}
	}
	roles, _ := all[host]["berth_roles"].([]string)
	all[host]["berth_roles"] = append(roles, role)
	return all[host]
}

func nodeVariables(node *berthv1.Node, cluster string) map[string]any {
	return map[string]any{
		"berth_cluster": inert(cluster), "berth_node_id": node.GetId(), "berth_state": term.Enum(node.GetState(), "NODE_STATE_"),
		"berth_maintenance": node.GetMaintenance(), "berth_labels": inertList(node.GetLabels()), "berth_vms": inertList(node.GetVms()),
		"berth_agent_release": inert(node.GetAgentRelease()), "berth_memory_bytes": node.GetInventory().GetMemoryBytes(),
		"berth_cpus": node.GetInventory().GetCpus(),
	}
}

// inert takes out of a text what Ansible would run on its own machine as a template. Some of what is told comes from nodes.
func inert(text string) string { return strings.ReplaceAll(text, "{", "(") }

// inertList is a list also where there is nothing.
func inertList(texts []string) []string {
	list := make([]string, 0, len(texts))
	for _, text := range texts {
		list = append(list, inert(text))
	}
	return list
}

// groupName makes a name of a group of what may have any characters: Ansible takes letters, digits and underscores.
func groupName(kind, name string) string {
	return allGroup + "_" + kind + "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}
