package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Names of what the package berth has for the service manager.
const (
	unit      = "berth-fence.socket"
	instances = "'berth-fence@*'"
)

// Command is what the service manager runs for each connection to the socket: one call of a fence agent. Directories gives those that
// the coordinator's configuration names; it is root's, so who asks cannot say which programs are run.
func Command(directories func(config string) ([]string, error), config string) *cobra.Command {
	command := &cobra.Command{
		Use: "fence-agent", Short: "Run one fence agent for the coordinator, as another account",
		Long: "Reads from the connection that is its standard input which fence agent is to be run, with its arguments, runs it and answers.\n" +
			"The service manager starts it, for each connection to " + unit + ".",
		Args: cobra.NoArgs, Hidden: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM)
			defer stop()
			conn, err := net.FileConn(os.Stdin)
			if err != nil {
				return fmt.Errorf("the standard input is no connection (%w): 'systemctl start %s' listens for the coordinator", err, unit)
			}
			defer conn.Close()
			within, err := directories(config)
			if err != nil {
				return errors.Join(err, json.NewEncoder(conn).Encode(fail(err)))
			}
			return serve(ctx, conn, within)
		},
	}
	command.Flags().StringVar(&config, "config", config, "the coordinator's configuration")
	return command
}

// requestLimit is how long the other side may take to say what it wants, and to take the answer.
const requestLimit = 10 * time.Second

// serve does what one request asks for. It ends the fence agent when the other side goes away.
func serve(ctx context.Context, conn net.Conn, directories []string) error {
	if err := conn.SetReadDeadline(time.Now().Add(requestLimit)); err != nil {
		return err
	}
	var asked request
	decoder := json.NewDecoder(io.LimitReader(conn, maxRequest))
	if err := decoder.Decode(&asked); err != nil {
		err = fmt.Errorf("read what is to be run: %w", err)
		return errors.Join(err, json.NewEncoder(conn).Encode(fail(err)))
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, conn) // nothing more is asked for
		cancel(errors.New("the coordinator does not wait any more"))
	}()
	got := (&Runner{Directories: directories}).answer(ctx, asked)
	err := errors.Join(conn.SetDeadline(time.Now().Add(requestLimit)), json.NewEncoder(conn).Encode(got), conn.SetReadDeadline(time.Now()))
	<-left
	return err
}

// answer runs the fence agent that a request names.
func (r *Runner) answer(ctx context.Context, asked request) (got answer) {
	var err error
	switch asked.Action {
	case "off", "status":
		got.Code, got.Said, err = r.run(ctx, asked.Device, asked.Action)
	case actionIdentity:
		got.Identity, err = r.Identity(ctx, asked.Device)
	default:
		err = fmt.Errorf("a fence agent is not told %q", asked.Action)
	}
	if err != nil {
		return fail(err)
	}
	return got
}
