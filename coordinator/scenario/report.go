package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"berth/coordinator/placement"
	"berth/coordinator/schema"
)

// Report is what came of a scenario.
type Report struct {
	Scenario string       `json:"scenario"` // its file
	Seed     uint64       `json:"seed"`
	Steps    []StepReport `json:"steps"`
	Expected int          `json:"expected"` // steps that something was expected of
	Failed   int          `json:"failed"`   // of these, how many came out otherwise
}

// StepReport is what came of one step.
type StepReport struct {
	Step      int                  `json:"step"` // from 1
	Line      int                  `json:"line"`
	Words     string               `json:"words"`
	After     time.Duration        `json:"after_ns,omitempty"` // since the scenario began, when the step was done
	Log       []Entry              `json:"log,omitempty"`      // what happened until and during the step, where time passes
	Said      string               `json:"said,omitempty"`
	Decisions []placement.Decision `json:"decisions,omitempty"` // explained
	Capacity  *placement.Capacity  `json:"capacity,omitempty"`
	Left      []Left               `json:"left,omitempty"`     // of a drain or return: what could not be moved
	Plan      string               `json:"plan,omitempty"`     // of a drain or return
	Warnings  []string             `json:"warnings,omitempty"` // of a drain
	Moves     int                  `json:"moves,omitempty"`    // of a run: that plans began since the run before
	Expected  bool                 `json:"expected,omitempty"`
	Different []Difference         `json:"different,omitempty"`

	drained, passed bool
}

// Left is what a drain could not move, and why.
type Left struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Difference is one expectation that did not come true.
type Difference struct {
	Line     int    `json:"line"`
	Of       string `json:"of"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
}

// StepError is a step that cannot be: it starts what runs, or names what is not there.
type StepError struct {
	File  string
	Line  int
	Step  int // from 1
	Words string
	Err   error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("%s:%d: step %d, %s: %v", e.File, e.Line, e.Step, e.Words, e.Err)
}

// Unwrap is why the step cannot be.
func (e *StepError) Unwrap() error { return e.Err }

// Run does the steps in a world of their own. It is reproducible: the same scenario gives the same report. A step that
// cannot be ends it with a *StepError, and the report has the steps before.
func (s *Scenario) Run() (Report, error) {
	report := Report{Scenario: s.Name, Seed: s.Seed, Steps: []StepReport{}}
	w := s.checked
	if s.checked = nil; w == nil {
		var problems []schema.Problem
		if w, problems = s.world(); len(problems) > 0 {
			return report, schema.Problems(problems)
		}
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		one := StepReport{Step: i + 1, Line: step.Line, Words: step.Words}
		if err := step.do(w, derive(s.Seed, i), &one); err != nil {
			return report, &StepError{File: s.Name, Line: step.Line, Step: one.Step, Words: step.Words, Err: flat(err)}
		}
		if step.Expect != nil {
			one.Expected, one.Different = true, step.Expect.compare(w, &one)
			report.Expected++
			if len(one.Different) > 0 {
				report.Failed++
			}
		}
		report.Steps = append(report.Steps, one)
	}
	return report, nil
}

// do does a step when its time has come.
func (s *Step) do(w *world, seed uint64, report *StepReport) error {
	if s.at != nil {
		if err := w.until(w.began.Add(*s.at)); err != nil {
			return err
		}
	}
	report.After = w.at.Sub(w.began)
	if err := s.action.do(w, seed, report); err != nil {
		return err
	}
	if err := w.carry(); err != nil { // the plans that run look at what has changed
		return err
	}
	for i := range w.decided {
		report.Decisions = append(report.Decisions, placement.Explain(w.decided[i]))
	}
	if !w.still {
		report.Log = w.log
	}
	w.log, w.decided = nil, nil
	return nil
}

// flat makes one line of the text of an error, whose lines tell of one step.
func flat(err error) error {
	if text := err.Error(); strings.Contains(text, "\n") {
		return errors.New(strings.ReplaceAll(text, "\n", "; "))
	}
	return err
}

// derive makes the seed of the n-th decision from a seed (SplitMix64).
func derive(seed uint64, n int) uint64 {
	z := seed + (uint64(n)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Text is a step for people. Full has every verdict and every term of the decisions.
func (s *StepReport) Text(full bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step %d, line %d", s.Step, s.Line)
	if s.After > 0 {
		fmt.Fprintf(&b, ", at %s", clock(s.After))
	}
	fmt.Fprintf(&b, ": %s\n", s.Words)
	for i := range s.Log {
		e := &s.Log[i]
		b.WriteString("  " + e.Text() + "\n")
		if e.Decision > 0 && full {
			indent(&b, "    ", placement.FullText(s.Decisions[e.Decision-1]))
		}
	}
	for _, decision := range s.Decisions {
		if s.Log != nil { // which tells of all of them
			break
		}
		text := placement.Text(decision)
		if full {
			text = placement.FullText(decision)
		}
		indent(&b, "  ", text)
	}
	if s.Said != "" {
		fmt.Fprintf(&b, "  %s\n", s.Said)
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", warning)
	}
	for _, left := range s.Left {
		fmt.Fprintf(&b, "  %s stays: %s\n", left.Name, left.Why)
	}
	for _, one := range s.Different {
		fmt.Fprintf(&b, "  NOT AS EXPECTED (line %d): %s: expected %s, found %s\n", one.Line, one.Of, one.Expected, one.Found)
	}
	return b.String()
}

func indent(b *strings.Builder, by, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
}

// Text is an entry on one line.
func (e *Entry) Text() string {
	what := e.Of
	switch {
	case e.From != "" && e.To != "":
		what = fmt.Sprintf("%s: %s -> %s", e.VM, e.From, e.To)
	case e.VM != "":
		what = strings.TrimSuffix(fmt.Sprintf("%s: %s", e.VM, e.From+e.To), ": ")
	}
	line := fmt.Sprintf("%s  %-8s  %s", clock(e.After), e.What, what)
	if e.Why != "" {
		line += ": " + e.Why
	}
	return line
}

// clock is a time since the beginning as h:mm:ss.
func clock(after time.Duration) string {
	seconds := int64(after / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// Summary is the report in one line.
func (r *Report) Summary() string {
	if r.Expected == 0 {
		return count(len(r.Steps), "step") + ", nothing was expected"
	}
	return fmt.Sprintf("%s, %d of %d as expected", count(len(r.Steps), "step"), r.Expected-r.Failed, r.Expected)
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// short prints a figure with three digits after the point at most.
func short(f float64) string { return figure(math.Round(f*1000) / 1000) }

// figure prints a number with no more digits than it needs.
func figure(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
