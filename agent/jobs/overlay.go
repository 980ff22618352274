package jobs

import (
	"errors"

	"berth/agent/volumes"
)

// overlaid refuses a start of a guest whose last end nobody saw, if a snapshot that somebody took meanwhile has what it has written. Note
// says of which disks that cannot be told.
func overlaid(j *job, xml string) (refused *done, note string) {
	overlays, note, err := volumes.Overlays(j.ctx, j.Hypervisor, j.command.GetVmId(), xml)
	if err == nil {
		return nil, note
	}
	if j.takenUp {
		// What an earlier life asked for may still take effect.
		seen, sure := j.awaitAbsence()
		if seen.holds(j.command.GetEpoch()) {
			ended := j.started(seen)
			return &ended, note
		}
		if !sure {
			unknown := j.startUnknown(errors.New("a start of the VM may still take effect"))
			return &unknown, note
		}
	}
	failed := notStarted(j.command, err, absent(j.command))
	failed.result.Overlays = overlays
	return &failed, note
}
