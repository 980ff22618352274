package resource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/qcow2"
	"berth/shared/rpc"
	"berth/shared/units"
)

// importPiece is how much of a file one message carries, in bytes.
const importPiece = 256 << 10

func imageImportCommand(a *term.App) *cobra.Command {
	var start berthv1.ImportImageStart
	cmd := &cobra.Command{
		Use: "import FILE --pool POOL", Short: "Put a disk image into a storage pool", Args: term.Arguments(1, "FILE"),
		Long: `Put a disk image into a storage pool, as a whole or not at all. Disks are then made as thin copies of it.

The image has to be whole in itself: one with a backing file, an external data file, encryption or internal snapshots is
refused. Its format is said, never guessed. A checksum is taken before the file is sent and compared when it has come.
Into a local pool it goes on each node of the pool's cluster.

The same file can be imported under the same name into further pools: disks are then made in all of their clusters.`,
		Example: `  berth image import debian-12.qcow2 --pool fast
  berth image import debian-12.qcow2 --pool slow
  berth image import /srv/images/base.img --format raw --name base --pool fast`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			switch {
			case path == "-":
				return term.Usagef(cmd, "-: the file is read twice, so it cannot come from the standard input")
			case start.GetPool() == "":
				return term.Usagef(cmd, "--pool is missing: the storage pool that it goes into")
			case start.GetFormat() != qcow2.FormatQCOW2 && start.GetFormat() != qcow2.FormatRaw:
				return term.Usagef(cmd, "--format %s: use %s or %s", start.GetFormat(), qcow2.FormatQCOW2, qcow2.FormatRaw)
			case start.GetName() == "":
				start.Name = imageName(path)
			}
			if err := model.ValidateName("image", start.GetName()); err != nil {
				return term.Usage(cmd, fmt.Errorf("%w; --name gives it another one", err))
			}
			start.RequestId = term.RequestID()
			return importImage(a, cmd, path, &start)
		},
		ValidArgsFunction: term.CompleteFirst(term.CompleteFiles),
	}
	flags := cmd.Flags()
	flags.StringVar(&start.Name, "name", "", "`NAME` of the image; default that of the file")
	flags.StringVar(&start.Pool, "pool", "", "storage `POOL` that it goes into")
	flags.StringVar(&start.Format, "format", qcow2.FormatQCOW2, "`FORMAT` of the file: qcow2 or raw")
	flags.StringVar(&start.Offer, "offer", "", "`OFFER` that it takes keys from")
	term.Complete(cmd, "name", cobra.NoFileCompletions)
	term.Complete(cmd, "pool", a.ResourceNames(model.KindPool))
	term.Complete(cmd, "format", term.CompleteFixed(qcow2.FormatQCOW2, qcow2.FormatRaw))
	term.Complete(cmd, "offer", a.ResourceNames(model.KindOffer))
	return cmd
}

// imageName is the name of a file without the ending that tells its format.
func imageName(path string) string {
	name := filepath.Base(path)
	for _, ending := range []string{".qcow2", ".img", ".raw"} {
		if shorter, found := strings.CutSuffix(name, ending); found && shorter != "" {
			return shorter
		}
	}
	return name
}

func importImage(a *term.App, cmd *cobra.Command, path string, start *berthv1.ImportImageStart) error {
	file, err := os.Open(path)
	if err != nil {
		return term.Failf(rpc.Invalid, "check the name of the file", "read the image: %w", err)
	}
	defer file.Close()
	if err := lookAt(file, start); err != nil {
		return err
	}
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	// A client's stream cannot be begun again from the start, so it begins where somebody is known to answer.
	pools, err := term.AskAll(cmd.Context(), s, term.Client.ListPools, &berthv1.ListPoolsRequest{Pool: start.GetPool()}, term.Everything)
	if err != nil {
		return err
	}
	into := "pool/" + start.GetPool()
	for _, pool := range pools.GetPools() {
		into = fmt.Sprintf("pool/%s of cluster %s", pool.GetName(), pool.GetCluster())
	}
	subject := "image/" + start.GetName()
	if start.Sha256, err = checksum(a, cmd, subject, file, start.GetSizeBytes()); err != nil {
		return err
	}
	var (
		answer  *berthv1.ImportImageResponse
		refused error
	)
	err = s.Call(cmd.Context(), func(ctx context.Context, c term.Client) error {
		sending := copying(a, cmd.ErrOrStderr(), subject, "sent", start.GetSizeBytes())
		answer, err = sendImage(ctx, c, start, io.NewSectionReader(file, 0, start.GetSizeBytes()), sending)
		sending.end(err == nil)
		if rpc.Detail(err) != nil {
			refused = err // whatever the answer was: nobody else is asked
			return nil
		}
		return err
	})
	if err := cmp.Or(err, refused); err != nil {
		return err
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{subject},
		Text: func(p *term.Page, _ bool) {
			p.Line("%s imported into %s: a disk of %v, SHA-256 %s", subject, into,
				units.Bytes(answer.GetImage().GetVolume().GetCapacityBytes()), start.GetSha256())
		},
	})
}

// lookAt judges a file before anything is done with it.
func lookAt(file *os.File, start *berthv1.ImportImageStart) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return term.Failf(rpc.Invalid, "give a file that has the image", "%s is no regular file", file.Name())
	}
	start.SizeBytes = info.Size()
	begin := make([]byte, min(info.Size(), qcow2.HeaderLength))
	if _, err := file.ReadAt(begin, 0); err != nil {
		return fmt.Errorf("read the image: %w", err)
	}
	if _, err := qcow2.Capacity(start.GetFormat(), begin, info.Size()); err != nil {
		return term.Failf(rpc.Invalid, qcow2.NextStep(err), "%s: %w", file.Name(), err)
	}
	return nil
}

// checksum is the SHA-256 of the file, in hex.
func checksum(a *term.App, cmd *cobra.Command, subject string, file *os.File, size int64) (string, error) {
	sum := sha256.New()
	reading := copying(a, cmd.ErrOrStderr(), subject, "checked", size)
	_, err := io.Copy(io.MultiWriter(sum, reading), stoppable{cmd.Context(), io.NewSectionReader(file, 0, size)})
	reading.end(err == nil)
	if err != nil {
		return "", fmt.Errorf("read the image: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// stoppable reads until a context ends.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(into []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(into)
}

func sendImage(
	ctx context.Context, c term.Client, start *berthv1.ImportImageStart, file io.Reader, progress io.Writer,
) (*berthv1.ImportImageResponse, error) {
	stream := c.ImportImage(ctx)
	// A refusal shows as the end of the stream; its reason comes with the answer.
	failed := stream.Send(&berthv1.ImportImageRequest{Start: start})
	piece := make([]byte, importPiece)
	for failed == nil {
		n, err := io.ReadFull(file, piece)
		if n > 0 {
			failed = stream.Send(&berthv1.ImportImageRequest{Data: piece[:n]})
			_, _ = progress.Write(piece[:n]) // only counts
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, term.Failf(rpc.Invalid, "check the file", "read the image: %w", err)
		}
	}
	if failed != nil && !errors.Is(failed, io.EOF) {
		return nil, failed
	}
	response, err := stream.CloseAndReceive()
	if err != nil {
		return nil, err
	}
	return response.Msg, nil
}
