package weekly

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
	"berth/shared/week"
)

// about is what help says of both nouns.
const about = `The picture has a line for each day and a column for each hour, in UTC. A figure is the 95th percentile of its hour: for
57 of 60 minutes it was not more. It is off by 2.5% at most. The agents measure it and keep it. An hour of which less
than 45 minutes were measured is not known. Of the same hour of two weeks the later one counts, and what is older than
five weeks is dropped. --last hour shows the last hour instead, minute by minute, as averages; --last day the last 24
hours one after the other.

`

// ofVM and ofNode are what its figures are of each.
const (
	ofVM = `CPU is in CPUs, memory is what the VM really has on its node, and delay the part of the time in which a vCPU waited
for a CPU. The nodes that the VM was on last tell, 16 at most, as far as its operations are kept. -o wide has a line for
each hour.`
	ofNode = `CPU is the busy part of its CPUs, memory what is neither free nor could be at once, and delay the part of the time in
which the vCPUs of its guests waited for a CPU, on average. -o wide has a line for each hour.`
)

// VMCommand is the verb profile of VMs.
func VMCommand(a *term.App) *cobra.Command {
	return command(a, &cobra.Command{
		Use: "profile NAME", Short: "Show what a VM uses at which hour of the week", Args: term.Arguments(1, "NAME"),
		Long: "Show what a VM uses at which hour of the week.\n" + about + ofVM,
		Example: `  berth vm profile web1
  berth vm profile web1 -o wide
  berth vm profile web1 --last hour
  berth vm profile web1 -o json`,
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}, func(name string) *berthv1.ProfileRequest { return &berthv1.ProfileRequest{Vm: name} })
}

// NodeCommand is the verb profile of nodes.
func NodeCommand(a *term.App) *cobra.Command {
	return command(a, &cobra.Command{
		Use: "profile NAME", Short: "Show what a node uses at which hour of the week", Args: term.Arguments(1, "NAME"),
		Long: "Show what a node uses at which hour of the week.\n" + about + ofNode,
		Example: `  berth node profile node1
  berth node profile node1 --last day
  berth node profile node1 -o json`,
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}, func(name string) *berthv1.ProfileRequest { return &berthv1.ProfileRequest{Node: name} })
}

func command(a *term.App, cmd *cobra.Command, request func(name string) *berthv1.ProfileRequest) *cobra.Command {
	last := ""
	cmd.Flags().StringVar(&last, "last", "", "show the last `SPAN` and not the week: hour or day")
	term.Complete(cmd, "last", cobra.FixedCompletions([]string{"hour", "day"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if last != "" && last != "hour" && last != "day" {
			return term.Usagef(cmd, "--last %s: want hour or day", last)
		}
		answer, err := term.AskOnce(a, cmd, term.Client.Profile, request(args[0]))
		if err != nil {
			return err
		}
		for _, warning := range answer.GetWarnings() {
			a.Note(cmd, "warning: "+warning)
		}
		if last == "hour" {
			a.NoteIfEmpty(cmd, len(answer.GetMinutes()), "no minute is known yet: one is, once an agent of this release has measured it")
		} else {
			a.NoteIfEmpty(cmd, len(answer.GetHours()), "no hour is known yet: the first one is, once an agent of this release has measured it "+
				"from its beginning to its end")
		}
		subject := cmp.Or(answer.GetVm(), answer.GetNode())
		noun := "vm/"
		if answer.GetNode() != "" {
			noun = "node/"
		}
		return a.Print(cmd, term.Result{Message: answer, Names: []string{noun + subject}, Text: func(p *term.Page, wide bool) {
			switch {
			case last != "":
				lines(a, p, noun+subject, answer, last == "hour", wide)
			case wide:
				table(p, answer)
			default:
				pictures(a, p, noun+subject, answer)
			}
		}})
	}
	return cmd
}

func beganAt(hour *berthv1.ProfileHour) time.Time { return hour.GetBeganAt().AsTime() }

// figure is one of those that a profile has.
type figure struct {
	name string
	of   func(*berthv1.ProfileHour) *float64
	text func(float64) string // in a sentence
	cell func(float64) string // in a table
}

func figures(answer *berthv1.ProfileResponse) []figure {
	share := func(part float64) string { return units.Figure(100*part) + "%" }
	cpu := func(cpus float64) string {
		if text := units.Figure(cpus); text != "1" {
			return text + " CPUs"
		}
		return "1 CPU"
	}
	cpus := units.Figure
	if answer.GetNode() != "" {
		cpu, cpus = share, share
	}
	return []figure{
		{"CPU", func(h *berthv1.ProfileHour) *float64 { return h.CpuRatio }, cpu, cpus},
		{"memory", func(h *berthv1.ProfileHour) *float64 {
			if h.MemoryBytes == nil {
				return nil
			}
			return new(float64(h.GetMemoryBytes()))
		}, func(bytes float64) string { return units.Bytes(bytes).String() }, func(bytes float64) string { return term.Size(int64(bytes)) }},
		{"delay", func(h *berthv1.ProfileHour) *float64 { return h.VcpuDelayRatio }, share, share},
	}
}

// marks are what a picture is drawn with, from nothing to the most, and what stands for an hour that is not known.
type marks struct {
	shades  [week.Shades + 1]rune
	unknown rune
}

var (
	blocks = marks{[...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}, '·'}
	ascii  = marks{[...]rune{' ', '.', ':', '-', '=', '+', '*', '%', '#'}, '?'}
)

// marksOf are block characters where the reader's terminal has UTF-8, as his environment says.
func marksOf(env func(string) string) marks {
	locale := strings.ToLower(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))
	if strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
		return blocks
	}
	return ascii
}

func pictures(a *term.App, p *term.Page, subject string, answer *berthv1.ProfileResponse) {
	hours := answer.GetHours()
	p.Line("%s: %d of %d hours of the week are known; 95th percentiles, in UTC", subject, len(hours), week.Hours)
	if len(hours) == 0 {
		return
	}
	drawn := marksOf(a.Env)
	for _, one := range figures(answer) {
		picture := week.Show(hours, beganAt, one.of)
		p.Blank()
		if picture.Known == 0 {
			p.Line("%s: not known", one.name)
			continue
		}
		p.Line("%s: the most is %s, on %s", one.name, one.text(picture.Most), picture.When())
		p.Line("      00    06    12    18")
		for day, name := range week.Days {
			var line strings.Builder
			for _, shade := range picture.Shade[day*week.Day : (day+1)*week.Day] {
				mark := drawn.unknown
				if shade != week.Unknown {
					mark = drawn.shades[shade]
				}
				line.WriteRune(mark)
			}
			p.Line("%s", strings.TrimRight("  "+name+" "+line.String(), " "))
		}
		p.Line("%s", legend(&picture.Picture, one, drawn))
	}
}

// legend says what the marks of a picture stand for.
func legend(picture *week.Picture, of figure, drawn marks) string {
	parts := []string{"blank: nothing"}
	if picture.Most > 0 {
		step := picture.Most / week.Shades
		parts = append(parts, fmt.Sprintf("%s: each up to %s more, %c up to %s",
			string(drawn.shades[1:]), of.text(step), drawn.shades[week.Shades], of.text(picture.Most)))
	}
	if picture.Known < week.Hours {
		parts = append(parts, fmt.Sprintf("%c: not known (%s)", drawn.unknown, term.Count(week.Hours-picture.Known, "hour")))
	}
	return "  " + strings.Join(parts, "; ")
}

func table(p *term.Page, answer *berthv1.ProfileResponse) {
	shown := figures(answer)
	headings := []string{"HOUR", "MEASURED", "NODE"}
	for _, one := range shown {
		headings = append(headings, strings.ToUpper(one.name))
	}
	rows := make([][]string, 0, len(answer.GetHours()))
	for _, hour := range answer.GetHours() {
		_, at := week.Of(hour.GetBeganAt().AsTime())
		row := []string{strings.ReplaceAll(week.Name(at), " ", "-"), hour.GetBeganAt().AsTime().Format(time.DateOnly), hour.GetNode()}
		for _, one := range shown {
			text := term.None
			if value := one.of(hour); value != nil {
				text = one.cell(*value)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}
