package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pause"
	"berth/shared/rpc"
)

const (
	// leaveKey ends a console, as in virsh: Ctrl-].
	leaveKey = 0x1d
	// lastWords is how long a guest may still say something after the end of a standard input that is no terminal.
	lastWords = 2 * time.Second
)

func consoleCommand(a *term.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "console NAME", Short: "Join the serial console of a running VM", Args: term.Arguments(1, "NAME"),
		Long: `Join the serial console of a running VM. Every key goes to the guest; Ctrl-] leaves, and the guest goes on. One at a
time can have a console: --force takes it from the one that has it.`,
		Example: `  berth vm console web1
  berth vm console web1 --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			return console(a, cmd, s, &berthv1.ConsoleRequest{Vm: args[0], Force: force})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().BoolVar(&force, "force", false, "take it from the one that has it")
	return cmd
}

// console joins the command's streams with a console. Once it has been joined it is not looked for on other coordinators.
func console(a *term.App, cmd *cobra.Command, s *term.Session, request *berthv1.ConsoleRequest) error {
	// Joining twice would be one too many, so it begins where somebody is known to answer.
	if _, err := term.Ask(cmd.Context(), s, term.Client.GetVM, &berthv1.GetVMRequest{Vm: request.GetVm()}); err != nil {
		return err
	}
	if !a.Quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "console of vm/%s: Ctrl-] leaves it\n", term.Clean(request.GetVm()))
	}
	var ended error
	err := s.Call(cmd.Context(), func(ctx context.Context, c term.Client) error {
		restore, err := rawTerminal(cmd.InOrStdin())
		if err != nil {
			return err
		}
		defer restore()
		var joined bool
		joined, ended = joinConsole(ctx, c, request, cmd.InOrStdin(), cmd.OutOrStdout())
		if joined || rpc.Detail(ended) != nil {
			return nil // whatever the answer was: nobody else is asked
		}
		return ended
	})
	if err != nil {
		return err
	}
	if ended != nil {
		if rpc.Detail(ended) != nil {
			return ended
		}
		return term.Failf(
			rpc.Unavailable, fmt.Sprintf("join it again: 'berth vm console %s'", request.GetVm()), "the console was cut off: %w", ended,
		)
	}
	if !a.Quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "\nleft the console of vm/%s\n", term.Clean(request.GetVm()))
	}
	return nil
}

// rawTerminal lets every key through, if a person types. Restore gives the terminal back as it was.
func rawTerminal(in io.Reader) (restore func(), err error) {
	file, ok := in.(*os.File)
	if !ok || !xterm.IsTerminal(int(file.Fd())) {
		return func() {}, nil
	}
	before, err := xterm.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("set the terminal up: %w", err)
	}
	return func() { _ = xterm.Restore(int(file.Fd()), before) }, nil // there is nothing else to try
}

// joinConsole carries keys and words until either side ends. Joined tells that something has come through.
func joinConsole(
	ctx context.Context, c term.Client, request *berthv1.ConsoleRequest, in io.Reader, out io.Writer,
) (joined bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := c.Console(ctx)
	defer stream.CloseResponse() //nolint:errcheck // it has ended, or is given up
	if err := stream.Send(request); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	left, person := make(chan struct{}), term.IsTerminal(in)
	go func() {
		defer close(left)
		if !typeInto(stream, in) && !person {
			pause.For(ctx, lastWords) // what was piped in has been said; the answer comes
		}
		_ = stream.CloseRequest() // a broken stream tells its reader
	}()
	for {
		said, err := stream.Receive()
		if err != nil {
			select {
			case <-left:
				if errors.Is(err, io.EOF) || connect.CodeOf(err) == connect.CodeCanceled {
					return true, nil
				}
			default:
			}
			if errors.Is(err, io.EOF) {
				return true, nil
			}
			return joined, err
		}
		joined = true
		if _, err := out.Write(said.GetData()); err != nil {
			return true, err
		}
	}
}

// typeInto sends what is typed, until the end or the key that leaves; for that one it is true.
func typeInto(stream *connect.BidiStreamForClient[berthv1.ConsoleRequest, berthv1.ConsoleResponse], in io.Reader) bool {
	keys := make([]byte, 1024)
	for {
		n, err := in.Read(keys)
		typed, _, leave := bytes.Cut(keys[:n], []byte{leaveKey})
		if len(typed) > 0 && stream.Send(&berthv1.ConsoleRequest{Data: typed}) != nil {
			return false
		}
		if leave {
			return true
		}
		if err != nil {
			return false
		}
	}
}
