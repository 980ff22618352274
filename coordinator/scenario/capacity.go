package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/shared/units"
)

// capacity asks how many more VMs of one kind fit. It changes nothing.
type capacity struct {
	memory       units.Bytes
	vcpus        int
	vdc, cluster string
	most         int
}

func (a *capacity) do(w *world, _ uint64, report *StepReport) error {
	vm := model.VM{Name: "one more", Spec: model.VMSpec{Memory: a.memory, VCPUs: a.vcpus}}
	if a.vdc != "" {
		vdc, known := w.state.ResourceByName(model.KindVDC, a.vdc)
		if !known {
			return fmt.Errorf("there is no VDC %q", a.vdc)
		}
		vm.VDC = vdc.ID
	}
	resolved, err := estate.Resolve(&w.state, vm)
	if err != nil {
		return err
	}
	request := estate.Request(resolved, vm, placement.ForStart)
	record := resolved.Record
	if a.cluster != "" && a.cluster != resolved.Cluster {
		// A VM in no VDC has nothing but the keys of its cluster.
		found, known := w.state.ResourceByName(model.KindCluster, a.cluster)
		if !known {
			return fmt.Errorf("there is no cluster %q", a.cluster)
		}
		system, customer := key.Compile([]key.Layer{{Level: key.LevelCluster, Resource: "cluster/" + found.Name, Keys: found.Keys}})
		record, request.Cluster = found, found.Name
		request.SystemKeys, request.CustomerKeys = key.WeightedOf(system), key.WeightedOf(customer)
	}
	policy, _, err := estate.PolicyOf(&w.state, record)
	if err != nil {
		return err
	}
	engine, err := placement.NewEngine(policy)
	if err != nil {
		return err
	}
	counted := engine.Capacity(w.view().Columns(request.Cluster), w.at, request, a.most)
	report.Capacity = &counted
	report.Said = capacityText(&counted)
	return nil
}

// capacityText says how many fit where, and what refuses one more.
func capacityText(c *placement.Capacity) string {
	text := strconv.Itoa(c.Count) + " more fit"
	if c.Cut {
		text = "at least " + text
	}
	nodes := make([]string, 0, len(c.Nodes))
	for i := range c.Nodes {
		one := c.Nodes[i].Name + " " + strconv.Itoa(c.Nodes[i].Count)
		if out := c.Nodes[i].RunsOut; out.Constraint != "" {
			one += " (" + out.Constraint + ")"
		}
		nodes = append(nodes, one)
	}
	if len(nodes) > 0 {
		text += ": " + strings.Join(nodes, ", ")
	}
	if c.RunsOut != "" {
		text += "; " + c.RunsOut + " runs out first"
	}
	for _, warning := range c.Warnings {
		text += "; warning: " + warning
	}
	return text
}
