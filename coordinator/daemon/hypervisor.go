package daemon

import (
	"time"

	"berth/coordinator/authorities"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// followHypervisors brings the authorities of the nodes' libvirt and QEMU here to what the cluster has decided.
func (d succession) followHypervisors() error {
	lists := authorities.OfHypervisors(d.store.Snapshot())
	for _, purpose := range pki.Purposes {
		changed, err := d.hypervisors.Follow(purpose, lists.For(purpose))
		if err != nil {
			return err
		}
		if changed {
			d.log.Info("another authority signs for hosts from now on", "name", authorities.Called(purpose),
				"id", d.hypervisors.Issuing(purpose).ID())
		}
	}
	return nil
}

// adoptHypervisors makes the lists what the files say, where the state is older than these. False: nothing is due.
func (d succession) adoptHypervisors(at time.Time) (state.Command, bool) {
	for _, purpose := range pki.Purposes {
		command, due := authorities.AdoptHypervisor(d.store.Snapshot(), purpose, d.hypervisors.Issuing(purpose),
			d.hypervisors.Trusted(purpose), at)
		if due {
			return command, true
		}
	}
	return state.Command{}, false
}
