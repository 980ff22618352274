package jobs

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	berthv1 "berth/shared/gen/berth/v1"
)

// action is one thing that this node can be ordered to do.
type action struct {
	// do carries the order out. Its intent is journalled, and no other order of the VM is in work. It may be repeated after a
	// crash: then job.takenUp says so.
	do func(*job) done

	starts      bool // the VM may appear here at any time until it has ended
	letsGo      bool // it can only make this node let go of the VM
	afterwards  bool // it comes when its epoch is over
	discards    bool // what it is to remove is never brought back under its epoch
	standsStill bool // when it is done the guest stands still until the leader has heard that
	promised    bool // it is what a ticket promises: the guest stands still until it is done
}

// actions are all of them, by the names that their messages have in a command. An inspection is none: it changes nothing, not
// even the journal.
var actions = map[protoreflect.Name]action{
	"start":   {do: doStart, starts: true},
	"stop":    {do: doStop, letsGo: true},
	"migrate": {do: doMigrate, letsGo: true, standsStill: true},
	"resume":  {do: doResume, promised: true},
	"discard": {do: doDiscard, discards: true},
	"prepare": {do: doPrepare},
	"clear":   {do: doClear, afterwards: true},
	"adopt":   {do: doAdopt},
	"release": {do: doRelease},
	"reboot":  {do: doReboot},
	"pause":   {do: doPause},
	"unpause": {do: doUnpause},
	"amend":   {do: doAmend},
	"resize":  {do: doResize},

	"snapshot": {do: doSnapshot, afterwards: true},
	"restore":  {do: doRestore, afterwards: true},
	"forget":   {do: doForget, afterwards: true},
}

// actionOf is what a command orders; the zero value if this release does not know it.
func actionOf(command *berthv1.Command) action { return actions[nameOf(command)] }

func nameOf(command *berthv1.Command) protoreflect.Name {
	message := command.ProtoReflect()
	if ordered := message.WhichOneof(message.Descriptor().Oneofs().ByName("action")); ordered != nil {
		return ordered.Name()
	}
	return "unknown"
}
