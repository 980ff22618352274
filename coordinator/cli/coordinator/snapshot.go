package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// snapshotChunk is well below what one message may hold.
const snapshotChunk = 256 << 10

func snapshotCommand(a *term.App, here []*cobra.Command) *cobra.Command {
	return term.Noun("snapshot COMMAND", "Save and restore everything that the coordinators know", `
A snapshot has all hard facts: nodes, VMs, settings, operations. It has no guest data and no keys of the cluster.`,
		append(here, snapshotSaveCommand(a), snapshotRestoreCommand(a))...)
}

func snapshotSaveCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "save FILE", Short: "Save a snapshot to a file", Args: term.Arguments(1, "FILE"),
		Long: `Save a snapshot to a file, - for the standard output. The file appears whole or not at all; an old one of that name is
replaced.`,
		Example: `  berth coordinator snapshot save /var/backups/berth-$(date +%F).snapshot`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			if args[0] == "-" {
				_, err := saveSnapshot(cmd.Context(), s, cmd.OutOrStdout())
				return err
			}
			length, err := saveFile(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if !a.Quiet {
				fmt.Fprintf(cmd.ErrOrStderr(), "snapshot of %v saved to %s\n", units.Bytes(length), args[0])
			}
			return nil
		},
	}
}

// saveFile writes a new file in the same folder and renames it at the end, so that a broken connection never leaves half a snapshot.
func saveFile(ctx context.Context, s *term.Session, path string) (length int64, err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, fmt.Errorf("save the snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
		}
	}()
	if length, err = saveSnapshot(ctx, s, temporary); err != nil {
		return 0, err
	}
	if err = errors.Join(temporary.Sync(), temporary.Close()); err != nil {
		return 0, fmt.Errorf("save the snapshot: %w", err)
	}
	if err = os.Rename(temporary.Name(), path); err != nil {
		return 0, fmt.Errorf("save the snapshot: %w", err)
	}
	return length, nil
}

// saveSnapshot copies one whole snapshot to w. Once something has been written no other coordinator is asked: its
// snapshot would be another one.
func saveSnapshot(ctx context.Context, s *term.Session, w io.Writer) (length int64, err error) {
	err = s.Call(ctx, func(ctx context.Context, c term.Client) error {
		stream, err := c.SaveSnapshot(ctx, connect.NewRequest(&berthv1.SaveSnapshotRequest{}))
		if err != nil {
			return err
		}
		defer stream.Close()
		for stream.Receive() {
			n, err := w.Write(stream.Msg().GetChunk())
			length += int64(n)
			if err != nil {
				return term.Failf(rpc.Internal, "make room, or choose another place", "write the snapshot: %w", err)
			}
		}
		return stream.Err()
	})
	if err == nil && length == 0 {
		err = term.Failf(rpc.Internal, "see the coordinator's log", "the coordinator sent an empty snapshot")
	}
	return length, err
}

func snapshotRestoreCommand(a *term.App) *cobra.Command {
	var yes, unproved bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Replace everything that the coordinators know by a snapshot", Args: term.Arguments(1, "FILE"),
		Long: `Replace everything that the coordinators know by a snapshot, - for the standard input. What was changed since the
snapshot is forgotten, but for coordinators and nodes that came since. No guest is touched.

Until every node has reported what it runs there is a quarantine: no VM is started, stopped or moved. What they report
then counts for more than the snapshot. 'berth status' names the nodes that have not reported; of one whose machine is
off say so with 'berth node fence NODE --confirmed-off'. A VM that is newer than the snapshot runs on without a record:
'berth status' names it, and 'berth vm adopt' makes one.

A snapshot has a seal that only coordinators of its cluster can make: one that was changed is refused. Releases before
0.7 made none, and the key may be lost. With --unproved such a snapshot is taken too: whoever could write the file may
have put anything into it.`,
		Example: `  berth coordinator snapshot restore /var/backups/berth-2026-11-20.snapshot`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := term.Confirm(cmd, yes, fmt.Sprintf("Replace everything that the coordinators know by %s?", args[0])); err != nil {
				return err
			}
			in := cmd.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return term.Failf(rpc.Invalid, "check the name of the file", "read the snapshot: %w", err)
				}
				defer file.Close()
				in = file
			}
			return restore(a, cmd, in, unproved)
		},
	}
	term.ConfirmFlag(cmd, &yes)
	cmd.Flags().BoolVar(&unproved, "unproved", false, "take a snapshot also if nothing proves who wrote it")
	return cmd
}

func restore(a *term.App, cmd *cobra.Command, in io.Reader, unproved bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	// A client's stream cannot be begun again from the start, so it begins where somebody is known to answer.
	if _, err := term.Ask(cmd.Context(), s, term.Client.ListMembers, &berthv1.ListMembersRequest{}); err != nil {
		return err
	}
	if unproved && !a.Quiet {
		fmt.Fprintln(cmd.ErrOrStderr(),
			"warning: a snapshot without a good seal may hold what anybody has written into it: look through it afterwards")
	}
	var answer *berthv1.RestoreSnapshotResponse
	err = s.Call(cmd.Context(), func(ctx context.Context, c term.Client) error {
		answer, err = sendSnapshot(ctx, c, in, unproved)
		return err
	})
	if err != nil {
		return err
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: nil,
		Text: func(p *term.Page, _ bool) {
			p.Line(
				"restored %s and %s at index %d", term.Count(int(answer.GetNodes()), "node"), term.Count(int(answer.GetVms()), "VM"), answer.GetIndex(),
			)
			p.Line(
				"quarantine: no VM is started, stopped or moved until every node has reported what it runs; 'berth status' names those that have not",
			)
		},
	})
}

func sendSnapshot(ctx context.Context, c term.Client, in io.Reader, unproved bool) (*berthv1.RestoreSnapshotResponse, error) {
	stream := c.RestoreSnapshot(ctx)
	buffer := make([]byte, snapshotChunk)
	for {
		n, err := io.ReadFull(in, buffer)
		if n > 0 {
			// A refusal shows here as the end of the stream; its reason comes with the answer.
			if sendErr := stream.Send(&berthv1.RestoreSnapshotRequest{Chunk: buffer[:n], Unproved: unproved}); errors.Is(sendErr, io.EOF) {
				break
			} else if sendErr != nil {
				return nil, sendErr
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, term.Failf(rpc.Invalid, "check the file", "read the snapshot: %w", err)
		}
	}
	response, err := stream.CloseAndReceive()
	if err != nil {
		return nil, err
	}
	return response.Msg, nil
}
