package term

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// PastFlags adds what a list of what has happened can be narrowed by as well. Kinds is the help of --kind, and all that it takes;
// it takes any without them.
func (f *Filters) PastFlags(cmd *cobra.Command, a *App, help string, kinds ...string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.vms, "vm", nil, "only those about `VM`, which may be gone")
	Complete(cmd, "vm", a.VMNames())
	flags.StringSliceVar(&f.kinds, "kind", nil, help)
	Complete(cmd, "kind", CompleteFixed(kinds...))
	flags.StringSliceVar(&f.callers, "by", nil, "only those of `CALLER`, for instance alice")
	Complete(cmd, "by", cobra.NoFileCompletions)
	f.since.now, f.until.now = a.Now, a.Now
	flags.Var(&f.since, "since", "only what began at `TIME` or later: an age, 2h or 3d, or an RFC 3339 time")
	flags.Var(&f.until, "until", "only what began before `TIME`")
	Complete(cmd, "since", CompleteFixed("1h", "1d", "7d"))
	Complete(cmd, "until", CompleteFixed("1h", "1d", "7d"))
}

// timeFlag is a time: as RFC 3339 has it, or an age before now.
type timeFlag struct {
	now  func() time.Time
	text string
	at   time.Time
}

func (t *timeFlag) String() string { return t.text }

// Type is the word that help shows for the value.
func (t *timeFlag) Type() string { return "TIME" }

// Set reads a time.
func (t *timeFlag) Set(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		age, isAge := parseAge(text)
		if !isAge {
			return errors.New("want an age, for instance 2h or 3d, or an RFC 3339 time, for instance 2026-01-31T15:04:05Z")
		}
		at = t.now().Add(-age)
	}
	t.text, t.at = text, at
	return nil
}

// stamp is the time for the protocol; nil where the line says nothing.
func (t *timeFlag) stamp() *timestamppb.Timestamp {
	if t.text == "" {
		return nil
	}
	return timestamppb.New(t.at)
}

var (
	agePart  = regexp.MustCompile(`(\d{1,6})([smhdw])`)
	ageWhole = regexp.MustCompile(`^(\d{1,6}[smhdw])+$`)
	ageUnits = map[string]time.Duration{
		"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}
)

// maxAge is longer than anything is kept, and far from what a duration cannot hold.
const maxAge = 100 * 365 * 24 * time.Hour

// parseAge reads an age as lists print it, 45s, 2h or 1d4h, with weeks as well.
func parseAge(text string) (time.Duration, bool) {
	if !ageWhole.MatchString(text) {
		return 0, false
	}
	var age time.Duration
	for _, part := range agePart.FindAllStringSubmatch(text, -1) {
		count, err := strconv.Atoi(part[1])
		unit := ageUnits[part[2]]
		if err != nil || time.Duration(count) > maxAge/unit {
			return 0, false
		}
		if age += time.Duration(count) * unit; age > maxAge {
			return 0, false
		}
	}
	return age, true
}
