package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// result is what a suite has come to.
type result struct {
	suite
	output   []byte
	err      error
	took, by time.Duration // on the clock, and of all processors
}

// runAll runs some suites at a time, and prints each when it ends and a table at the end. It returns an error if one failed.
//
// Suites that compute keep the processors busy by themselves, so they run first, one at a time. Then come those that wait for
// machines, as many at a time as there are processors. The two kinds never run side by side: a machine of a lab that gets no
// processor for seconds looks dead, as it should, and the daemons of all labs together take the processors away from whoever computes.
// Suites that measure time are last.
func runAll(ctx context.Context, w io.Writer, list []suite, processors int) error {
	var mu sync.Mutex
	var results []result
	for _, stage := range []struct {
		has   func(suite) bool
		width int
	}{
		{func(s suite) bool { return !s.waits && !s.alone }, 1},
		{func(s suite) bool { return s.waits }, max(2, processors)},
		{func(s suite) bool { return s.alone }, 1},
	} {
		var running errgroup.Group
		running.SetLimit(stage.width)
		for _, s := range list {
			if !stage.has(s) {
				continue
			}
			running.Go(func() error {
				r := s.run(ctx)
				mu.Lock()
				defer mu.Unlock()
				r.print(w)
				results = append(results, r)
				return nil
			})
		}
		_ = running.Wait() // what failed is in the results
	}
	return table(w, results)
}

// run runs the suite. An interrupt reaches it too, so that it takes its labs down.
func (s suite) run(ctx context.Context) result {
	command := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	command.Env = append(os.Environ(), s.set...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 2 * time.Minute
	begun := time.Now()
	out, err := command.CombinedOutput()
	r := result{suite: s, output: out, err: err, took: time.Since(begun)}
	if ended := command.ProcessState; ended != nil {
		r.by = ended.UserTime() + ended.SystemTime()
	}
	return r
}

// skips begins the line of a suite that could not be played here, with the reason.
const skips = "skipped: "

// skipped tells that the suite has said so.
func (r *result) skipped() bool { return bytes.HasPrefix(r.output, []byte(skips)) }

// print shows all of a failed suite, and of the others a line for each package, as the go command prints it, or why it was skipped.
func (r *result) print(w io.Writer) {
	if r.err != nil {
		fmt.Fprintf(w, "--- %s: %s\n%sFAIL\t%s\t%.1fs\t%v\n", r.name, strings.Join(append(r.set, r.command...), " "), r.output, r.name,
			r.took.Seconds(), r.err)
		return
	}
	if r.skipped() {
		fmt.Fprintf(w, "%s\t%s", r.name, r.output)
		return
	}
	shown := 0
	for line := range bytes.Lines(r.output) {
		if bytes.HasPrefix(line, []byte("ok ")) {
			shown++
			fmt.Fprintf(w, "%s", line)
		}
	}
	if shown == 0 {
		fmt.Fprintf(w, "ok  \t%s\t%.1fs\n", r.name, r.took.Seconds())
	}
}

// table prints the suites, the slowest first, and tells which failed.
func table(w io.Writer, results []result) error {
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(b.took, a.took) })
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(aligned, "\nsuite\tseconds\tof processors\tresult")
	var failed []string
	for i := range results {
		r, text := &results[i], "ok"
		switch {
		case r.err != nil:
			text, failed = "FAILED", append(failed, r.name)
		case r.skipped():
			text = "skipped"
		}
		fmt.Fprintf(aligned, "%s\t%.0f\t%.0f\t%s\n", r.name, r.took.Seconds(), r.by.Seconds(), text)
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}
