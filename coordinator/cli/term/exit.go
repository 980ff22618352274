package term

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

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

// UsageError is a command line that cannot be meant. It knows the command, to show how it is used.
type UsageError struct {
	Command *cobra.Command
	err     error
}

func (e *UsageError) Error() string { return e.err.Error() }

func (e *UsageError) Unwrap() error { return e.err }

// Usage marks an error as a wrong use of a command. One that is marked already stays as it is.
func Usage(cmd *cobra.Command, err error) error {
	var already *UsageError
	if errors.As(err, &already) {
		return err
	}
	return &UsageError{Command: cmd, err: err}
}

// Usagef makes the error of a command line that cannot be meant: Run shows the command's usage and exits with WrongUsage.
func Usagef(cmd *cobra.Command, format string, a ...any) error {
	return Usage(cmd, fmt.Errorf(format, a...))
}

// Failf makes an error of our own in the form of the API's.
func Failf(code, next, format string, a ...any) error {
	return rpc.Errorf(connect.CodeUnknown, &berthv1.ErrorDetail{Code: code, NextStep: next}, format, a...)
}

// Message is the error's text without Connect's code word, which stands in the detail.
func Message(err error) string {
	if wire, ok := err.(*connect.Error); ok { //nolint:errorlint // a wrapped one has words around it that must stay
		return wire.Message()
	}
	return err.Error()
}
