package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Exit is what the program tells its caller by its exit code. The numbers never change their meaning.
type Exit int

// The exit codes.
const (
	Done        Exit = 0
	Failed      Exit = 1
	NoNodeFits  Exit = 2
	NotFound    Exit = 4
	Unreachable Exit = 5 // no leader, or no coordinator answers
	TimedOut    Exit = 6 // what was begun goes on
	WrongUsage  Exit = 64
	Interrupted Exit = 130 // 128 and SIGINT, as shells count
)

var exits = map[string]Exit{
	rpc.NoNodeFits:  NoNodeFits,
	rpc.NotFound:    NotFound,
	rpc.NoLeader:    Unreachable,
	rpc.Unreachable: Unreachable,
	rpc.Timeout:     TimedOut,
}

// usageError is a command line that cannot be meant. It knows the command, to show how it is used.
type usageError struct {
	command *cobra.Command
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, err error) error {
	var already *usageError
	if errors.As(err, &already) {
		return err
	}
	return &usageError{command: cmd, err: err}
}

// Usagef makes the error of a command line that cannot be meant: Run shows the command's usage and exits with WrongUsage.
func Usagef(cmd *cobra.Command, format string, a ...any) error {
	return usage(cmd, fmt.Errorf(format, a...))
}

// failf makes an error of our own in the form of the API's.
func failf(code, next, format string, a ...any) error {
	return rpc.Errorf(connect.CodeUnknown, &berthv1.ErrorDetail{Code: code, NextStep: next}, format, a...)
}

// complaint is an error as its reader gets it.
type complaint struct {
	exit    Exit
	message string
	usage   string // the right usage line; empty unless the usage was wrong
	detail  *berthv1.ErrorDetail
}

func explain(ctx context.Context, err error) complaint {
	var wrong *usageError
	if errors.As(err, &wrong) {
		return complaint{
			exit: WrongUsage, message: wrong.Error(), usage: wrong.command.UseLine(),
			detail: &berthv1.ErrorDetail{
				Code:     rpc.Invalid,
				NextStep: fmt.Sprintf("run '%s --help' for the flags and examples", wrong.command.CommandPath()),
			},
		}
	}
	said := complaint{exit: Failed, message: message(err), detail: rpc.Detail(err)}
	if exit, known := exits[said.detail.GetCode()]; known {
		said.exit = exit
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		said.exit = Interrupted
		if said.message == context.Canceled.Error() {
			said.message = "interrupted"
		}
	}
	if said.detail == nil {
		said.detail = &berthv1.ErrorDetail{}
	}
	return said
}

// message is the error's text without Connect's code word, which stands in the detail.
func message(err error) string {
	if wire, ok := err.(*connect.Error); ok { //nolint:errorlint // a wrapped one has words around it that must stay
		return wire.Message()
	}
	return err.Error()
}

func (c complaint) writeText(w io.Writer) {
	problems := c.detail.GetProblems()
	if len(problems) == 0 {
		fmt.Fprintf(w, "berth: %s\n", cleanLines(c.message))
	}
	if c.usage != "" {
		fmt.Fprintf(w, "usage: %s\n", c.usage)
	}
	writeProblems(w, problems)
	if decision := c.detail.GetDecision(); decision != nil {
		writeRefusal(w, decision)
	}
	if next := c.detail.GetNextStep(); next != "" {
		fmt.Fprintf(w, "next step: %s\n", cleanLines(next))
	}
}

func (c complaint) writeJSON(w io.Writer) {
	detail, err := protojson.Marshal(c.detail)
	if err != nil {
		detail = []byte("{}")
	}
	text, err := json.MarshalIndent(struct {
		Error    string          `json:"error"`
		Usage    string          `json:"usage,omitempty"`
		ExitCode Exit            `json:"exitCode"`
		Detail   json.RawMessage `json:"detail"`
	}{c.message, c.usage, c.exit, detail}, "", "  ")
	if err != nil {
		text = []byte(`{"exitCode": 1}`)
	}
	fmt.Fprintf(w, "%s\n", text)
}
