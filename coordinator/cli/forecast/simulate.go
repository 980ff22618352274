package forecast

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/scenario"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
	"berth/shared/rpc"
)

// SimulateCommand is the command simulate.
func SimulateCommand(a *term.App) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use: "simulate FILE", Short: "Try out on paper what would be placed where", Args: term.Arguments(1, "FILE"),
		Long: `Run a scenario through the placement engine, here, without any coordinator: an estate, the figures of the nodes, what
runs, and steps such as start, stop, migrate, drain and a node that goes down. Each decision is printed with its reasons
and compared with what the scenario expects, if it does. A step may also let time pass: then rules are repaired and
clusters evened out as a coordinator would, and all that happens is printed.

'berth export --scenario' writes a scenario from the live cluster: try tomorrow's policy on today's state, or send it
along with a report of a defect. - reads the standard input.

Exit codes: 0 all as expected, or nothing was expected; 1 something came out otherwise; 64 the file is not a scenario,
or has a step that cannot be.

` + strings.TrimSpace(format.Schema),
		Example: `  berth export --scenario | berth simulate -
  berth simulate today.yaml
  berth simulate today.yaml --full
  berth simulate today.yaml -o json | jq '.steps[].decisions[].reason'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readScenario(cmd, args[0])
			if err != nil {
				return err
			}
			// The process ends with the answer: memory is cheaper than collecting it all the time.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
			name := args[0]
			if name == "-" {
				name = term.StandardInput
			}
			scenario, problems := scenario.Parse(name, data)
			if err := schema.Problems(problems); err != nil {
				return term.Usage(cmd, err)
			}
			report, stopped := scenario.Run()
			if stopped == nil || len(report.Steps) > 0 {
				if err := printReport(a, cmd, &report, full); err != nil {
					return err
				}
			}
			switch {
			case stopped != nil:
				return term.Usage(cmd, stopped)
			case report.Failed > 0:
				return term.Failf(rpc.Conflict, "see what is NOT AS EXPECTED above; --full shows every figure",
					"%s: %s", name, report.Summary())
			}
			return nil
		},
		ValidArgsFunction: term.CompleteFirst(term.CompleteFiles),
	}
	cmd.Flags().BoolVar(&full, "full", false, "show every node with every figure, also where one line would do")
	return cmd
}

func printReport(a *term.App, cmd *cobra.Command, report *scenario.Report, full bool) error {
	names := make([]string, 0, len(report.Steps))
	for i := range report.Steps {
		names = append(names, "step/"+strconv.Itoa(report.Steps[i].Step))
	}
	return a.PrintLocal(cmd, report, names, func(p *term.Page, _ bool) {
		p.Line("%s, seed %d", report.Scenario, report.Seed)
		for i := range report.Steps {
			p.Blank()
			for line := range strings.Lines(report.Steps[i].Text(full)) {
				p.Line("%s", strings.TrimSuffix(line, "\n"))
			}
		}
		p.Blank()
		p.Line("%s", report.Summary())
	})
}

// readScenario reads a file, or the standard input for -. What cannot be read is not a scenario.
func readScenario(cmd *cobra.Command, path string) ([]byte, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, term.Usage(cmd, fmt.Errorf("read the scenario: %w", err))
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, scenario.MaxScenario+1))
	if err != nil {
		return nil, term.Usage(cmd, fmt.Errorf("read the scenario: %w", err))
	}
	return data, nil
}
