package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
	"berth/coordinator/unanswered"
	"berth/coordinator/view"
)

// FeatureLevel is the highest level of commands that this release can apply. A release that puts something into the log
// that an earlier one cannot read raises it by one, and proposes that only when Snapshot.FeatureLevel has come to it: then
// all members have told that they can.
//
//   - 1: all releases up to 0.5, which know no levels.
//   - 2: Command.Check and Command.Level; entries with several commands; what 0.6 has added to records.
//   - 3: the kind of a VM's condition, and what it is about;
//     which node a fence device has perhaps switched off by mistake, and where others reach a node;
//     what was found out about where a VM runs;
//     which hosts were lost with it;
//     why Berth has given up a copy, and copies of disks that a migration has left;
//     a clock of the state that no single stamp moves;
//     what somebody has changed of a VM beside Berth;
//     that an order waits until its node is back;
//     how large a VM was started, and what of its record was changed since;
//     who has paused a VM;
//     what Prefer made of soft rules in a decision;
//     how often a token may be used, and which permissions it gives,
//     identities and their permissions, which one has caused an event, and sessions of the console;
//     entries that are packed, and records of which only what changes is in the log.
const FeatureLevel = 3

// GroupLevel is the feature level from which an entry may hold several commands.
const GroupLevel = 2

// releaseLevel is the feature level from which a command that needs a level names the release that wrote it.
const releaseLevel = 3

// ConditionLevel is the feature level from which the record of a VM has the kind of its condition.
const ConditionLevel = 3

// StruckLevel is the feature level from which the record of a node has which other one its device has perhaps switched off.
const StruckLevel = 3

// MachineLevel is the feature level from which the record of a node has which machine it is, and what it has not answered.
const MachineLevel = 3

// WhereaboutsLevel is the feature level from which the record of a VM has its whereabouts, and which node keeps memory of it.
const WhereaboutsLevel = 3

// LossLevel is the feature level from which the record of a VM has which hosts were lost with it.
const LossLevel = 3

// CopiesLevel is the feature level from which the record of a VM has copies of its disks that a migration has left.
const CopiesLevel = 3

// DriftLevel is the feature level from which the record of a VM has what somebody has changed of it beside Berth, and which node it is
// bound to.
const DriftLevel = 3

// AwaitLevel is the feature level from which an operation may wait for a node that is silent.
const AwaitLevel = 3

// SizeLevel is the feature level from which the record of a VM has how large it was started, and what of its record was changed since.
const SizeLevel = 3

// PausedLevel is the feature level from which the record of a VM has who has paused it.
const PausedLevel = 3

// SnapshotLevel is the feature level from which the record of a VM has snapshots of its disks.
const SnapshotLevel = 3

// BindingsLevel is the feature level from which the record of a decision has what keeps its VM on its node.
const BindingsLevel = 3

// PreferLevel is the feature level from which the record of a decision has what Prefer made of soft rules.
const PreferLevel = policies.PreferLevel

// GivenUpLevel is the feature level from which the record of an operation has why Berth has given it up.
const GivenUpLevel = 3

// TrialsLevel is the feature level from which the record of a pool has the trials that set its nodes apart.
const TrialsLevel = 3

// HeldLevel is the feature level from which the record of a group has since when its rules hold again, and a record how it was written.
const HeldLevel = 3

// TokenUsesLevel is the feature level from which the record of a token has how often it may be used.
const TokenUsesLevel = 3

// IdentityLevel is the feature level from which there are records of identities.
const IdentityLevel = 3

// needed is the feature level that it takes to apply the command, by what is in it.
func (c *Command) needed() uint32 {
	level := c.Level
	for i := range c.VMs {
		if condition := &c.VMs[i].Condition; condition.Kind != model.NoCondition || condition.About != "" {
			level = max(level, ConditionLevel)
		}
		if c.VMs[i].Whereabouts != (model.Whereabouts{}) || c.VMs[i].Kept != "" {
			level = max(level, WhereaboutsLevel)
		}
		if len(c.VMs[i].Losses) > 0 {
			level = max(level, LossLevel)
		}
	}
	for i := range c.Nodes {
		if c.Nodes[i].Fencing.Struck != "" {
			level = max(level, StruckLevel)
		}
		if n := &c.Nodes[i]; n.Fence.Machine != "" || len(n.Fence.Also) > 0 || n.Hardware != "" || n.HardwareSource != "" ||
			n.LastBoot != "" || n.Twin != (model.Twin{}) || n.Peers != "" || n.Unanswered != (unanswered.Mark{}) {
			level = max(level, MachineLevel)
		}
	}
	for i := range c.VMs {
		if c.VMs[i].Copies != nil {
			level = max(level, CopiesLevel)
		}
		if c.VMs[i].Drift != nil || c.VMs[i].Bound != "" || c.VMs[i].Needs != "" || len(c.VMs[i].Ran) > 0 || c.VMs[i].Settled != 0 ||
			c.VMs[i].Unwatched != 0 {
			level = max(level, DriftLevel)
		}
		if c.VMs[i].RanSize != (model.Size{}) || len(c.VMs[i].Pending) > 0 || c.VMs[i].Ballooned {
			level = max(level, SizeLevel)
		}
		if c.VMs[i].Paused != (model.Stand{}) {
			level = max(level, PausedLevel)
		}
		if len(c.VMs[i].Snapshots) > 0 || c.VMs[i].Reverting != "" {
			level = max(level, SnapshotLevel)
		}
	}
	for i := range c.Operations {
		if c.Operations[i].TargetBoot != "" {
			level = max(level, LossLevel)
		}
		if c.Operations[i].GivenUp != "" {
			level = max(level, GivenUpLevel)
		}
		if c.Operations[i].WhenBack || c.Operations[i].Awaits() {
			level = max(level, AwaitLevel)
		}
	}
	for i := range c.Resources {
		if len(c.Resources[i].Trials) > 0 {
			level = max(level, TrialsLevel)
		}
		if !c.Resources[i].HeldSince.IsZero() || len(c.Resources[i].Spelled) > 0 {
			level = max(level, HeldLevel)
		}
	}
	for i := range c.Decisions {
		if len(c.Decisions[i].Request.Bindings) > 0 {
			level = max(level, BindingsLevel)
		}
		if rules := c.Decisions[i].Rules; rules != nil && (rules.SoftRules != "" || rules.ContendedAbove != 0) {
			level = max(level, PreferLevel)
		}
		if inputs := c.Decisions[i].Inputs; inputs != nil && (inputs.MemoryPressure.Given() || inputs.VCPUDelay.Given()) {
			level = max(level, PreferLevel)
		}
	}
	for i := range c.Events {
		if c.Events[i].CallerID != "" {
			level = max(level, IdentityLevel)
		}
	}
	if len(c.Partial) > 0 {
		level = max(level, PackLevel)
	}
	fields, _ := c.neededByRecords()
	return max(level, fields)
}

// neededByRecords is the feature level that it takes to keep what people have declared and asked for, and what takes it.
func (c *Command) neededByRecords() (level uint32, what string) {
	for i := range c.VMs {
		if since, field := schema.Level(schema.VM, &c.VMs[i]); since > level {
			level, what = since, "the field "+field+" of VM "+c.VMs[i].Name
		}
	}
	for i := range c.Nodes {
		if since, field := schema.Level(schema.Node, &c.Nodes[i]); since > level {
			level, what = since, "the field "+field+" of node "+c.Nodes[i].Name
		}
	}
	for i := range c.Nodes {
		switch {
		case MachineLevel <= level:
		case c.Nodes[i].Fence.Machine != "":
			level, what = MachineLevel, "the machine of the fence device of node "+c.Nodes[i].Name
		case len(c.Nodes[i].Fence.Also) > 0:
			level, what = MachineLevel, "the second fence device of node "+c.Nodes[i].Name
		}
	}
	for i := range c.Tokens {
		if (c.Tokens[i].Uses > 1 || c.Tokens[i].Permit != "") && TokenUsesLevel > level {
			level, what = TokenUsesLevel, "a token for several uses, or with permissions"
		}
	}
	if len(c.Identities) > 0 && IdentityLevel > level {
		level, what = IdentityLevel, "the identity of "+string(c.Identities[0].Kind)+" "+c.Identities[0].Name
	}
	if len(c.Sessions) > 0 && IdentityLevel > level {
		level, what = IdentityLevel, "a session of the console"
	}
	for i := range c.Operations {
		if op := &c.Operations[i]; op.Kind.Level() > level {
			level, what = op.Kind.Level(), "the "+string(op.Kind)+" of VM "+op.VMName
		}
	}
	return level, what
}

// For is the command in the form that every member of a feature level can read. It leaves out what a member can do without. What
// somebody has declared is not left out: the error is ErrNotYet then. Commands with a level of their own are proposed only when the
// members have come to it.
func (c *Command) For(level uint32) (*Command, error) {
	if level >= max(ConditionLevel, WhereaboutsLevel) {
		return c, c.allowed(level)
	}
	older := *c
	older.Nodes = slices.Clone(c.Nodes)
	for i := range older.Nodes {
		older.Nodes[i].Fencing.Struck, older.Nodes[i].Fencing.StruckBoot = "", ""
		older.Nodes[i].Peers, older.Nodes[i].Unanswered = "", unanswered.Mark{}
		older.Nodes[i].Hardware, older.Nodes[i].HardwareSource, older.Nodes[i].LastBoot, older.Nodes[i].Twin = "", "", "", model.Twin{}
	}
	older.VMs = slices.Clone(c.VMs)
	for i := range older.VMs {
		older.VMs[i].Condition, older.VMs[i].Whereabouts = older.VMs[i].Condition.TextOnly(), model.Whereabouts{}
		older.VMs[i].Losses, older.VMs[i].Copies, older.VMs[i].Drift, older.VMs[i].Kept, older.VMs[i].Bound = nil, nil, nil, "", ""
		older.VMs[i].Ran, older.VMs[i].RanSize, older.VMs[i].Pending, older.VMs[i].Paused = nil, model.Size{}, nil, model.Stand{}
		older.VMs[i].Settled, older.VMs[i].Ballooned, older.VMs[i].Needs, older.VMs[i].Unwatched = 0, false, "", 0
	}
	older.Operations = slices.Clone(c.Operations)
	for i := range older.Operations {
		older.Operations[i].TargetBoot, older.Operations[i].GivenUp, older.Operations[i].WhenBack = "", "", false
	}
	older.Resources = slices.Clone(c.Resources)
	for i := range older.Resources {
		older.Resources[i].Trials, older.Resources[i].HeldSince, older.Resources[i].Spelled = nil, time.Time{}, nil
	}
	older.Decisions = slices.Clone(c.Decisions)
	for i := range older.Decisions {
		older.Decisions[i].Request.Bindings = nil
		if rules := older.Decisions[i].Rules; rules != nil { // it was decided without Prefer, see estate.PolicyOf
			plain := rules.WithoutPrefer()
			older.Decisions[i].Rules = &plain
		}
		if inputs := older.Decisions[i].Inputs; inputs != nil {
			plain := *inputs
			plain.MemoryPressure, plain.VCPUDelay = view.Column[float64]{}, view.Column[float64]{}
			older.Decisions[i].Inputs = &plain
		}
	}
	older.Events = slices.Clone(c.Events)
	for i := range older.Events {
		older.Events[i].CallerID = ""
	}
	return &older, c.allowed(level)
}

func (c *Command) allowed(level uint32) error {
	if needs, what := c.neededByRecords(); needs > level {
		return fmt.Errorf("%w: %s takes feature level %d, and they have come to %d", ErrNotYet, what, needs, level)
	}
	return nil
}

// ErrNotYet reports a command with something that an earlier release would lose, while a member may still run one.
var ErrNotYet = errors.New("not all coordinators know that")

// ErrLevel reports a command or a state of a later release.
var ErrLevel = errors.New("a feature level that this release does not have")

// firstReleases are the releases that came with each feature level, from level 1 on.
var firstReleases = [FeatureLevel]string{"0.1", "0.6", "0.7"}

// FirstRelease is the release that came with a feature level; empty for a level that this release does not know.
func FirstRelease(level uint32) string {
	if level < 1 || level > FeatureLevel {
		return ""
	}
	return firstReleases[level-1]
}

// tooHigh refuses what needs a level of a later release. Writer is the release that wrote it; empty: that is not known.
func tooHigh(level uint32, writer string) error {
	install := "a release that has this level"
	if writer != "" {
		install = "release " + writer + ", which wrote it, or a later one"
	}
	return fmt.Errorf("%w: it needs level %d, this release goes up to %d; install %s", ErrLevel, level, FeatureLevel, install)
}

// FeatureLevel is the highest level of commands that may be proposed: all members could apply it when it was raised. It
// never falls. At least 1.
func (x *Snapshot) FeatureLevel() uint32 { return levelFrom(x.Meta(MetaFeatureLevel)) }

// featureLevel is the one that commands are applied at.
func (w *write) featureLevel() uint32 {
	row, found := get[metaRow](w.tables, string(Meta), MetaFeatureLevel)
	if !found {
		return 1
	}
	return levelFrom(row.Value)
}

func levelFrom(meta string) uint32 {
	level, err := strconv.ParseUint(meta, 10, 32)
	if err != nil || level < 1 {
		return 1
	}
	return uint32(level)
}

// RaiseLevel is the change that lets commands up to level be proposed. It needs that level itself, so that a member
// which was not asked stops there, and not at something that it misunderstands.
func RaiseLevel(level uint32) Command {
	return Command{
		Kind: "raise the feature level", Level: level, Meta: map[string]string{MetaFeatureLevel: strconv.FormatUint(uint64(level), 10)},
	}
}
