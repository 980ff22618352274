// Bench measures what Berth promises to cost and prints one table: the goal, the figure, what it is compared to, and
// whether the goal is reached. Whatever a goal compares to something else is measured side by side with it in the same
// run, in turns, because figures of two runs or two machines say nothing about each other.
//
//	make bench
//	make bench ARGS='-quick -only R1,R4'
//
// Nothing fails here because it is slow: the exit code is 1 only when a measurement could not be taken. Run it as root,
// on a machine that does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth/coordinator/view"
	"berth/integration/bench/asking"
	"berth/integration/bench/browsing"
	"berth/integration/bench/figures"
	"berth/integration/bench/hearing"
	"berth/integration/bench/onlookers"
	"berth/integration/bench/remembering"
	"berth/integration/bench/report"
	"berth/integration/bench/softrules"
	"berth/integration/lab"
)

// section measures some goals together, because they share what has to be raised for them.
type section struct {
	goals   []string
	measure func(context.Context, *bench) ([]report.Row, error)
}

var sections = []section{
	{[]string{"R1"}, measureR1},
	{asking.Goals, func(ctx context.Context, b *bench) ([]report.Row, error) { return asking.All(ctx, b.dir, b.quick) }},
	{[]string{"R2", "R3"}, measureR2},
	{[]string{"R4"}, measureR4},
	{hearing.Goals, func(ctx context.Context, b *bench) ([]report.Row, error) {
		return hearing.All(ctx, b.berth(), b.folder("hearing"), b.quick)
	}},
	{[]string{"A1", "A2", "A3", "A4"}, measureAgent},
	{[]string{"A5"}, measureDevices},
	{remembering.Goals, func(ctx context.Context, b *bench) ([]report.Row, error) {
		return remembering.All(ctx, b.dir, b.quick)
	}},
	{[]string{"LAB", "START", "MIGRATE", "HANDOVER"}, measureHosts},
	{[]string{"CHANGE"}, measureChanges},
	{[]string{"D1"}, measureDrain},
	{[]string{"P1", "P2", "P8"}, measureDecisions},
	{[]string{"M1"}, func(ctx context.Context, b *bench) ([]report.Row, error) {
		return figures.Measure(ctx, b.rounds(3, 20))
	}},
	{onlookers.Goals, func(ctx context.Context, b *bench) ([]report.Row, error) {
		return onlookers.All(ctx, b.berth(), b.dir, b.quick)
	}},
	{browsing.Goals, func(ctx context.Context, b *bench) ([]report.Row, error) {
		return browsing.All(ctx, b.berth(), b.dir, b.quick)
	}},
	{[]string{"P6"}, measureSequence},
	{[]string{"P1g", "P6g"}, func(ctx context.Context, b *bench) ([]report.Row, error) {
		columns := func(nodes int) *view.Columns { return grouped(newCrowd(nodes)) }
		return softrules.Measure(ctx, softrules.Site{Columns: columns, Request: newcomer(group), At: decidedAt}, b.rounds(1, 10))
	}},
	{[]string{"P7"}, measureCustomers},
	{[]string{"EXPLAIN"}, measureExplanation},
	{[]string{"SHAPE"}, measureShape},
	{[]string{"C1"}, measureAcross},
	{[]string{"P4"}, measureP4},
	{[]string{"B1", "B2", "B3"}, measureBalance},
}

// bench is one run.
type bench struct {
	quick, hbal100 bool
	programs, dir  string // folders
	guests         int
}

// berth is the built program.
func (b *bench) berth() string { return filepath.Join(b.programs, "berth") }

// folder is a directory of this run. All of them are on one disk, so that twins share it with what they are compared to.
func (b *bench) folder(name string) string { return filepath.Join(b.dir, name) }

// rounds is how often something is repeated.
func (b *bench) rounds(quick, whole int) int {
	if b.quick {
		return quick
	}
	return whole
}

func main() {
	lab.Child()
	remembering.Child()
	hearing.Child()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	var b bench
	var only string
	flag.BoolVar(&b.quick, "quick", false, "few repetitions: to see that everything works, not to quote")
	flag.StringVar(&only, "only", "", "goals to measure, with commas between: "+strings.Join(goals(), ","))
	flag.StringVar(&b.programs, "bin", "bin", "directory of berth and berth-agent")
	flag.StringVar(&b.dir, "dir", "/var/tmp", "where data goes: on the disk to measure, not on a tmpfs")
	flag.IntVar(&b.guests, "guests", 200, "guests on the host of A1 to A4; the goals are for 200")
	flag.BoolVar(&b.hbal100, "hbal100", false, "measure B1 at 100 hosts as well, which takes hbal a quarter of an hour")
	flag.Parse()
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if b.dir, err = os.MkdirTemp(b.dir, "berth-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	machine, err := report.DescribeMachine(b.dir)
	if err != nil {
		return err
	}
	fmt.Println(machine)
	rows, failures := b.measure(ctx, chosen)
	return errors.Join(report.PrintTable(os.Stdout, rows), failures)
}

// measure takes all measurements. One that cannot be taken does not stop the others.
func (b *bench) measure(ctx context.Context, chosen []section) (rows []report.Row, failures error) {
	for _, s := range chosen {
		name := strings.Join(s.goals, ",")
		begun := time.Now()
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", name)
		found, err := s.measure(ctx, b)
		if ctx.Err() != nil {
			return rows, errors.New("interrupted")
		}
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s could not be measured: %w", name, err))
			rows = append(append(rows, found...), report.Row{Goal: name, What: "could not be measured to the end, see below"})
			continue
		}
		fmt.Fprintf(os.Stderr, "measured %s in %s\n", name, time.Since(begun).Round(time.Second))
		rows = append(rows, found...)
	}
	return rows, failures
}

func goals() []string {
	var all []string
	for _, s := range sections {
		all = append(all, s.goals...)
	}
	return all
}

// choose finds the sections that measure the named goals. No name means all.
func choose(only string) ([]section, error) {
	if only == "" {
		return sections, nil
	}
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.Contains(goals(), name) {
			return nil, fmt.Errorf("no goal is called %q, there are %s", name, strings.Join(goals(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(sections), func(s section) bool {
		return !slices.ContainsFunc(s.goals, func(goal string) bool { return slices.Contains(wanted, goal) })
	}), nil
}
