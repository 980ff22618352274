package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// wanted is how many planted bugs have to be caught at least.
const wanted = 20

func main() {
	only := flag.String("only", "", "comma-separated names of the mutants to try; default: all")
	list := flag.Bool("list", false, "list them only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := choose(*only)
	if err == nil {
		if *list {
			err = show(os.Stdout, chosen)
		} else {
			err = tryAll(ctx, os.Stdout, chosen)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// choose are the mutants with these names.
func choose(names string) ([]mutant, error) {
	if names == "" {
		return mutants, nil
	}
	var chosen []mutant
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for i := range mutants {
			if mutants[i].name == name {
				chosen = append(chosen, mutants[i])
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("there is no mutant %q", name)
		}
	}
	return chosen, nil
}

func show(w io.Writer, chosen []mutant) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MUTANT\tFILE\tSUITE")
	for i := range chosen {
		fmt.Fprintf(table, "%s\t%s\t%s\n", chosen[i].name, chosen[i].file, chosen[i].suite)
	}
	return table.Flush()
}

// root is the module's folder.
func root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// tryAll tries one mutant after the other and prints a line of each. The error says how many were not caught.
func tryAll(ctx context.Context, w io.Writer, chosen []mutant) error {
	root, err := root(ctx)
	if err != nil {
		return err
	}
	const line = "%-32s %-56s %-9s %s\n"
	fmt.Fprintf(w, line, "MUTANT", "SUITE", "RESULT", "SECONDS")
	sound := make(map[suite]error)
	caught, survived, broken := 0, 0, 0
	for i := range chosen {
		m, began := &chosen[i], time.Now()
		failed, err := m.tryOnce(ctx, root, sound)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result := "caught"
		switch {
		case err != nil:
			broken++
			result = "ERROR"
		case failed:
			caught++
		default:
			survived++
			result = "SURVIVED"
		}
		fmt.Fprintf(w, line, m.name, m.suite, result, fmt.Sprintf("%.1f", time.Since(began).Seconds()))
		if err != nil {
			fmt.Fprintf(w, "    %v\n", err)
		}
	}
	verdict := "met"
	if caught < min(wanted, len(mutants)) || survived+broken > 0 {
		verdict = "not met"
	}
	fmt.Fprintf(w, "GOAL G8: %d of %d planted bugs caught, %d survived, %d could not be tried | at least %d, all | %s\n",
		caught, len(chosen), survived, broken, wanted, verdict)
	if survived+broken > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", survived+broken, len(chosen))
	}
	return nil
}

// tryOnce tries a mutant whose suite is sound without it. What is known of suites it keeps.
func (m *mutant) tryOnce(ctx context.Context, root string, sound map[suite]error) (caught bool, err error) {
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	known, tried := sound[m.suite]
	if !tried {
		fails, err := m.suite.fails(ctx, root)
		if known = err; err == nil && fails {
			known = fmt.Errorf("%s: %w", m.suite, errAnyway)
		}
		sound[m.suite] = known
	}
	if known != nil {
		return false, known
	}
	return m.try(ctx, root, folder)
}
