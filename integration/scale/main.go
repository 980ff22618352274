package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"berth/integration/bench/hearing"
	"berth/integration/bench/report"
	"berth/integration/scale/storms"
)

// steep is the slope from which a figure is marked: it grows with the site.
const steep = 0.2

func main() {
	hearing.Child()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// order is what is to be measured.
type order struct {
	sizes         []int
	figures       []figure
	programs, dir string
	profile, heap string
}

func run() error {
	o, err := read()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := boundFiles(); err != nil {
		return err
	}
	machine, err := report.DescribeMachine(o.dir)
	if err != nil {
		return err
	}
	fmt.Println(machine)
	table, err := o.measure(ctx)
	if err != nil {
		return err
	}
	return o.tell(table)
}

// files is how many files each process may have open, however many the machine allows.
const files = 20_000

// boundFiles holds for this program and for those that it starts.
func boundFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, files)
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("have at most %d files open: %w", files, err)
	}
	return nil
}

// read is what the command line asks for.
func read() (o order, err error) {
	quick := flag.Bool("quick", false, "1,000 and 3,000 nodes only")
	sizes := flag.String("nodes", "", "sizes to measure, with commas between; each with ten times as many VMs")
	only := flag.String("only", "", "names of the figures to take, with commas between; all others are left out")
	storm := flag.Bool("storm", true, "take also the figures of coordinators and agents that are processes of their own")
	flag.StringVar(&o.programs, "bin", "bin", "directory of berth")
	flag.StringVar(&o.dir, "dir", "/var/tmp", "where the coordinators' data goes: on a disk, not on a tmpfs")
	flag.StringVar(&o.profile, "profile", "", "files that profiles of the CPU go to, NAME.1 and so on: of each timed part at the last size")
	flag.StringVar(&o.heap, "heap", "", "file that a profile of the heap is written to, after the figures at the last size")
	flag.Parse()
	o.figures = figures
	if *storm {
		o.figures = slices.Concat(figures, ofStorms())
	}
	if *only != "" {
		names := strings.Split(strings.ToUpper(*only), ",")
		chosen := slices.DeleteFunc(slices.Clone(o.figures), func(f figure) bool { return !slices.Contains(names, f.name) })
		if len(chosen) != len(names) {
			return o, fmt.Errorf("-only %s: %d of these %d are figures; run without it to see their names", *only, len(chosen), len(names))
		}
		o.figures = chosen
	}
	o.sizes = []int{1000, 3000, 10_000}
	if *quick {
		o.sizes = o.sizes[:2]
	}
	if *sizes != "" {
		o.sizes = nil
		for _, text := range strings.Split(*sizes, ",") {
			nodes, err := strconv.Atoi(text)
			if err != nil || nodes < 10 {
				return o, fmt.Errorf("%q is no number of nodes from 10 on", text)
			}
			o.sizes = append(o.sizes, nodes)
		}
	}
	return o, nil
}

// measure takes all figures at each size.
func (o *order) measure(ctx context.Context) ([][]float64, error) {
	table := make([][]float64, len(o.figures))
	for at, nodes := range o.sizes {
		if err := o.alone(ctx, table, nodes, at == len(o.sizes)-1); err != nil {
			return nil, err
		}
		if err := o.storms(ctx, table, nodes); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// alone takes the figures of a coordinator in this process. What is timed at the last size is profiled, if that is asked for, and what is
// on the heap after it.
func (o *order) alone(ctx context.Context, table [][]float64, nodes int, last bool) error {
	if !slices.ContainsFunc(o.figures, func(f figure) bool { return f.take != nil }) {
		return nil
	}
	s, err := raise(nodes)
	if err != nil {
		return err
	}
	if last {
		s.profile.name = o.profile
	}
	for i := range o.figures {
		if o.figures[i].take == nil {
			continue
		}
		begun := time.Now()
		taken, err := o.figures[i].take(ctx, s)
		if err != nil {
			return fmt.Errorf("%s at %d nodes: %w", o.figures[i].name, nodes, err)
		}
		say("%d nodes: %s %s (%s)", nodes, o.figures[i].name, o.figures[i].unit(taken), time.Since(begun).Round(time.Second/10))
		table[i] = append(table[i], taken)
	}
	if o.heap != "" && last {
		if err := keepHeap(o.heap); err != nil {
			return err
		}
	}
	return s.close()
}

// say tells on the way how it goes.
func say(format string, arguments ...any) { fmt.Fprintf(os.Stderr, format+"\n", arguments...) }

// ofStorms are the figures of whole sites.
func ofStorms() []figure {
	var all []figure
	for _, one := range storms.Figures {
		all = append(all, figure{name: one.Name, what: one.What, unit: one.Unit, wanted: one.Wanted})
	}
	return all
}

// restFor is how long a leader is watched that has nothing to do but to hear its agents: two of their reports at the slowest.
const restFor = 30 * time.Second

// storms takes the figures of a whole site.
func (o *order) storms(ctx context.Context, table [][]float64, nodes int) error {
	if !slices.ContainsFunc(o.figures, func(f figure) bool { return f.take == nil }) {
		return nil
	}
	size := storms.Size{Nodes: nodes, VMs: vmsANode * nodes, Rest: restFor}
	values, err := storms.Measure(ctx, filepath.Join(o.programs, "berth"), o.dir, size, say)
	if err != nil {
		return err
	}
	for i, one := range o.figures {
		if one.take == nil {
			table[i] = append(table[i], values[one.name])
		}
	}
	return nil
}

func (o *order) tell(table [][]float64) error {
	var rows []report.Row
	sizes := o.sizes
	met, goals := 0, 0
	for i, one := range o.figures {
		row := report.Row{Goal: one.name, What: one.what}
		var texts, slopes []string
		for at, value := range table[i] {
			texts = append(texts, fmt.Sprintf("%d: %s", sizes[at], one.unit(value)))
			if at == 0 {
				continue
			}
			slope := slopeOf(sizes[at-1], sizes[at], table[i][at-1], value)
			text := fmt.Sprintf("%.2f", slope)
			if slope > steep {
				text += " (grows)"
			}
			slopes = append(slopes, text)
		}
		row.Measured, row.Against = strings.Join(texts, ", "), "slope "+strings.Join(slopes, ", ")
		if one.wanted > 0 {
			row.Wanted = "<= " + one.unit(one.wanted)
			row.Verdict = report.Judge(table[i][len(table[i])-1], one.wanted)
			goals++
			if row.Verdict != report.NotMet {
				met++
			}
		}
		rows = append(rows, row)
	}
	if err := report.PrintTable(os.Stdout, rows); err != nil {
		return err
	}
	fmt.Printf("scale: %d of %d goals met, at %d nodes with %d VMs\n", met, goals, sizes[len(sizes)-1], vmsANode*sizes[len(sizes)-1])
	return nil
}

// slopeOf is how a figure grows from one size to another: the exponent of the size.
func slopeOf(small, large int, before, after float64) float64 {
	if before <= 0 || after <= 0 {
		return 0
	}
	return math.Log(after/before) / math.Log(float64(large)/float64(small))
}
