package console

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"sync"
	"time"
)

// event is a server-sent event as it goes over the wire, plain and packed. It is packed once, for all who follow.
type event struct{ plain, packed []byte }

var packers = sync.Pool{New: func() any {
	packer, _ := flate.NewWriter(nil, flate.DefaultCompression) // only an unknown level is an error
	return packer
}}

// pack makes an event of its text. What is packed refers to nothing before it and ends with a whole byte, so such pieces can follow each
// other in one stream, whoever has got which.
func pack(plain []byte) event {
	packer := packers.Get().(*flate.Writer)
	defer packers.Put(packer)
	var packed bytes.Buffer
	packer.Reset(&packed)
	_, _ = packer.Write(plain) // a buffer takes everything
	_ = packer.Flush()
	return event{plain, packed.Bytes()}
}

// A stream of gzip begins with a header that says nothing, and ends with an empty last block, a checksum and its length.
var (
	packedBegin = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	packedEnd   = []byte{0x03, 0x00}
)

// pipe is the stream of events to one browser. A page has no secret that somebody else's text could be matched with, so it may be packed.
type pipe struct {
	w       http.ResponseWriter
	control *http.ResponseController
	packed  bool
	sum     uint32
	size    uint32
}

// newPipe begins a stream, packed if the browser takes that.
func newPipe(w http.ResponseWriter, r *http.Request) *pipe {
	p := &pipe{w: w, control: http.NewResponseController(w), packed: unpacks(r)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Vary", "Accept-Encoding")
	if p.packed {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packedBegin) // the first event tells whether anybody is there
	}
	return p
}

// send sends events. False: the browser is gone, or takes too long.
func (p *pipe) send(events ...event) bool {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeLimit)) // a server without deadlines waits
	for _, one := range events {
		text := one.plain
		if p.packed {
			p.sum, p.size = crc32.Update(p.sum, crc32.IEEETable, one.plain), p.size+uint32(len(one.plain)) //nolint:gosec // modulo, as gzip has it
			text = one.packed
		}
		if _, err := p.w.Write(text); err != nil {
			return false
		}
	}
	err := p.control.Flush()
	_ = p.control.SetWriteDeadline(time.Time{})
	return err == nil
}

// end ends the stream, so that who unpacks it knows that nothing is missing.
func (p *pipe) end() {
	if p.packed {
		end := binary.LittleEndian.AppendUint32(bytes.Clone(packedEnd), p.sum)
		_, _ = p.w.Write(binary.LittleEndian.AppendUint32(end, p.size)) // a browser that has gone needs no end
	}
}
