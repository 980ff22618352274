package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// showingDiffers says of which domain or disk MayShow or WithDisk does not tell what a look at all nodes does; empty: of none.
func (s *site) showingDiffers() string {
	if what := cmp.Or(s.disksDiffer(), s.copiesDiffer()); what != "" {
		return what
	}
	wanted := map[string][]string{"nobody shows it": nil}
	var untold []string
	for id, n := range s.soft.nodes {
		for uuid := range n.domains {
			wanted[uuid] = append(wanted[uuid], id)
		}
		if n.session != nil && n.inventory == nil {
			untold = append(untold, id)
		}
	}
	if len(s.soft.showing) != len(wanted)-1 {
		return fmt.Sprintf("%d domains are listed, and %d are kept", len(wanted)-1, len(s.soft.showing))
	}
	for uuid, nodes := range wanted {
		nodes = append(nodes, untold...)
		slices.Sort(nodes)
		if want, got := slices.Compact(nodes), s.soft.MayShow(uuid); !slices.Equal(got, want) {
			return fmt.Sprintf("%s may be on %v, and is said to be on %v", uuid, want, got)
		}
	}
	return ""
}

// factsDiffer says of which node what is kept of its facts is not what is joined anew; empty: of none.
func (s *site) factsDiffer(now time.Time) string {
	for id, n := range s.soft.nodes {
		if got, want := s.soft.Facts(id, now), n.join(s.soft.liveness(n, now)); !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("facts of %s:\n%+v\n%+v", id, got, want)
		}
	}
	return ""
}

// copiesDiffer says which VM more than one node shows, or none, while the list of those says another thing.
func (s *site) copiesDiffer() string {
	for uuid, held := range s.soft.copies.by {
		if several := len(held.nodes) > 1; several != (s.soft.copies.many[uuid] == held) {
			return fmt.Sprintf("%s is shown by %v, and listed among those that several show: %t", uuid, held.nodes, !several)
		}
	}
	for uuid := range s.soft.copies.many {
		if s.soft.copies.by[uuid] == nil {
			return uuid + " is listed among those that several show, and nobody does"
		}
	}
	return ""
}

func (s *site) disksDiffer() string {
	wanted := map[string][]string{}
	for id, n := range s.soft.nodes {
		for _, one := range n.domains {
			for _, source := range one.wire.GetSources() {
				name := diskSource(source).FileName()
				wanted[name] = append(wanted[name], id)
			}
		}
	}
	if len(s.soft.withDisk) != len(wanted) {
		return fmt.Sprintf("%d disks are listed, and %d are kept", len(wanted), len(s.soft.withDisk))
	}
	for name, nodes := range wanted {
		slices.Sort(nodes)
		if want, got := slices.Compact(nodes), s.soft.WithDisk(name); !slices.Equal(got, want) {
			return fmt.Sprintf("disk %s is on %v, and is said to be on %v", name, want, got)
		}
	}
	return ""
}

// settledDiffers says that Settled does not tell what a look at all nodes does; empty: it does.
func (s *site) settledDiffers(snapshot *state.Snapshot, now time.Time) string {
	want := now.Sub(s.soft.since) >= model.SessionGrace
	if !want {
		known := maps.Clone(s.soft.nodes)
		maps.DeleteFunc(known, func(_ string, n *node) bool { return n.inventory == nil || n.telemetry == nil })
		want = !slices.ContainsFunc(snapshot.Nodes(), func(record model.Node) bool { return known[record.ID] == nil })
	}
	if got := s.soft.Settled(snapshot, now); got != want {
		return fmt.Sprintf("settled %t, want %t", got, want)
	}
	return ""
}
