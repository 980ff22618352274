package weekly

import (
	"strings"
	"time"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/week"
)

// span is what is shown of the last time: so many steps, and how a step and a moment are called.
type span struct {
	of    []*berthv1.ProfileHour
	step  time.Duration
	steps int
	name  string // of the steps
	whole string // of the span
	says  string // what a figure is
	clock string // how a step is called
}

func spanOf(answer *berthv1.ProfileResponse, hour bool) span {
	if hour {
		return span{answer.GetMinutes(), time.Minute, 60, "minutes", "hour", "averages", "15:04"}
	}
	return span{answer.GetHours(), time.Hour, week.Day, "hours", "day", "95th percentiles", "Mon 15:04"}
}

const moment = "2006-01-02 15:04"

// lines shows the last hour or day as one row of marks for each figure, or as a table.
func lines(a *term.App, p *term.Page, subject string, answer *berthv1.ProfileResponse, hour, wide bool) {
	s, drawn := spanOf(answer, hour), marksOf(a.Env)
	shown := figures(answer)
	drawings := make([]*week.Line, 0, len(shown))
	known := 0
	for _, one := range shown {
		line := week.LineOf(s.of, beganAt, one.of, a.Now(), s.step, s.steps)
		drawings, known = append(drawings, line), max(known, line.Known)
	}
	first := drawings[0]
	p.Line("%s: %d of %d %s of the last %s are known; %s, in UTC, from %s to %s", subject, known, s.steps, s.name, s.whole, s.says,
		first.Begin.Format(moment), first.Begin.Add(time.Duration(s.steps)*s.step).Format(moment))
	if wide {
		lineTable(p, &s, shown, drawings)
		return
	}
	for i, one := range shown {
		line := drawings[i]
		if line.Known == 0 {
			p.Line("%s: not known", one.name)
			continue
		}
		p.Line("%s: the most is %s, at %s", one.name, one.text(line.Most), line.At.Format(s.clock))
		var row strings.Builder
		for _, shade := range line.Shade {
			mark := drawn.unknown
			if shade != week.Unknown {
				mark = drawn.shades[shade]
			}
			row.WriteRune(mark)
		}
		p.Line("  |%s|", row.String())
	}
}

// lineTable has a row for each step of which anything is known.
func lineTable(p *term.Page, s *span, shown []figure, drawings []*week.Line) {
	headings := []string{"BEGAN"}
	for _, one := range shown {
		headings = append(headings, strings.ToUpper(one.name))
	}
	var rows [][]string
	for step := range s.steps {
		row, known := []string{strings.ReplaceAll(drawings[0].Begin.Add(time.Duration(step)*s.step).Format(s.clock), " ", "-")}, false
		for i, one := range shown {
			text := term.None
			if value := drawings[i].Figures[step]; value != nil {
				text, known = one.cell(*value), true
			}
			row = append(row, text)
		}
		if known {
			rows = append(rows, row)
		}
	}
	p.Table(headings, rows)
}
