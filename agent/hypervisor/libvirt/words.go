package libvirt

import (
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

// stateOf sorts libvirt's states and gives its word for the reason.
func stateOf(state libvirtgo.DomainState, reason int) (hypervisor.State, string) {
	switch state {
	case libvirtgo.DOMAIN_PAUSED:
		return pausedFor(libvirtgo.DomainPausedReason(reason))
	case libvirtgo.DOMAIN_PMSUSPENDED:
		return hypervisor.Paused, "suspended by the guest"
	case libvirtgo.DOMAIN_SHUTOFF:
		return hypervisor.Shutoff, shutoffWords[libvirtgo.DomainShutoffReason(reason)]
	case libvirtgo.DOMAIN_CRASHED:
		return hypervisor.Crashed, "crashed"
	case libvirtgo.DOMAIN_SHUTDOWN:
		return hypervisor.Running, "shutting down"
	default: // running, blocked, or no state: it has a process, and that is what counts
		return hypervisor.Running, runningWords[libvirtgo.DomainRunningReason(reason)]
	}
}

func pausedFor(reason libvirtgo.DomainPausedReason) (hypervisor.State, string) {
	switch reason {
	case libvirtgo.DOMAIN_PAUSED_MIGRATION:
		return hypervisor.PausedMigration, "migration"
	case libvirtgo.DOMAIN_PAUSED_POSTCOPY:
		return hypervisor.PausedMigration, "post-copy"
	case libvirtgo.DOMAIN_PAUSED_POSTCOPY_FAILED:
		return hypervisor.PausedMigration, "post-copy failed"
	case libvirtgo.DOMAIN_PAUSED_STARTING_UP:
		// Also what a restarted libvirtd makes of a guest whose launch it did not live to see. It kills such a guest.
		return hypervisor.Starting, "starting up"
	case libvirtgo.DOMAIN_PAUSED_CRASHED:
		return hypervisor.Crashed, "guest panicked"
	default:
		return hypervisor.Paused, pausedWords[reason]
	}
}

var pausedWords = map[libvirtgo.DomainPausedReason]string{
	libvirtgo.DOMAIN_PAUSED_UNKNOWN:       "unknown",
	libvirtgo.DOMAIN_PAUSED_USER:          "user",
	libvirtgo.DOMAIN_PAUSED_SAVE:          "save",
	libvirtgo.DOMAIN_PAUSED_DUMP:          "dump",
	libvirtgo.DOMAIN_PAUSED_IOERROR:       hypervisor.ReasonIOError,
	libvirtgo.DOMAIN_PAUSED_WATCHDOG:      "watchdog",
	libvirtgo.DOMAIN_PAUSED_FROM_SNAPSHOT: "from snapshot",
	libvirtgo.DOMAIN_PAUSED_SHUTTING_DOWN: "shutting down",
	libvirtgo.DOMAIN_PAUSED_SNAPSHOT:      "snapshot",
}

var runningWords = map[libvirtgo.DomainRunningReason]string{
	libvirtgo.DOMAIN_RUNNING_UNKNOWN:            "unknown",
	libvirtgo.DOMAIN_RUNNING_BOOTED:             "booted",
	libvirtgo.DOMAIN_RUNNING_MIGRATED:           "migrated",
	libvirtgo.DOMAIN_RUNNING_RESTORED:           "restored",
	libvirtgo.DOMAIN_RUNNING_FROM_SNAPSHOT:      "from snapshot",
	libvirtgo.DOMAIN_RUNNING_UNPAUSED:           "unpaused",
	libvirtgo.DOMAIN_RUNNING_MIGRATION_CANCELED: "migration cancelled",
	libvirtgo.DOMAIN_RUNNING_SAVE_CANCELED:      "save cancelled",
	libvirtgo.DOMAIN_RUNNING_WAKEUP:             "wake-up",
	libvirtgo.DOMAIN_RUNNING_CRASHED:            "after a guest panic",
	libvirtgo.DOMAIN_RUNNING_POSTCOPY:           "post-copy",
	libvirtgo.DOMAIN_RUNNING_POSTCOPY_FAILED:    "post-copy failed",
}

var shutoffWords = map[libvirtgo.DomainShutoffReason]string{
	libvirtgo.DOMAIN_SHUTOFF_UNKNOWN:       "unknown",
	libvirtgo.DOMAIN_SHUTOFF_SHUTDOWN:      "shut down",
	libvirtgo.DOMAIN_SHUTOFF_DESTROYED:     "destroyed",
	libvirtgo.DOMAIN_SHUTOFF_CRASHED:       "crashed",
	libvirtgo.DOMAIN_SHUTOFF_MIGRATED:      "migrated",
	libvirtgo.DOMAIN_SHUTOFF_SAVED:         "saved",
	libvirtgo.DOMAIN_SHUTOFF_FAILED:        "failed to start",
	libvirtgo.DOMAIN_SHUTOFF_FROM_SNAPSHOT: "from snapshot",
	libvirtgo.DOMAIN_SHUTOFF_DAEMON:        "killed by libvirtd",
}

var eventKinds = map[libvirtgo.DomainEventType]string{
	libvirtgo.DOMAIN_EVENT_DEFINED:     "defined",
	libvirtgo.DOMAIN_EVENT_UNDEFINED:   "undefined",
	libvirtgo.DOMAIN_EVENT_STARTED:     "started",
	libvirtgo.DOMAIN_EVENT_SUSPENDED:   "suspended",
	libvirtgo.DOMAIN_EVENT_RESUMED:     "resumed",
	libvirtgo.DOMAIN_EVENT_STOPPED:     "stopped",
	libvirtgo.DOMAIN_EVENT_SHUTDOWN:    "shutdown",
	libvirtgo.DOMAIN_EVENT_PMSUSPENDED: "pmsuspended",
	libvirtgo.DOMAIN_EVENT_CRASHED:     hypervisor.EventCrashed,
}

var startedDetails = map[libvirtgo.DomainEventStartedDetailType]string{
	libvirtgo.DOMAIN_EVENT_STARTED_BOOTED:        "booted",
	libvirtgo.DOMAIN_EVENT_STARTED_MIGRATED:      "migrated",
	libvirtgo.DOMAIN_EVENT_STARTED_RESTORED:      "restored",
	libvirtgo.DOMAIN_EVENT_STARTED_FROM_SNAPSHOT: "from snapshot",
	libvirtgo.DOMAIN_EVENT_STARTED_WAKEUP:        "wake-up",
}

var stoppedDetails = map[libvirtgo.DomainEventStoppedDetailType]string{
	libvirtgo.DOMAIN_EVENT_STOPPED_SHUTDOWN:      hypervisor.DetailShutDown,
	libvirtgo.DOMAIN_EVENT_STOPPED_DESTROYED:     hypervisor.DetailDestroyed,
	libvirtgo.DOMAIN_EVENT_STOPPED_CRASHED:       hypervisor.DetailCrashed,
	libvirtgo.DOMAIN_EVENT_STOPPED_MIGRATED:      "migrated",
	libvirtgo.DOMAIN_EVENT_STOPPED_SAVED:         "saved",
	libvirtgo.DOMAIN_EVENT_STOPPED_FAILED:        hypervisor.DetailFailed,
	libvirtgo.DOMAIN_EVENT_STOPPED_FROM_SNAPSHOT: "from snapshot",
}

// eventWords gives the kind and the detail of a lifecycle event.
func eventWords(event *libvirtgo.DomainEventLifecycle) (kind, detail string) {
	kind = eventKinds[event.Event]
	if kind == "" {
		kind = "changed"
	}
	switch event.Event {
	case libvirtgo.DOMAIN_EVENT_STARTED:
		detail = startedDetails[libvirtgo.DomainEventStartedDetailType(event.Detail)]
	case libvirtgo.DOMAIN_EVENT_STOPPED:
		detail = stoppedDetails[libvirtgo.DomainEventStoppedDetailType(event.Detail)]
	}
	return kind, detail
}
