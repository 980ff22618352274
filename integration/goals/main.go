// Goals runs the suites that measure the project's goals of reliability, and prints the table of these goals with what was
// measured. A suite tells of a goal in a line of its output: GOAL G1: figures | what is wanted | met. What nobody told of was not
// measured here, and is listed with the reason.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	release := flag.Bool("release", os.Getenv("RELEASE") == "1", "the sizes of a release: hours")
	only := flag.String("only", "", "comma-separated goals; default: all")
	verbose := flag.Bool("v", false, "print what the suites print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rows, err := theWorld()
	if err != nil {
		fmt.Fprintln(os.Stderr, "goals:", err)
		os.Exit(1)
	}
	failed, drawn := measure(ctx, os.Stdout, chosen(*only), *release, *verbose)
	world(os.Stdout, rows, drawn)
	if len(failed) > 0 {
		fmt.Fprintln(os.Stderr, "goals: these suites failed:", strings.Join(failed, "; "))
		os.Exit(1)
	}
}

// chosen are the suites that tell of one of some goals.
func chosen(only string) []suite {
	if only == "" {
		return suites
	}
	wanted := strings.Split(only, ",")
	return slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
		return !slices.ContainsFunc(s.goals, func(goal string) bool { return slices.Contains(wanted, goal) })
	})
}

// told is what a suite told of a goal.
type told struct{ goal, measured, wanted, verdict string }

// measure runs the suites one after the other and prints their tables. It returns those that failed, and how often the simulator has drawn
// each fault of the world; nil: it was not run.
func measure(ctx context.Context, w io.Writer, some []suite, release, verbose bool) (failed []string, drawn map[string]int) {
	found := make(map[string][]told)
	var times [][]string
	for i := range some {
		began := time.Now()
		heard, err := some[i].run(ctx, w, release, verbose)
		if heard.drawn != nil {
			drawn = heard.drawn
		}
		times = append(times, heard.back...)
		for _, line := range heard.goals {
			found[line.goal] = append(found[line.goal], line)
		}
		result := "done"
		if err != nil {
			result = "FAILED: " + err.Error()
			failed = append(failed, some[i].name())
			for _, goal := range some[i].goals { // also where another suite tells that it is met
				found[goal] = append(found[goal], told{goal, "FAILED: " + some[i].name(), "a suite that passes", "not met"})
			}
		}
		fmt.Fprintf(w, "%s: %s in %s\n", some[i].name(), result, time.Since(began).Round(time.Second))
		if ctx.Err() != nil {
			break
		}
	}
	table(w, found, some)
	back(w, times)
	return failed, drawn
}

// heard is what a suite has told.
type heard struct {
	goals []told
	drawn map[string]int // how often each fault was
	back  [][]string     // how long it took from a kind of fault until guests ran again
}

// run runs the suite and collects what it tells.
func (s *suite) run(ctx context.Context, w io.Writer, release, verbose bool) (lines heard, err error) {
	command := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	command.Env = append(os.Environ(), s.ci...)
	if release {
		command.Env = append(os.Environ(), s.release...)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return lines, err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return lines, err
	}
	var last string
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		text := scanner.Text()
		if one, is := parse(text); is {
			lines.goals = append(lines.goals, one)
		}
		if drawn := drawnIn(text); drawn != nil {
			lines.drawn = drawn
		}
		if cells := backIn(text); cells != nil {
			lines.back = append(lines.back, cells)
		}
		if verbose {
			fmt.Fprintln(w, "   ", text)
		}
		if strings.Contains(text, "FAIL") || last == "" {
			last = strings.TrimSpace(text)
		}
	}
	_, _ = io.Copy(io.Discard, out) // of a line that is too long
	if err := errors.Join(scanner.Err(), command.Wait()); err != nil {
		return lines, fmt.Errorf("%w (%s)", err, last)
	}
	return lines, nil
}

// parse reads a line that tells of a goal, wherever in it that begins: tests put their place before it.
func parse(text string) (told, bool) {
	_, rest, found := strings.Cut(text, "GOAL G")
	if !found {
		return told{}, false
	}
	parts := strings.Split(rest, " | ")
	goal, measured, named := strings.Cut(parts[0], ": ")
	if len(parts) != 3 || !named {
		return told{}, false
	}
	verdict := strings.TrimSpace(parts[2])
	if verdict != "met" && verdict != "not met" {
		return told{}, false
	}
	return told{goal: "G" + goal, measured: measured, wanted: strings.TrimPrefix(parts[1], "wanted "), verdict: verdict}, true
}

// table prints all goals. One that several suites told of is met if all of them say so.
func table(w io.Writer, found map[string][]told, some []suite) {
	const line = "%-4s %-13s %-36s %s\n"
	fmt.Fprintln(w)
	fmt.Fprintf(w, line, "GOAL", "RESULT", "WHAT", "MEASURED (WANTED)")
	for _, one := range goals {
		lines := found[one.name]
		if len(lines) == 0 {
			fmt.Fprintf(w, line, one.name, "not measured", one.what, one.unmeasured(some))
			continue
		}
		verdict := "met"
		for _, l := range lines {
			if l.verdict != "met" {
				verdict = "NOT MET"
			}
		}
		for i, l := range lines {
			measured := fmt.Sprintf("%s (%s)", l.measured, l.wanted)
			if i == 0 {
				fmt.Fprintf(w, line, one.name, verdict, one.what, measured)
			} else {
				fmt.Fprintf(w, line, "", l.verdict, "", measured)
			}
		}
	}
}

// unmeasured says why nothing is known of a goal.
func (g *goal) unmeasured(some []suite) string {
	if g.why != "" {
		return g.why
	}
	for i := range some {
		if slices.Contains(some[i].goals, g.name) {
			return "its suite told nothing: " + some[i].name()
		}
	}
	return "its suite was not run"
}
