package scenario

import (
	"fmt"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// liveness is a node that goes down, or comes up again. Its VMs stay its own: that they are gone is said with stop.
type liveness struct {
	node string
	down bool
}

func (a *liveness) do(w *world, _ uint64, report *StepReport) error {
	record, n, err := w.node(a.node)
	if err != nil {
		return err
	}
	report.Said = a.node + " is up"
	if !a.down && n.facts.Liveness != model.Up && !w.still { // it reports as soon as it is heard
		n.facts.InventoryAt, n.facts.TelemetryAt = later(n.facts.InventoryAt, w.at), later(n.facts.TelemetryAt, w.at)
	}
	n.facts.Liveness, n.facts.LivenessReason = model.Up, ""
	if a.down {
		w.interrupt(record.ID)
		n.facts.Liveness, n.facts.LivenessReason = model.Unreachable, "it is down"
		report.Said = fmt.Sprintf("%s is unreachable and keeps %s until they are stopped", a.node, count(len(n.guests), "guest"))
	}
	return nil
}

// later is the moment that a figure which is known has from now on.
func later(known, now time.Time) time.Time {
	if known.IsZero() {
		return known
	}
	return now
}

// maintenance lets nothing new come to a node, or ends that.
type maintenance struct {
	node   string
	on     bool
	reason string
}

func (a *maintenance) do(w *world, _ uint64, report *StepReport) error {
	record, _, err := w.node(a.node)
	if err != nil {
		return err
	}
	record.Maintenance, record.MaintenanceReason = a.on, a.reason
	report.Said = a.node + " takes VMs again"
	if a.on {
		report.Said = a.node + " is in maintenance"
	}
	return nil
}

// setNode is new telemetry of a node. It is fresh, and it has the VMs that were started before.
type setNode struct {
	node string
	figures
}

func (a *setNode) do(w *world, _ uint64, report *StepReport) error {
	record, n, err := w.node(a.node)
	if err != nil {
		return err
	}
	if a.news() {
		n.facts.Telemetry, n.facts.TelemetryAt = true, w.at
	}
	if a.available != nil {
		for i := range n.guests {
			n.guests[i].young = false
		}
	}
	n.apply(w.at, &a.figures)
	if a.maintenance != nil {
		record.Maintenance, record.MaintenanceReason = *a.maintenance, a.maintenanceReason
	}
	report.Said = "taken over"
	return nil
}

// setGuest is new telemetry of a VM. The figures of its node are its own.
type setGuest struct {
	vm                  string
	resident, ballooned *units.Bytes
	cpu                 *float64
}

func (a *setGuest) do(w *world, _ uint64, report *StepReport) error {
	vm, err := w.vm(a.vm)
	if err != nil {
		return err
	}
	g, err := w.guest(vm)
	if err != nil {
		return err
	}
	take(&g.resident, a.resident)
	take(&g.cpu, a.cpu)
	if a.ballooned != nil {
		if *a.ballooned > g.limit() {
			return fmt.Errorf("the balloon of %s holds back %v of %v", g.name, *a.ballooned, g.limit())
		}
		g.ballooned = *a.ballooned
	}
	report.Said = "taken over"
	return nil
}

// setKey sets a key on a resource or a VM, or the value that a node has of a key of its cluster.
type setKey struct {
	on               reference
	key              model.Key
	weighed, classed bool
}

func (a *setKey) do(w *world, _ uint64, report *StepReport) error {
	report.Said = "set"
	if a.on.kind != model.KindNode {
		return w.editKeys(a.on, func(keys []model.Key) ([]model.Key, error) {
			return schema.SetKey(a.on.kind, keys, a.key)
		})
	}
	if a.weighed || a.classed {
		return fmt.Errorf("a node's key has neither weight nor class: the VMs' own keys weigh it")
	}
	return w.setNodeKey(a.on.name, a.key.Name, &a.key.Value)
}

// unsetKey takes a key away.
type unsetKey struct {
	on    reference
	name  string
	class model.KeyClass
}

func (a *unsetKey) do(w *world, _ uint64, report *StepReport) error {
	report.Said = "gone"
	if a.on.kind != model.KindNode {
		return w.editKeys(a.on, func(keys []model.Key) ([]model.Key, error) {
			left, there := schema.UnsetKey(a.on.kind, keys, a.class, a.name)
			if !there {
				return nil, fmt.Errorf("%s/%s has no %s key %q", a.on.kind, a.on.name, a.class, a.name)
			}
			return left, nil
		})
	}
	return w.setNodeKey(a.on.name, a.name, nil)
}

// setNodeKey sets the value that a node has of a key of its cluster, or with nil takes it away.
func (s *site) setNodeKey(node, name string, value *float64) error {
	record, _, err := s.node(node)
	if err != nil {
		return err
	}
	declared, known := s.state.ResourceByName(model.KindCluster, record.Cluster)
	if !known {
		declared = model.DefaultClusterRecord()
	}
	changed, err := estate.SetNodeKeyValue(declared, *record, name, value)
	if err != nil {
		return err
	}
	*record = changed
	return nil
}

// editKeys changes the keys of a resource or a VM. Records are replaced and not written into: others may share them.
func (s *site) editKeys(on reference, edit func([]model.Key) ([]model.Key, error)) error {
	if on.kind == model.KindVM {
		vm, err := s.vm(on.name)
		if err != nil {
			return err
		}
		keys, err := edit(vm.Keys)
		if err == nil {
			vm.Keys = keys
		}
		return err
	}
	if _, known := s.state.ResourceByName(on.kind, on.name); !known && on == (reference{model.KindCluster, model.DefaultCluster}) {
		s.state.Resources = append(s.state.Resources, model.DefaultClusterRecord())
	}
	for i := range s.state.Resources {
		if r := &s.state.Resources[i]; r.Kind == on.kind && r.Name == on.name {
			keys, err := edit(r.Keys)
			if err == nil {
				r.Keys = keys
			}
			return err
		}
	}
	return fmt.Errorf("there is no %s %q", on.kind, on.name)
}
