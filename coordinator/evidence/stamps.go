package evidence

import (
	"time"

	"berth/coordinator/model"
)

// maxAhead is how far a time in a record may be ahead of the leader's clock. Clocks that are kept differ by less.
const maxAhead = 5 * time.Minute

// Restamped are the records whose times have not come yet, with the present in their place: a leader has written them whose clock
// was ahead. Left as they are, a VM that was started in 2099 is missed by nobody until then, because no listing is newer, and one that
// was restarted then rests until then. What has happened has happened by now at the latest, so nothing is believed too early. VMs that
// an operation works on are left to it.
func Restamped(records Records, now time.Time) (vms []model.VM, nodes []model.Node) {
	for vm := range records.SharedVMs() {
		own := *vm
		if vm.Operation == "" && restamp(now, &own.StartedAt, &own.MovedAt, &own.RestartedAt, &own.Whereabouts.Missing, &own.Paused.At) {
			vms = append(vms, own)
		}
	}
	for _, node := range records.Nodes() {
		if restamp(now, &node.Fencing.AskedAt, &node.Fencing.EndedAt) {
			nodes = append(nodes, node)
		}
	}
	return vms, nodes
}

func restamp(now time.Time, stamps ...*time.Time) (some bool) {
	for _, at := range stamps {
		if at.After(now.Add(maxAhead)) {
			*at, some = now, true
		}
	}
	return some
}
