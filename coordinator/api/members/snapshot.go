package members

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// chunkSize is how much of a backup one message carries, and maxBackup the longest one that is taken back, in bytes. A
// cluster of ten thousand VMs has some tens of MiB.
const (
	ChunkSize = 256 << 10
	maxBackup = 4 << 30
)

// SaveSnapshot streams a backup of the state: everything that was committed before the call.
func (s *Calls) SaveSnapshot(
	ctx context.Context, _ *connect.Request[berthv1.SaveSnapshotRequest],
	stream *connect.ServerStream[berthv1.SaveSnapshotResponse],
) error {
	if err := s.Consensus.SaveSnapshot(ctx, chunks{stream}); err != nil {
		return err
	}
	s.Log.Info("a backup was given out", "caller", gate.CallerOf(ctx))
	return nil
}

// chunks cuts what is written into messages.
type chunks struct {
	stream *connect.ServerStream[berthv1.SaveSnapshotResponse]
}

func (c chunks) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		size := min(len(data), ChunkSize)
		if err := c.stream.Send(&berthv1.SaveSnapshotResponse{Chunk: data[:size]}); err != nil {
			return written, err
		}
		written += size
		data = data[size:]
	}
	return written, nil
}

// RestoreSnapshot replaces the state of the whole cluster by a backup, which is checked to its end before anything
// changes. Afterwards the cluster is quarantined until its nodes have been compared with the backup. It takes all permissions: a
// backup may be of a time at which clusters permitted more, and one without a seal may be anybody's.
func (s *Calls) RestoreSnapshot(
	ctx context.Context, stream *connect.ClientStream[berthv1.RestoreSnapshotRequest],
) (*connect.Response[berthv1.RestoreSnapshotResponse], error) {
	if err := s.takesAll(ctx, "snapshot", "a backup brings back what clusters permitted and what was put onto hosts then"); err != nil {
		return nil, err
	}
	backup := &parts{stream: stream}
	if err := backup.begin(); err != nil {
		return nil, err
	}
	if err := s.Consensus.RestoreSnapshot(ctx, backup, backup.unproved); err != nil {
		return nil, err
	}
	s.Log.Warn("the state was restored from a backup", "caller", gate.CallerOf(ctx))
	p := s.Present()
	return connect.NewResponse(&berthv1.RestoreSnapshotResponse{
		SchemaVersion: wire.SchemaVersion,
		Index:         p.Index(),
		Nodes:         int32(p.CountNodes()),
		Vms:           int32(p.CountVMs()),
	}), nil
}

// parts reads what a client streams.
type parts struct {
	stream *connect.ClientStream[berthv1.RestoreSnapshotRequest]
	rest   []byte
	total  int64
	// unproved is said in the first message.
	unproved bool
}

// begin reads the first message.
func (p *parts) begin() error {
	if err := p.receive(); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if err == nil {
		p.unproved = p.stream.Msg().GetUnproved()
	}
	return nil
}

var errBackupTooLarge = errors.New("the backup is larger than any state")

func (p *parts) Read(into []byte) (int, error) {
	for len(p.rest) == 0 {
		if err := p.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *parts) receive() error {
	if !p.stream.Receive() {
		if err := p.stream.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	p.rest = p.stream.Msg().GetChunk()
	if p.total += int64(len(p.rest)); p.total > maxBackup {
		return refusal.New(rpc.Invalid, "snapshot", "give the file that 'berth coordinator snapshot save' wrote", "%w", errBackupTooLarge)
	}
	return nil
}
