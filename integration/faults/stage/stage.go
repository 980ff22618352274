package stage

import (
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"time"

	"berth/integration/faults/script"
)

// Stage is what every part of a run stands on.
type Stage struct {
	Clock
	Mix      script.Mix
	Breaches []Breach

	current *strand // the one that runs

	hash   hash.Hash64 // of the trace
	trace  io.Writer   // nil: nobody reads it
	healed bool
	calm   time.Time // when all has arrived that was late or double when the faults ended
	drawn  map[string]int

	Unordered bool // messages came out of order while things went wrong
}

// New is the stage of a script's run. What happens is written to trace if that is not nil.
func New(script script.Script, trace io.Writer) *Stage {
	return &Stage{
		Clock: newClock(script.Seed), Mix: script.Mix, hash: fnv.New64a(), trace: trace, drawn: map[string]int{}, Unordered: script.Mix.Wild,
	}
}

// Draw takes note that a fault of script.Faults has happened.
func (s *Stage) Draw(fault string) {
	s.drawn[fault]++
	s.Note("drawn", fault, "", "")
}

// Drawn is how often each fault has happened.
func (s *Stage) Drawn() map[string]int { return s.drawn }

// Breach is a broken invariant.
type Breach struct {
	At   time.Duration `json:"at"`
	Rule string        `json:"rule"` // I1 to I9 of FAULTS.md; lost, record, stuck, parked, refused, overload, key
	Text string        `json:"text"`
}

const maxBreaches = 20

// Broken notes a breach.
func (s *Stage) Broken(rule, subject, format string, args ...any) {
	if len(s.Breaches) >= maxBreaches {
		return
	}
	breach := Breach{At: s.Passed(), Rule: rule, Text: subject + ": " + fmt.Sprintf(format, args...)}
	s.Breaches = append(s.Breaches, breach)
	s.Note("BROKEN "+rule, subject, "", breach.Text)
}

// Note takes what happens into the trace.
func (s *Stage) Note(what, where, subject, detail string) {
	var at [8]byte
	ns := uint64(s.Passed())
	for i := range at {
		at[i] = byte(ns >> (8 * i))
	}
	_, _ = s.hash.Write(at[:])
	for _, text := range [...]string{what, where, subject, detail} {
		_, _ = io.WriteString(s.hash, text)
		_, _ = s.hash.Write([]byte{0})
	}
	if s.trace != nil {
		_, _ = fmt.Fprintf(s.trace, "%12.6f %-18s %-6s %-12s %s\n", s.Passed().Seconds(), what, where, short(subject), detail)
	}
}

// short is the end of a UUID.
func short(id string) string {
	if len(id) == 36 {
		return "vm-" + id[32:]
	}
	return id
}

// Sum is the hash of the trace.
func (s *Stage) Sum() uint64 { return s.hash.Sum64() }

// Quieten ends what goes wrong by itself.
func (s *Stage) Quieten() {
	if s.Mix.Wild {
		s.calm = s.Now.Add(lateMost + againMost)
	}
	s.Mix, s.healed = s.Mix.Quiet(), true
}

// Later ends a fault, unless all have ended before.
func (s *Stage) Later(after time.Duration, end func()) {
	s.After(after, func() {
		if !s.healed {
			end()
		}
	})
}
