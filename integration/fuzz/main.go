// Fuzz gives every parser of bytes that come from others a number of inputs, two million in all, made by the fuzzer of the go command
// from what it has found so far. It ends with how many were tried, and fails if they are fewer. It also fails at the first that makes a
// parser panic or break its rule; that input is left in the package's testdata. `make fuzz` goes on by the clock instead.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// target is a fuzz test.
type target struct {
	pkg, name string
	inputs    int
}

// targets are all of them. Those that are cheap get most: a parser of a few bytes takes microseconds, a whole state milliseconds.
var targets = []target{
	{"./shared/qcow2", "FuzzParse", 700_000},
	{"./shared/config", "FuzzParse", 300_000},
	{"./shared/domxml", "FuzzParse", 300_000},
	{"./shared/domxml/guard", "FuzzJudge", 300_000},
	{"./shared/pki", "FuzzToken", 200_000},
	{"./shared/destination", "FuzzURI", 200_000},
	{"./shared/pki", "FuzzIdentity", 150_000},
	{"./coordinator/packing", "FuzzUnpack", 40_000},
	{"./coordinator/consensus/sieve", "FuzzTake", 40_000},
	{"./coordinator/prediction", "FuzzBounds", 40_000},
	{"./shared/rpc", "FuzzBounded", 5_000},
	{"./coordinator/consensus", "FuzzPage", 5_000},
	{"./coordinator/scenario", "FuzzParse", 2_000},
	{"./coordinator/estate", "FuzzParse", 2_000},
	{"./coordinator/seal", "FuzzReader", 2_000},
	{"./coordinator/cli/vm", "FuzzKey", 2_000},
	{"./coordinator/state", "FuzzCommand", 1_000},
	{"./coordinator/state", "FuzzSnapshot", 1_000},
	{"./coordinator/state", "FuzzRecords", 1_000},
	{"./coordinator/state", "FuzzReading", 1_000},
}

// wanted are the inputs in all, without a panic (G10).
const wanted = 2_000_000

// executed finds how many inputs the fuzzer says it has tried, which it tells again and again.
var executed = regexp.MustCompile(`execs: (\d+)`)

// triedIn is the last of these figures; 0: there is none.
func triedIn(out []byte) int {
	all := executed.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return 0
	}
	tried, err := strconv.Atoi(string(all[len(all)-1][1]))
	if err != nil {
		return 0
	}
	return tried
}

// told is the last line, and whether the goal is met.
func told(tried, parsers int, took time.Duration) (line string, met bool) {
	verdict, met := "met", tried >= wanted
	if !met {
		verdict = "not met"
	}
	return fmt.Sprintf(
		"GOAL G10: %d inputs, %d parsers, no panic, %s | wanted %d inputs, no panic | %s",
		tried, parsers, took.Round(time.Second), wanted, verdict,
	), met
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	begun, tried := time.Now(), 0
	for _, one := range targets {
		out, err := exec.CommandContext(
			ctx, "go", "test", "-run", "^$", "-fuzz", "^"+one.name+"$", "-fuzztime", fmt.Sprintf("%dx", one.inputs),
			"-fuzzminimizetime", "20x", one.pkg,
		).CombinedOutput()
		if err != nil {
			fmt.Printf("%s %s: %v\n%s", one.pkg, one.name, err, out)
			if ctx.Err() == nil {
				fmt.Printf("GOAL G10: %s %s fails | wanted %d inputs, no panic | not met\n", one.pkg, one.name, wanted)
			}
			os.Exit(1)
		}
		tried += triedIn(out)
	}
	line, met := told(tried, len(targets), time.Since(begun))
	fmt.Println(line)
	if !met {
		os.Exit(1)
	}
}
