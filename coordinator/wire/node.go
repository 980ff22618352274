package wire

import (
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// NodeReport is all that one node's message is made of.
type NodeReport struct {
	View      *view.NodeView
	Inventory *berthv1.NodeInventory // as its agent last sent it; nil if it never did
	Telemetry *berthv1.NodeTelemetry // nil if it never sent any
	VMs       []string               // names of the VMs that the node holds, sorted
	Declared  []model.NodeKey        // keys that all nodes of its cluster have
	Drain     string                 // ID of the drain that runs; empty: none does
	At        time.Time              // now, for ages
}

// Node makes the message of one node.
func Node(report NodeReport) *berthv1.Node {
	view := report.View
	record := view.Node
	message := &berthv1.Node{
		Id:                record.ID,
		Name:              record.Name,
		Cluster:           record.Cluster,
		State:             Liveness(view.Facts.Liveness),
		StateReason:       view.Facts.LivenessReason,
		Maintenance:       record.Maintenance,
		MaintenanceReason: record.MaintenanceReason,
		Settings:          effective(view.Settings),
		OwnSettings:       settings(record.Settings),
		Inventory:         report.Inventory,
		Telemetry:         report.Telemetry,
		Vms:               report.VMs,
		EnrolledAt:        timestamp(record.EnrolledAt),
		Revision:          record.Revision,
		Keys:              KeyValues(record, report.Declared),
		OwnKeys:           OwnKeys(record),
		Labels:            record.Labels,
		Management:        record.Management,
		Unbalanced:        record.Unbalanced,
		PlanId:            report.Drain,
		Fence:             fenceDevice(record.Fence),
		Fencing:           fencing(record.Fencing),
		Hardware:          record.Hardware,
		HardwareSource:    record.HardwareSource,
		AgentRelease:      view.Facts.Release,
		VcpuDelayPercent:  view.Facts.VCPUDelay,
		MetricsAddress:    AgentMetrics(view, report.Inventory),
	}
	for _, name := range view.Facts.Lacks {
		message.AgentLacks = append(message.AgentLacks, capability.About(name))
	}
	if record.Held() {
		message.Held = record.Twin.Why + ": " + record.HeldNext()
	}
	if record.Unanswered.Holds() {
		message.Unanswered = record.Unanswered.Why() + ": " + record.Unanswered.Next(record.Name)
	}
	if record.Fenced() {
		message.State = berthv1.NodeState_NODE_STATE_FENCED
		message.StateReason = record.Fencing.Message
	}
	if message.State == berthv1.NodeState_NODE_STATE_UP && view.Facts.Ailing != "" {
		message.State, message.StateReason = berthv1.NodeState_NODE_STATE_DEGRADED, view.Facts.Ailing
	}
	if view.Facts.Inventory && view.Facts.Memory > 0 { // without libvirt an agent cannot tell: that is not a node of no memory
		message.Ledgers, message.Warnings = ledgers(view), crowding(view)
	}
	if view.Facts.Telemetry {
		message.TelemetryAgeSeconds = new(max(0, report.At.Sub(view.Facts.TelemetryAt).Seconds()))
	}
	return message
}

// fenceDevice makes the message of a device, without its secrets; nil when there is none.
func fenceDevice(device model.FenceDevice) *berthv1.FenceDevice {
	if device.IsZero() {
		return nil
	}
	shown := device.Masked()
	return &berthv1.FenceDevice{
		Method: string(shown.Method), Program: shown.Program, Arguments: shown.Arguments, TimeoutSeconds: shown.Timeout.Seconds(),
		Machine: shown.Machine, Also: fenceDevices(shown.Also),
	}
}

func fenceDevices(devices []model.FenceDevice) (messages []*berthv1.FenceDevice) {
	for _, device := range devices {
		messages = append(messages, fenceDevice(device))
	}
	return messages
}

// FenceDeviceFrom reads the device that a request carries, unchecked.
func FenceDeviceFrom(message *berthv1.FenceDevice) model.FenceDevice {
	var also []model.FenceDevice
	for _, one := range message.GetAlso() {
		also = append(also, FenceDeviceFrom(one))
	}
	return model.FenceDevice{
		Method: model.FenceMethod(message.GetMethod()), Program: message.GetProgram(), Arguments: message.GetArguments(),
		Timeout: time.Duration(message.GetTimeoutSeconds() * float64(time.Second)),
		Machine: message.GetMachine(), Also: also,
	}
}

func fencing(f model.Fencing) *berthv1.Fencing {
	if f == (model.Fencing{}) {
		return nil
	}
	return &berthv1.Fencing{
		Id: f.ID, Phase: string(f.Phase), Method: string(f.Method), Attempt: int32(f.Attempt), Caller: f.Caller, Message: f.Message,
		AskedAt: timestamp(f.AskedAt), EndedAt: timestamp(f.EndedAt),
	}
}

// livenesses has the protocol's word for each way of hearing a node.
var livenesses = map[model.Liveness]berthv1.NodeState{
	model.Up:          berthv1.NodeState_NODE_STATE_UP,
	model.Suspect:     berthv1.NodeState_NODE_STATE_SUSPECT,
	model.Unreachable: berthv1.NodeState_NODE_STATE_UNREACHABLE,
	model.Degraded:    berthv1.NodeState_NODE_STATE_DEGRADED,
}

// Liveness is how well a node is heard, in the words of the protocol.
func Liveness(l model.Liveness) berthv1.NodeState { return livenesses[l] }

// LivenessOf is how well a node is heard, from the words of the protocol. Empty: not at all, or in a way that this release does not know.
func LivenessOf(state berthv1.NodeState) model.Liveness {
	for l, word := range livenesses {
		if word == state {
			return l
		}
	}
	return ""
}

func effective(s model.EffectiveSettings) *berthv1.NodeSettings {
	return settings(model.NodeSettings{RAMRatio: &s.RAMRatio, CPURatio: &s.CPURatio, Overhead: &s.Overhead})
}

func settings(s model.NodeSettings) *berthv1.NodeSettings {
	return &berthv1.NodeSettings{RamRatio: s.RAMRatio, CpuRatio: s.CPURatio, OverheadBytes: (*int64)(s.Overhead)}
}

// SettingsFrom reads the settings that a request carries. Nil carries none.
func SettingsFrom(message *berthv1.NodeSettings) model.NodeSettings {
	if message == nil {
		return model.NodeSettings{}
	}
	return model.NodeSettings{
		RAMRatio: message.RamRatio,
		CPURatio: message.CpuRatio,
		Overhead: (*units.Bytes)(message.OverheadBytes),
	}
}

func crowding(node *view.NodeView) []string { return view.Crowding([]view.Crowd{node.Crowd()}) }

func ledgers(view *view.NodeView) *berthv1.NodeLedgers {
	message := &berthv1.NodeLedgers{
		PromisedLimitBytes: int64(view.PromisedLimit),
		PromisedUsedBytes:  int64(view.PromisedUsed),
		PromisedFreeBytes:  int64(view.PromisedLimit - view.PromisedUsed),
		VcpusLimit:         int64(math.Floor(view.VCPULimit)),
		VcpusUsed:          int64(view.VCPUsUsed),
		Vms:                int64(len(view.Allocations)),
		BorrowedBytes:      int64(view.Borrowed),
	}
	if view.PhysicalKnown {
		message.PhysicalFreeBytes = new(int64(view.PhysicalFree))
	}
	return message
}

// KeyValues are a node's values of the keys that its cluster declares.
func KeyValues(node model.Node, declared []model.NodeKey) map[string]float64 {
	values := make(map[string]float64, len(declared))
	for _, k := range declared {
		values[k.Name] = node.KeyValue(k)
	}
	return values
}

// OwnKeys are the names of the keys whose value was set on the node itself, sorted.
func OwnKeys(node model.Node) []string { return slices.Sorted(maps.Keys(node.Keys)) }

// timestamp is nil for the zero time, which stands for "not yet" and "unknown".
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Brief leaves out of a node's message what is long and of little use in a list: the capabilities document, the CPU's
// features and the telemetry of single domains. It changes copies only.
func Brief(node *berthv1.Node) *berthv1.Node {
	if node.Inventory != nil {
		node.Inventory = without(node.Inventory, "capabilities_xml", "cpu_features")
	}
	if node.Telemetry != nil {
		node.Telemetry = without(node.Telemetry, "domains")
	}
	return node
}

// without is a message that lacks some fields of another one, and shares the others with it: nobody changes either. A whole copy would be
// most of what a list of many nodes costs.
func without[M proto.Message](of M, left ...protoreflect.Name) M {
	from := of.ProtoReflect()
	made := from.New()
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if !slices.Contains(left, field.Name()) {
			made.Set(field, value)
		}
		return true
	})
	return made.Interface().(M)
}
