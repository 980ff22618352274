package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

var errDeclined = errors.New("nothing was changed")

// ConfirmFlag adds the flag --yes, which answers the question beforehand.
func ConfirmFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// Confirm asks before something that cannot be taken back. Where nobody can be asked, --yes has to stand on the line.
func Confirm(cmd *cobra.Command, yes bool, question string) error {
	return ConfirmWhat(cmd, yes, func() (string, error) { return question, nil })
}

// ConfirmWhat is Confirm with a question that names what is at stake: it is looked up only where somebody is asked.
func ConfirmWhat(cmd *cobra.Command, yes bool, question func() (string, error)) error {
	if yes {
		return nil
	}
	if !IsTerminal(cmd.InOrStdin()) {
		return Usagef(cmd, "this cannot be taken back and there is no terminal to ask on: repeat it with --yes")
	}
	asked, err := question()
	if err != nil {
		return err
	}
	return AskFirst(cmd, asked)
}

// AskFirst asks on the terminal that the command was typed on.
func AskFirst(cmd *cobra.Command, question string) error {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	type reply struct {
		text string
		err  error
	}
	replies := make(chan reply, 1)
	go func() { // a terminal cannot be told to stop reading: the process ends while it waits
		text, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		replies <- reply{text, err}
	}()
	select {
	case <-cmd.Context().Done():
		fmt.Fprintln(cmd.ErrOrStderr())
		return errInterrupted
	case got := <-replies:
		if got.err != nil {
			return fmt.Errorf("%w: no answer: %w", errDeclined, got.err)
		}
		switch strings.ToLower(strings.TrimSpace(got.text)) {
		case "y", "yes":
			return nil
		}
		return errDeclined
	}
}

// errInterrupted is the answer of somebody who interrupts instead.
var errInterrupted error = interruption{}

type interruption struct{}

func (interruption) Error() string { return "interrupted: nothing was changed" }

func (interruption) Unwrap() error { return context.Canceled }
