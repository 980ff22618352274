package console

import (
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
	"berth/shared/week"
)

// latelyPage is what the page of the last hour and day shows. It is asked of the nodes' agents when somebody reads it, and never by itself.
type latelyPage struct {
	Of, Back, Week string // what people call it, and where its pages are
	Silent         []string
	Spans          []spanView
}

// spanView is an hour or a day.
type spanView struct {
	ID, Title, Says string
	Charts          []chart
	Rows            []spanRow // what is known, as a table
}

type spanRow struct {
	At    string
	Cells []string
}

// chart is one figure over time. Its picture is 600 by 100; a step that is not known is a gap.
type chart struct {
	ID, Name, Unit string
	Says           string
	Lines          []string // points of lines, as SVG has them
	Dots           []dot    // steps with none beside them
	Most, Half     string   // at the top and in the middle
	From, To       string   // at the sides
}

type dot struct{ X, Y string }

// Size of a picture.
const (
	chartWidth  = 600.0
	chartHeight = 100.0
)

// latelyOfGuest shows what a VM has used in the last hour and day.
func latelyOfGuest(v *visit) (*page, error) {
	return showLately(v, &berthv1.ProfileRequest{Vm: v.path("vm")})
}

// latelyOfNode shows the same of a node.
func latelyOfNode(v *visit) (*page, error) {
	return showLately(v, &berthv1.ProfileRequest{Node: v.path("node")})
}

func showLately(v *visit, request *berthv1.ProfileRequest) (*page, error) {
	answer, err := v.API.Profile(v.ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	told := answer.Msg
	shown := latelyPage{Silent: told.GetWarnings()}
	made := &page{name: "lately", Here: "vms"}
	if node := told.GetNode(); node != "" {
		made.Here, made.Title, made.Command = "map", "Last hour and day of node "+node, "berth node profile "+quoted(node)+" --last hour"
		shown.Of, shown.Back = "node "+node, about("node/"+node)
	} else {
		made.Title, made.Command = "Last hour and day of VM "+told.GetVm(), "berth vm profile "+quoted(told.GetVm())+" --last hour"
		shown.Of, shown.Back = "VM "+told.GetVm(), about("vm/"+told.GetVm())
	}
	shown.Week = shown.Back + "/week"
	shown.Spans = []spanView{
		viewSpan(told, told.GetMinutes(), v.now, span{
			"hour", "Last hour", "minutes", "A figure is the average of its minute", "15:04", time.Minute, 60,
		}),
		viewSpan(told, told.GetHours(), v.now, span{
			"day", "Last day", "hours", "A figure is the 95th percentile of its hour", "Mon 15:04", time.Hour, week.Day,
		}),
	}
	made.Body = shown
	return made, nil
}

// span is a time that ends now: what it and its steps are called, what a figure is, and how a moment in it is written.
type span struct {
	id, title, steps, says, clock string
	step                          time.Duration
	count                         int
}

func viewSpan(told *berthv1.ProfileResponse, all []*berthv1.ProfileHour, now time.Time, s span) spanView {
	cells := make([]spanRow, s.count)
	shown, most := spanView{ID: s.id, Title: s.title}, 0
	for i, one := range measured(told) {
		line := week.LineOf(all, func(h *berthv1.ProfileHour) time.Time { return h.GetBeganAt().AsTime() }, one.of, now, s.step, s.count)
		most = max(most, line.Known)
		shown.Charts = append(shown.Charts, drawn(line, fmt.Sprintf("%s%d", s.id, i), s.clock, one))
		for at, figure := range line.Figures {
			text := unknown
			if figure != nil {
				text = units.Figure(*figure * one.factor)
			}
			cells[at].At = line.Begin.Add(time.Duration(at) * s.step).Format("2006-01-02 15:04")
			cells[at].Cells = append(cells[at].Cells, text)
		}
	}
	shown.Says = fmt.Sprintf("%d of %d %s are known. %s, in UTC; where nothing is known the line has a gap.", most, s.count, s.steps, s.says)
	if most > 0 {
		shown.Rows = cells
	}
	return shown
}

// drawn makes the picture of a line.
func drawn(line *week.Line, id, clock string, of figure) chart {
	end := line.Begin.Add(time.Duration(len(line.Figures)) * line.Step)
	c := chart{ID: id, Name: of.name, Unit: of.unit, Says: "Nothing of it is known.", From: line.Begin.Format(clock), To: end.Format(clock)}
	if line.Known == 0 {
		return c
	}
	c.Says = fmt.Sprintf("The most is %s %s, at %s.", units.Figure(line.Most*of.factor), of.unit, line.At.Format(clock))
	c.Most, c.Half = units.Figure(line.Most*of.factor), units.Figure(line.Most*of.factor/2)
	if line.Most <= 0 {
		c.Most, c.Half = "1", "0.5" // a scale of zeros says nothing, and the line lies on the lowest one
	}
	var points []dot
	keep := func() {
		switch len(points) {
		case 0:
		case 1:
			c.Dots = append(c.Dots, points[0])
		default:
			var text strings.Builder
			for _, at := range points {
				fmt.Fprintf(&text, "%s,%s ", at.X, at.Y)
			}
			c.Lines = append(c.Lines, strings.TrimSpace(text.String()))
		}
		points = nil
	}
	for at, figure := range line.Figures {
		if figure == nil {
			keep()
			continue
		}
		high := 0.0
		if line.Most > 0 {
			high = *figure / line.Most
		}
		points = append(points, dot{
			fmt.Sprintf("%.1f", chartWidth*(float64(at)+0.5)/float64(len(line.Figures))), fmt.Sprintf("%.1f", chartHeight*(1-high)),
		})
	}
	keep()
	return c
}
