package console

import (
	"fmt"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
	"berth/shared/week"
)

// weekPage is what the page of a week shows. It is asked of the nodes' agents, so it does not follow the cluster by itself.
type weekPage struct {
	Of, Back string // what people call it, and where its page is
	Known    int    // hours
	Hours    int    // of a week
	Silent   []string
	Weeks    []shadedWeek
	Scale    []int // all shades, the weakest first
}

// shadedWeek is one figure of a week: a line for each day, a cell for each hour.
type shadedWeek struct {
	Name, Unit string
	Says       string // the most of it, and when
	Days       []shadedDay
}

type shadedDay struct {
	Name  string
	Cells []shadedCell
}

// shadedCell has the figure as text: the shade only shows what is large.
type shadedCell struct {
	Known bool
	Shade int // 0 to week.Shades
	Text  string
}

// weekOfGuest shows what a VM uses at which hour of the week.
func weekOfGuest(v *visit) (*page, error) {
	return showWeek(v, &berthv1.ProfileRequest{Vm: v.path("vm")})
}

// weekOfNode shows the same of a node.
func weekOfNode(v *visit) (*page, error) {
	return showWeek(v, &berthv1.ProfileRequest{Node: v.path("node")})
}

func showWeek(v *visit, request *berthv1.ProfileRequest) (*page, error) {
	answer, err := v.API.Profile(v.ctx, connect.NewRequest(request))
	if err != nil {
		return nil, err
	}
	told := answer.Msg
	shown := weekPage{Known: len(told.GetHours()), Hours: week.Hours, Silent: told.GetWarnings()}
	made := &page{name: "week", Here: "vms"}
	if node := told.GetNode(); node != "" {
		made.Here, made.Title, made.Command = "map", "Week of node "+node, "berth node profile "+quoted(node)
		shown.Of, shown.Back = "node "+node, about("node/"+node)
	} else {
		made.Title, made.Command = "Week of VM "+told.GetVm(), "berth vm profile "+quoted(told.GetVm())
		shown.Of, shown.Back = "VM "+told.GetVm(), about("vm/"+told.GetVm())
	}
	for shade := range week.Shades + 1 {
		shown.Scale = append(shown.Scale, shade)
	}
	if shown.Known > 0 {
		for _, one := range measured(told) {
			shown.Weeks = append(shown.Weeks, shaded(told, one))
		}
	}
	made.Body = shown
	return made, nil
}

// figure is one of those that agents measure, in the unit that the figure times a factor is in.
type figure struct {
	name, unit string
	factor     float64
	of         func(*berthv1.ProfileHour) *float64
}

// measured are the figures of a VM, or of a node.
func measured(told *berthv1.ProfileResponse) []figure {
	cpu, most := "CPUs", 1.0
	if told.GetNode() != "" {
		cpu, most = "%", 100
	}
	return []figure{
		{"CPU", cpu, most, func(h *berthv1.ProfileHour) *float64 { return h.CpuRatio }},
		{"Memory", "GiB", 1 / float64(units.GiB), func(h *berthv1.ProfileHour) *float64 {
			if h.MemoryBytes == nil {
				return nil
			}
			return new(float64(h.GetMemoryBytes()))
		}},
		{"Waiting for a CPU", "% of the time", 100, func(h *berthv1.ProfileHour) *float64 { return h.VcpuDelayRatio }},
	}
}

// shaded makes the table of one figure.
func shaded(told *berthv1.ProfileResponse, of figure) shadedWeek {
	picture := week.Show(told.GetHours(), func(h *berthv1.ProfileHour) time.Time { return h.GetBeganAt().AsTime() }, of.of)
	made := shadedWeek{Name: of.name, Unit: of.unit, Says: "Not one hour of it is known."}
	if picture.Known > 0 {
		made.Says = fmt.Sprintf("The most is %s %s, on %s.", units.Figure(picture.Most*of.factor), of.unit, picture.When())
	}
	for day, called := range week.Days {
		one := shadedDay{Name: called}
		for hour := range week.Day {
			at := day*week.Day + hour
			cell := shadedCell{Text: "?"}
			if figure := picture.Figures[at]; figure != nil {
				cell = shadedCell{true, picture.Shade[at], brief(*figure * of.factor)}
			}
			one.Cells = append(one.Cells, cell)
		}
		made.Days = append(made.Days, one)
	}
	return made
}

// brief is a figure in few characters: 24 stand beside each other.
func brief(figure float64) string {
	switch {
	case figure == 0:
		return "0"
	case figure < 0.1:
		return "<.1"
	case figure < 10:
		return fmt.Sprintf("%.1f", figure)
	}
	return fmt.Sprintf("%.0f", figure)
}
