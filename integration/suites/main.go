// Suites runs the suites of `make check` and `make test` side by side, prints what the failed ones print, and ends with a table
// of the time that each took. Random tests draw from a seed that it prints. It is the same in every run, so that a change is
// judged by what it changed, and not by luck: `make explore` and `make goals` look for what no seed has shown yet. Which part of the
// long suites a run of `make test` plays follows from the commit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	seed := flag.Uint64("seed", 0, "of random tests; given, it also chooses the part of the long suites that is played")
	only := flag.String("only", "", "comma-separated names of suites; default: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), *only, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list, only string, seed uint64) error {
	var chosen []suite
	switch list {
	case "check":
		seed = max(1, seed)
		chosen = check()
		fmt.Printf("random tests draw from seed %d\n", seed)
	case "test":
		part := seed % parts
		if seed == 0 {
			seed, part = 1, commit(ctx)%parts
		}
		rest, err := others(ctx)
		if err != nil {
			return err
		}
		chosen = test(part, rest)
		fmt.Printf(
			"random tests draw from seed %d; part %d of %d of the long suites: %s of integration/faults, %s of Raft\n",
			seed, part+1, parts, strings.Join(share("SEEDS", seeds, part), " "), strings.Join(share("SCHEDULES", schedules, part), " "),
		)
	default:
		return errors.New("say which list to run: check or test")
	}
	chosen, err := named(chosen, only)
	if err != nil {
		return err
	}
	os.Setenv("RAPID_SEED", strconv.FormatUint(seed, 10))
	return runAll(ctx, os.Stdout, chosen, runtime.NumCPU())
}

// commit is a number of the commit that is checked out; 1 where there is none.
func commit(ctx context.Context) uint64 {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil || len(out) < 8 {
		return 1
	}
	number, err := strconv.ParseUint(string(out[:8]), 16, 64)
	if err != nil {
		return 1
	}
	return max(1, number)
}

// named are the suites with these names.
func named(list []suite, only string) ([]suite, error) {
	if only == "" {
		return list, nil
	}
	var chosen []suite
	for name := range strings.SplitSeq(only, ",") {
		at := slices.IndexFunc(list, func(s suite) bool { return s.name == name })
		if at < 0 {
			var names []string
			for _, one := range list {
				names = append(names, one.name)
			}
			return nil, fmt.Errorf("there is no suite %q, there are %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, list[at])
	}
	return chosen, nil
}
