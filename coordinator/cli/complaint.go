package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

var exits = map[string]term.Exit{
	rpc.NoNodeFits:  term.NoNodeFits,
	rpc.NotFound:    term.NotFound,
	rpc.NoLeader:    term.Unreachable,
	rpc.Unreachable: term.Unreachable,
	rpc.Timeout:     term.TimedOut,
}

// complaint is an error as its reader gets it.
type complaint struct {
	exit    term.Exit
	message string
	usage   string // the right usage line; empty unless the usage was wrong
	detail  *berthv1.ErrorDetail
}

func explain(ctx context.Context, err error) complaint {
	var wrong *term.UsageError
	if errors.As(err, &wrong) {
		return complaint{
			exit: term.WrongUsage, message: wrong.Error(), usage: wrong.Command.UseLine(),
			detail: &berthv1.ErrorDetail{
				Code:     rpc.Invalid,
				NextStep: fmt.Sprintf("run '%s --help' for the flags and examples", wrong.Command.CommandPath()),
			},
		}
	}
	said := complaint{exit: term.Failed, message: term.Message(err), detail: rpc.Detail(err)}
	if exit, known := exits[said.detail.GetCode()]; known {
		said.exit = exit
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		said.exit = term.Interrupted
		if said.message == context.Canceled.Error() {
			said.message = "interrupted"
		}
	}
	if said.detail == nil {
		said.detail = &berthv1.ErrorDetail{}
	}
	return said
}

func (c complaint) writeText(w io.Writer) {
	problems := c.detail.GetProblems()
	if len(problems) == 0 {
		fmt.Fprintf(w, "berth: %s\n", term.CleanLines(c.message))
	}
	if c.usage != "" {
		fmt.Fprintf(w, "usage: %s\n", c.usage)
	}
	term.WriteProblems(w, problems)
	if decision := c.detail.GetDecision(); decision != nil {
		explanation.WriteRefusal(w, decision)
	}
	if next := c.detail.GetNextStep(); next != "" {
		fmt.Fprintf(w, "next step: %s\n", term.CleanLines(next))
	}
}

func (c complaint) writeJSON(w io.Writer) {
	detail, err := rpc.MarshalJSON(c.detail)
	if err != nil {
		detail = []byte("{}")
	}
	text, err := json.MarshalIndent(struct {
		Error    string          `json:"error"`
		Usage    string          `json:"usage,omitempty"`
		ExitCode term.Exit       `json:"exit_code"`
		Detail   json.RawMessage `json:"detail"`
	}{c.message, c.usage, c.exit, detail}, "", "  ")
	if err != nil {
		text = []byte(`{"exit_code": 1}`)
	}
	fmt.Fprintf(w, "%s\n", term.Escaped(text))
}

// wantsJSON looks at the bare arguments, for errors that come before the flags are understood.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch value, isLong := strings.CutPrefix(arg, "--output="); {
		case arg == "--":
			return false
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			return term.Format(args[i+1]).Structured()
		case isLong:
			return term.Format(value).Structured()
		case strings.HasPrefix(arg, "-o") && !strings.HasPrefix(arg, "--"):
			return term.Format(strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "=")).Structured()
		}
	}
	return false
}
