package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/statusfiles"
	"berth/shared/logging"
)

// statusFilesCommand is what the unit berth-status-files runs.
func statusFilesCommand() *cobra.Command {
	var account, listen string
	service := statusfiles.Service{}
	cmd := &cobra.Command{
		Use: "status-files", Short: "Pass libvirt's status files on to the agent, which may not read them",
		Long: `Reads the files in which libvirt keeps what its guests run with, and passes them on as they are written. The service
manager gives it the socket on which it does so, and the folder in which it keeps the last of guests that end while no agent reads.`,
		Args: exactly(), Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logging.New("berth-status-files", "info", cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			service.Log = log
			return passStatusFiles(cmd.Context(), &service, account, listen)
		},
	}
	cmd.Flags().StringVar(&service.Folder, "folder", statusfiles.DefaultFolder, "where libvirt keeps its status files")
	cmd.Flags().StringVar(&service.Keep, "keep", statusfiles.DefaultKeep,
		"folder for the last files of guests that end while no agent reads; empty: none are kept")
	cmd.Flags().StringVar(&account, "account", "berth-agent", "account of the agent, which alone may read them here, beside root")
	cmd.Flags().StringVar(&listen, "listen", "", "socket to make where no service manager gives one")
	return cmd
}

func passStatusFiles(ctx context.Context, service *statusfiles.Service, account, listen string) error {
	agent, err := user.Lookup(account)
	if err != nil {
		return fmt.Errorf("the account that may read libvirt's status files: %w; install the package berth-agent, or name another with --account",
			err)
	}
	uid, err := strconv.ParseUint(agent.Uid, 10, 32)
	if err != nil {
		return fmt.Errorf("the account %s: %w", account, err)
	}
	listener, err := statusListener(listen, int(uid))
	if err != nil {
		return err
	}
	defer listener.Close()
	service.Admits = []uint32{0, uint32(uid)}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		service.Log.Warn("the service manager could not be told", "error", err)
	}
	return service.Serve(ctx, listener)
}

// statusListener is the socket that the service manager has given, or one that is made for the agent alone.
func statusListener(path string, agent int) (*net.UnixListener, error) {
	if path == "" {
		given, err := activation.Listeners()
		if err != nil {
			return nil, err
		}
		if len(given) == 1 {
			if listener, is := given[0].(*net.UnixListener); is {
				return listener, nil
			}
		}
		return nil, errors.New("the service manager has given no socket: run it by `" + statusfiles.Start + "`, or say --listen PATH")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	before := unix.Umask(0o177) // so that nobody else may connect before it is the agent's
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	unix.Umask(before)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(path, agent, -1); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// hearLastWords has the agent know what guests ran with that ended while it was away, before it tells anybody that they are gone: a VM
// that is seen to be gone is started elsewhere at once. Those that have left by a migration ran on.
func hearLastWords(ctx context.Context, socket string, left func(ctx context.Context, uuid, name string) bool, saw func(hypervisor.Event),
	log hclog.Logger,
) {
	kept, err := statusfiles.Kept(ctx, socket)
	if err != nil {
		log.Warn("what guests ran with that ended while no agent was here cannot be read", "socket", socket, "error", err,
			"next_step", "systemctl status berth-status-files")
	}
	var news hypervisor.RanNews
	for _, file := range kept {
		if event, is := news.In(file.Name, file.Text, file.Found, file.Ended); is && !left(ctx, event.UUID, event.Name) {
			log.Info("a guest has ended while no agent was here: what it ran with is known", "vm", event.Name)
			saw(event)
		}
	}
}

// examineStatusFiles looks for the service, without which an agent that is not root hears of a guest's changes too late if it ends.
func examineStatusFiles(ctx context.Context, socket string) finding {
	const check = "status files"
	err := statusfiles.Passes(ctx, socket)
	switch {
	case err == nil:
		return finding{check, "libvirt's are passed on to the agent", "", good}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return finding{
			check, "nobody passes libvirt's on to the agent: what a guest changes right before its end may not be known", statusfiles.Start, warning,
		}
	}
	return finding{
		check, fmt.Sprintf("libvirt's are not passed on (%v): what a guest changes right before its end may not be known", err),
		"systemctl status berth-status-files", warning,
	}
}
