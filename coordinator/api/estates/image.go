package estates

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/volumes"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/qcow2"
	"berth/shared/rpc"
	"berth/shared/units"
)

// importIdle is how long nothing may come of a file. Its room is not kept for somebody who has gone to lunch.
const importIdle = time.Minute

var checksumText = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ImportImage takes a disk image and has control put it into a pool. The file is kept on this machine until then, under no
// name. What its first bytes tell is judged before the rest comes.
func (s *VolumeCalls) ImportImage(
	ctx context.Context, stream *connect.ClientStream[berthv1.ImportImageRequest],
) (*connect.Response[berthv1.ImportImageResponse], error) {
	interrupt, served := rpc.Interrupter(ctx, answer.Farewell)
	defer served()
	idle := time.AfterFunc(importIdle, interrupt)
	defer idle.Stop()
	if !stream.Receive() {
		return nil, broken(stream.Err())
	}
	start := stream.Msg().GetStart()
	wanted, done, err := s.wantedImage(ctx, start)
	if err != nil {
		return nil, err
	}
	if !done {
		file, err := s.imports.open(wanted.Size)
		if err != nil {
			return nil, err
		}
		defer file.close()
		more := func() bool {
			idle.Reset(importIdle)
			return stream.Receive()
		}
		if err := takeImage(&wanted, file, start.GetSha256(), more, stream); err != nil {
			return nil, err
		}
		idle.Stop()
		wanted.Open = file.reader
		if _, err := answer.WhenLeading(ctx, s.Source, func() (model.Resource, error) { return s.Control.ImportImage(ctx, wanted) }); err != nil {
			return nil, err
		}
	}
	p := s.Present()
	image, err := p.NamedResource(model.KindImage, wanted.Name)
	if err != nil {
		return nil, err // somebody took it away again
	}
	return connect.NewResponse(&berthv1.ImportImageResponse{
		SchemaVersion: wire.SchemaVersion, Image: resourceMessage(p, image),
	}), nil
}

// broken is a stream that ended in the middle.
func broken(err error) error {
	if err == nil {
		err = errTooShort
	}
	return refusal.New(rpc.Invalid, "", "send it again: nothing of it was kept", "the file did not come as it was announced: %w", err)
}

// wantedImage judges what the first message says. Done tells that the very same file was imported before, under this name and
// into this pool: then there is nothing to do. Into another pool it comes as well.
func (s *VolumeCalls) wantedImage(ctx context.Context, start *berthv1.ImportImageStart) (wanted volumes.ImportImage, done bool, err error) {
	subject := "image/" + start.GetName()
	wrong := func(next, format string, args ...any) error {
		return refusal.New(rpc.Invalid, subject, next, format, args...)
	}
	wanted = volumes.ImportImage{
		Name: start.GetName(), Format: start.GetFormat(), Size: units.Bytes(start.GetSizeBytes()), RequestID: start.GetRequestId(),
		Caller: gate.CallerOf(ctx).String(),
	}
	switch {
	case start == nil:
		return wanted, false, wrong("see 'berth image import --help'", "the first message does not say what is imported")
	case start.GetSizeBytes() <= 0 || start.GetSizeBytes() > qcow2.MaxSize:
		return wanted, false, wrong("give the size of the file in bytes, at most 1 PiB", "a file of %d bytes is no image", start.GetSizeBytes())
	case start.GetSha256() != "" && !checksumText.MatchString(start.GetSha256()):
		return wanted, false, wrong("give 64 hexadecimal digits in lower case, or nothing", "%q is no SHA-256", start.GetSha256())
	case start.GetFormat() != qcow2.FormatQCOW2 && start.GetFormat() != qcow2.FormatRaw:
		return wanted, false, wrong("say qcow2 or raw: it is not guessed", "the format %q is not known", start.GetFormat())
	}
	if err := answer.CheckName("image", start.GetName()); err != nil {
		return wanted, false, refusal.Invalid(subject, "choose another name", err)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return wanted, false, err
	}
	pool, err := p.NamedResource(model.KindPool, start.GetPool())
	if err != nil {
		return wanted, false, err
	}
	wanted.Pool = pool.ID
	if start.GetOffer() != "" {
		offer, err := p.NamedResource(model.KindOffer, start.GetOffer())
		if err != nil {
			return wanted, false, err
		}
		wanted.Offer = offer.ID
	}
	there, err := p.NamedResource(model.KindImage, wanted.Name)
	declared := there.Volume == nil && there.Settings[schema.SettingPath] == ""
	if err != nil || declared || there.Volume != nil && there.Volume.Doomed {
		return wanted, false, nil // a doomed one is what an import left that did not come to its end
	}
	of, next := there.Volume, fmt.Sprintf("choose another name, or delete it first: 'berth image delete %s'", there.Name)
	if of == nil {
		return wanted, false, refusal.New(rpc.Exists, subject, next, "there is an image %q already, a file on the nodes", there.Name)
	}
	if start.GetSha256() != "" && (of.Checksum != start.GetSha256() || of.Format != start.GetFormat()) {
		return wanted, false, refusal.New(
			rpc.Exists, subject, next, "image %q is another file: %s, SHA-256 %s", there.Name, of.Format, of.Checksum,
		)
	}
	in := there.VolumeIn(pool.ID)
	switch {
	case in == nil, in.Doomed: // a further pool, or one that an import did not come to its end in
		return wanted, false, nil
	case start.GetSha256() != "":
		return wanted, everywhere(p, pool.ID, in), nil // the nodes of a local pool that have come since get it now
	default:
		return wanted, false, refusal.New(rpc.Exists, subject, next, "there is an image %q already", there.Name)
	}
}

// everywhere tells whether all nodes that show a pool have an image of it. In a shared pool they do.
func everywhere(p *answer.Moment, pool string, image *model.Volume) bool {
	if len(image.Nodes) == 0 {
		return true
	}
	for _, one := range p.View().Pools() {
		if one.Record.ID != pool {
			continue
		}
		for _, share := range one.Shares {
			for _, node := range share.Nodes {
				if !slices.Contains(image.Nodes, node) {
					return false
				}
			}
		}
	}
	return true
}

// takeImage takes the file in, and completes what is wanted by what the file says of itself.
func takeImage(
	wanted *volumes.ImportImage, file *spooled, checksum string, more func() bool, stream *connect.ClientStream[berthv1.ImportImageRequest],
) error {
	subject := "image/" + wanted.Name
	var begin []byte
	for more() {
		data := stream.Msg().GetData()
		if len(begin) < qcow2.HeaderLength {
			begin = append(begin, data[:min(len(data), qcow2.HeaderLength)]...)
			if len(begin) >= qcow2.HeaderLength || file.left <= units.Bytes(len(data)) {
				capacity, err := qcow2.Capacity(wanted.Format, begin, int64(wanted.Size))
				if err != nil {
					return refusal.New(rpc.Invalid, subject, qcow2.NextStep(err), "%w", err)
				}
				wanted.Capacity = units.Bytes(capacity)
			}
		}
		if _, err := file.Write(data); errors.Is(err, errTooLong) {
			return broken(err)
		} else if err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return broken(err)
	}
	sum, err := file.checksum()
	if err != nil {
		return broken(err)
	}
	if checksum != "" && checksum != sum {
		return refusal.New(rpc.Invalid, subject, "see that nothing writes to the file, and send it again: nothing of it was kept",
			"the file that came has the SHA-256 %s, not %s", sum, checksum)
	}
	wanted.Checksum = sum
	return nil
}
