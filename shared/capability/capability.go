// Package capability tells which agents may be given which messages. An agent of another release ignores fields that it does not know.
// So a field that keeps guests safe names in the protocol what an agent has to know of (option "needs"), the agent tells in its hello
// what it knows of, and what is sent to it is compared with that. A message is not changed to fit an agent: it is not sent.
package capability

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	berthv1 "berth/shared/gen/berth/v1"
)

// DatedOrders is of agents that can be told not to begin an order any more.
const DatedOrders = "dated-orders"

// SleptLeases is of agents that take what their host sleeps off a lease, and arm no watchdog that stands still with it.
const SleptLeases = "slept-leases"

// about has each capability, and what an agent without it would do.
var about = map[string]string{
	"accounted-ends":    "it cannot tell a guest that was migrated from one that has ended, so old memory might run on",
	"amends":            "it cannot change devices of a guest that runs",
	"copied-disks":      "it would move a guest without its disks",
	DatedOrders:         "it would carry out an order that was taken back",
	"device-edits":      "it would start a guest without what was changed of its disks and networks while it ran",
	"pauses":            "it can neither pause a guest nor let it run on",
	"profiles":          "it keeps no weekly profiles",
	"reboots":           "it cannot restart a guest in place",
	"resizes":           "it cannot change the size of a guest that runs",
	"running-documents": "it cannot tell the document that a guest runs with",
	"snapshots":         "it can neither take snapshots of disks nor revert to them",
	SleptLeases:         "it does not count the time that its host sleeps, so its watchdog proves nothing",
}

// Names are those that this build knows, ascending.
func Names() []string {
	names := make([]string, 0, len(about))
	for name := range about {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Missing are those of this build that an agent has not told, ascending. One that tells nothing has none.
func Missing(told []string) []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return slices.Contains(told, name) })
}

// About says of a capability what an agent without it would do.
func About(name string) string {
	if text, known := about[name]; known {
		return name + ": " + text
	}
	return name
}

// Update is the command that updates an agent, for people.
const Update = "'apt-get install berth-agent' or 'dnf upgrade berth-agent', then 'systemctl restart berth-agent'; no guest notices"

// Refused says why an order is not given to a node's agent.
func Refused(node, release string, lacks []string) string {
	if release == "" {
		release = "unknown"
	}
	reasons := make([]string, 0, len(lacks))
	for _, name := range lacks {
		reasons = append(reasons, About(name))
	}
	return "the agent of node " + node + " (release " + release + ") is too old for that: it lacks " + strings.Join(reasons, ", and ")
}

// Needs are the capabilities that an agent must have to be given a message, ascending: those of all fields that are set in it.
func Needs(message proto.Message) []string {
	var needs []string
	collect(message.ProtoReflect(), func(name string) {
		if !slices.Contains(needs, name) {
			needs = append(needs, name)
		}
	})
	slices.Sort(needs)
	return needs
}

// Lacks are the capabilities that an agent would need for a message, and has not told, ascending.
func Lacks(told []string, message proto.Message) []string {
	return slices.DeleteFunc(Needs(message), func(name string) bool { return slices.Contains(told, name) })
}

func collect(message protoreflect.Message, found func(string)) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if name := Of(field); name != "" {
			found(name)
		}
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				collect(value.List().Get(i).Message(), found)
			}
		default:
			collect(value.Message(), found)
		}
		return true
	})
}

// Of is the capability that a field needs; empty: none.
func Of(field protoreflect.FieldDescriptor) string {
	name, _ := proto.GetExtension(field.Options(), berthv1.E_Needs).(string)
	return name
}
