// Package phases says which phases of an operation may come one after the other, and what each takes for proven.
package phases

import (
	"slices"

	"berth/coordinator/operation"
)

// follows are the phases that may come after one (I6). Every phase but the last may be its own successor: a cancel and the
// like change the record and not the phase.
var follows = map[operation.Kind]map[operation.Phase][]operation.Phase{
	operation.Start: {
		operation.Queued:     {operation.Dispatched, operation.Placing, operation.Ended},
		operation.Dispatched: {operation.Judging, operation.Placing, operation.Clearing, operation.Ended},
		operation.Judging:    {operation.Placing, operation.Clearing, operation.Ended},
		operation.Placing:    {operation.Queued, operation.Dispatched, operation.Ended},
		operation.Clearing:   {operation.Placing, operation.Ended},
	},
	operation.Adopt: {
		operation.Dispatched: {operation.Judging, operation.Ended},
		operation.Judging:    {operation.Ended},
	},
	operation.Stop: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Judging, operation.Ended},
		operation.Judging:    {operation.Dispatched, operation.Ended},
	},
	operation.Reboot: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Pause: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Resume: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Attach: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Detach: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Media: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Resize: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Snapshot: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Restore: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Forget: {
		operation.Queued:     {operation.Dispatched, operation.Ended},
		operation.Dispatched: {operation.Ended},
	},
	operation.Migrate: {
		operation.Preparing:  {operation.Copying, operation.Clearing, operation.Ended},
		operation.Copying:    {operation.HandedOver, operation.Judging, operation.Discarding, operation.Clearing, operation.Ended},
		operation.Judging:    {operation.HandedOver, operation.Discarding, operation.Clearing, operation.Ended},
		operation.HandedOver: {operation.Judging, operation.Discarding, operation.Clearing, operation.Ended},
		operation.Discarding: {operation.Reverting, operation.Judging, operation.Clearing, operation.Marking, operation.Ended},
		operation.Marking:    {operation.HandedOver, operation.Reverting, operation.Judging, operation.Clearing, operation.Ended},
		operation.Reverting:  {operation.Judging, operation.Clearing, operation.Ended},
		operation.Clearing:   {operation.Ended},
	},
}

// Follows tells whether a phase may come after another one, in operations of this kind.
func Follows(kind operation.Kind, was, is operation.Phase) bool {
	return slices.Contains(follows[kind][was], is)
}

// Released is what a step takes for proven: that an epoch does not run on a node, and never will again (I4). Empty: nothing.
func Released(was, is *operation.Operation) (node string, epoch uint64) {
	switch {
	case is.Kind == operation.Start && was.Target != "" && (is.Phase == operation.Placing || is.Result == operation.Failed):
		return was.Target, was.Epoch
	case is.Kind == operation.Stop && is.Result == operation.Done:
		return is.Source, is.Epoch
	case is.Phase == operation.HandedOver && was.Phase != operation.HandedOver:
		return is.Source, is.SourceEpoch
	case is.Phase == operation.Reverting:
		return is.Target, is.Epoch
	}
	return "", 0
}
