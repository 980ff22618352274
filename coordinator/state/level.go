package state

import (
	"errors"
	"fmt"
	"strconv"
)

// FeatureLevel is the highest level of commands that this release can apply. A release that puts something into the log
// that an earlier one cannot read raises it by one, and proposes that only when Snapshot.FeatureLevel has come to it: then
// all members have told that they can.
//
//   - 1: all releases up to 0.5, which know no levels.
//   - 2: Command.Check and Command.Level; entries with several commands; what 0.6 has added to records.
const FeatureLevel = 2

// GroupLevel is the feature level from which an entry may hold several commands.
const GroupLevel = 2

// ErrLevel reports a command or a state of a later release.
var ErrLevel = errors.New("a feature level that this release does not have")

func tooHigh(level uint32) error {
	return fmt.Errorf("%w: it needs level %d, this release goes up to %d", ErrLevel, level, FeatureLevel)
}

// FeatureLevel is the highest level of commands that may be proposed: all members could apply it when it was raised. It
// never falls. At least 1.
func (x *Snapshot) FeatureLevel() uint32 {
	level, err := strconv.ParseUint(x.Meta(MetaFeatureLevel), 10, 32)
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
