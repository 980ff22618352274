// Suites runs the suites of `make check` and `make test` side by side, prints what the failed ones print, and ends with a table
// of the time that each took. Random tests draw from a seed that it prints. It is the same in every run, so that a change is
// judged by what it changed, and not by luck: `make explore` and `make goals` look for what no seed has shown yet. Which part of the
// long suites a run of `make test` plays follows from the commit; -whole plays all of them, as `make labs` does with what needs labs.
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
	all := flag.Bool("whole", false, "play the long suites whole, and not the part that follows from the commit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), *only, *seed, *all); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list, only string, seed uint64, all bool) error {
	var chosen []suite
	switch list {
	case "check":
		seed = max(1, seed)
		chosen = check()
		fmt.Printf("random tests draw from seed %d\n", seed)
	case "test":
		p := part{index: seed % parts, of: parts}
		if seed == 0 {
			seed, p.index = 1, commit(ctx)%parts
		}
		if all {
			p = whole
		}
		rest, err := others(ctx)
		if err != nil {
			return err
		}
		if chosen, err = test(p, rest, "integration"); err != nil {
			return err
		}
		fmt.Printf(
			"random tests draw from seed %d; part %d of %d of the long suites: of labs, %s of integration/faults, %s of Raft\n",
			seed, p.index+1, p.of, strings.Join(p.seeds("SEEDS", seeds), " "), strings.Join(p.seeds("SCHEDULES", schedules), " "),
		)
	default:
		return errors.New("say which list to run: check or test")
	}
	chosen, err := pick(chosen, only)
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

// pick returns the suites with these names.
func pick(list []suite, only string) ([]suite, error) {
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
