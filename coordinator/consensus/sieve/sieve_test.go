package sieve

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var some = Limits{Message: 8 << 20, Text: 4 << 20, Values: 1200, Fits: func(size int64) error {
	if size > 1<<20 {
		return errors.New("there is no room for it")
	}
	return nil
}}

// streams is what Raft's transport has between it and the network, with a sieve in both directions. What comes arrives in pieces.
type streams struct {
	net.Listener
	piece int
}

func (s streams) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Requests(pieces{conn, s.piece}, some, make(chan struct{}, 1)), nil
}

func (s streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", string(to), timeout)
	if err != nil {
		return nil, err
	}
	return OfAnswers(pieces{conn, s.piece}), nil
}

// pieces gives no more than so many bytes at a time.
type pieces struct {
	net.Conn
	most int
}

func (p pieces) Read(b []byte) (int, error) { return p.Conn.Read(b[:min(p.most, len(b))]) }

func transport(t *testing.T, piece int) *raft.NetworkTransport {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: streams{listener, piece}, MaxPool: 3, Timeout: 20 * time.Second, Logger: hclog.NewNullLogger(), MsgpackUseNewTimeFormat: true,
	})
	t.Cleanup(func() {
		made.CloseStreams()
		made.Close()
	})
	return made
}

// What Raft's own transport sends arrives as it was, however the network cuts it.
func TestAllThatRaftSendsComesThrough(t *testing.T) {
	header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte("m1"), Addr: []byte("10.0.0.1:7422")}
	entries := []*raft.Log{}
	for i := range uint64(64) {
		entries = append(entries, &raft.Log{
			Index: 1<<40 + i, Term: 7, Type: raft.LogCommand, Data: bytes.Repeat([]byte{byte(i)}, int(i*i)), Extensions: []byte{1, 2},
			AppendedAt: time.Unix(1_790_000_000+int64(i), 1).UTC(),
		})
	}
	large := &raft.AppendEntriesRequest{RPCHeader: header, Term: 7, PrevLogEntry: 3, PrevLogTerm: 2, Entries: entries}
	beat := &raft.AppendEntriesRequest{RPCHeader: header, Term: 7, PrevLogEntry: 1, LeaderCommitIndex: 1 << 63}
	snapshot := &raft.InstallSnapshotRequest{RPCHeader: header, Term: 9, LastLogIndex: 1 << 33, Configuration: []byte("all"), Size: 300_000}
	content := bytes.Repeat([]byte{2, 0xdf, 0xff}, 100_000) // which looks like requests
	for _, piece := range []int{1, 7, 4096, 1 << 20} {
		if piece > 1000 {
			entries[63].Data = bytes.Repeat([]byte{63}, 2*LargeFrom)
		}
		from, to := transport(t, piece), transport(t, piece)
		at := to.LocalAddr()
		got := make(chan any, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 8 {
				rpc := <-to.Consumer()
				switch rpc.Command.(type) {
				case *raft.InstallSnapshotRequest:
					read, err := io.ReadAll(rpc.Reader)
					if err != nil || !bytes.Equal(read, content) {
						t.Errorf("the content has %d bytes, %v", len(read), err)
					}
					rpc.Respond(&raft.InstallSnapshotResponse{RPCHeader: header, Term: 9, Success: true}, nil)
				case *raft.RequestVoteRequest:
					rpc.Respond(&raft.RequestVoteResponse{RPCHeader: header, Term: 1 << 60, Granted: true}, nil)
				case *raft.RequestPreVoteRequest:
					rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: header}, errors.New(strings.Repeat("no ", 200)))
				case *raft.TimeoutNowRequest:
					rpc.Respond(&raft.TimeoutNowResponse{}, nil)
				default:
					rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: header, Term: 7, LastLog: 5, Success: true}, nil)
				}
				got <- rpc.Command
			}
		}()
		check := func(want any, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("in pieces of %d: %v", piece, err)
			}
			if came := <-got; !reflect.DeepEqual(came, want) {
				t.Errorf("in pieces of %d a %T has come otherwise", piece, came)
			}
		}
		var appended raft.AppendEntriesResponse
		check(beat, from.AppendEntries("m2", at, beat, &appended))
		check(large, from.AppendEntries("m2", at, large, &appended))
		if !appended.Success || appended.LastLog != 5 {
			t.Errorf("the answer is %+v", appended)
		}
		var vote raft.RequestVoteResponse
		asked := &raft.RequestVoteRequest{RPCHeader: header, Term: 8, LastLogIndex: 9, LeadershipTransfer: true}
		check(asked, from.RequestVote("m2", at, asked, &vote))
		pre, refusal := &raft.RequestPreVoteRequest{RPCHeader: header, Term: 8}, raft.RequestPreVoteResponse{}
		if err := from.RequestPreVote("m2", at, pre, &refusal); err == nil || !strings.HasPrefix(err.Error(), "no no") {
			t.Errorf("the error of an answer is %v", err)
		}
		check(pre, nil)
		now := &raft.TimeoutNowRequest{RPCHeader: header}
		check(now, from.TimeoutNow("m2", at, now, &raft.TimeoutNowResponse{}))
		pipeline, err := from.AppendEntriesPipeline("m2", at)
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range []*raft.AppendEntriesRequest{large, beat} {
			_, err := pipeline.AppendEntries(request, &raft.AppendEntriesResponse{})
			check(request, err)
			if answer := <-pipeline.Consumer(); answer.Error() != nil || !answer.Response().Success {
				t.Errorf("in a pipeline: %v, %+v", answer.Error(), answer.Response())
			}
		}
		pipeline.Close()
		check(snapshot, from.InstallSnapshot("m2", at, snapshot, &raft.InstallSnapshotResponse{}, bytes.NewReader(content)))
		<-ended
	}
}

func text(of string) []byte { return append([]byte{0xa0 | byte(len(of))}, of...) }

// request is one of a kind with one value under a key.
func request(of byte, key string, value ...byte) []byte {
	return append(append([]byte{of, 0x81}, text(key)...), value...)
}

func long(code byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{code}, length)
}

// hostile are bytes that no coordinator sends, by what is wrong with them.
var hostile = map[string][]byte{
	"another kind":                  {9, 0x80},
	"no map":                        {0, 0x93, 1, 2, 3},
	"nothing":                       {0, 0xc0},
	"a text of 4 GiB":               request(0, "Leader", long(0xdb, 1<<32-1)...),
	"a text of 5 MiB":               request(0, "Leader", long(0xdb, 5<<20)...),
	"bytes of 4 GiB":                request(0, "Leader", long(0xc6, 1<<32-1)...),
	"a key of 4 GiB":                append([]byte{0, 0x81}, long(0xdb, 1<<32-1)...),
	"a key of 4 GiB of a snapshot":  append([]byte{2, 0x81}, long(0xdb, 1<<32-1)...),
	"four thousand million values":  request(0, "Entries", long(0xdd, 1<<32-1)...),
	"as many keys":                  append([]byte{0}, long(0xdf, 1<<32-1)...),
	"many empty entries":            append(request(0, "Entries", 0xdc, 0x10, 0), bytes.Repeat([]byte{0x80}, 0x1000)...),
	"deep":                          append(request(0, "Entries"), bytes.Repeat([]byte{0x91}, 100)...),
	"an extension of 4 GiB":         request(0, "Leader", long(0xc9, 1<<32-1)...),
	"no type":                       request(0, "Leader", 0xc1),
	"a snapshot of no size":         request(2, "Size", 0xc0),
	"a negative snapshot":           request(2, "Size", 0xd0, 0xff),
	"a snapshot of 16 EiB":          request(2, "Size", 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	"a snapshot of a float":         request(2, "Size", 0xca, 0, 0, 0, 0),
	"a snapshot of a list":          request(2, "Size", 0x91, 1),
	"a snapshot of two sizes":       append(append([]byte{2, 0x82}, append(text("Size"), 1)...), append(text("Size"), 2)...),
	"a snapshot with bytes as key":  append([]byte{2, 0x81, 0xc4, 4}, "Size\x01"...),
	"a snapshot with a list as key": {2, 0x81, 0x91, 1, 1},
}

func TestWhatNoCoordinatorSendsIsRefused(t *testing.T) {
	for what, sent := range hostile {
		for _, piece := range []int{1, len(sent)} {
			s := scan{limits: some}
			var err error
			for at := 0; at < len(sent) && err == nil; at += piece {
				err = s.take(sent[at:min(at+piece, len(sent))])
			}
			if !errors.Is(err, ErrBound) {
				t.Errorf("%s, in pieces of %d: %v", what, piece, err)
			}
		}
	}
	s := scan{limits: some}
	if err := s.take(request(2, "Size", 0xce, 0, 0x20, 0, 0)); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a snapshot that there is no room for: %v", err)
	}
	// Each text is allowed, and together they are too many.
	s = scan{limits: some}
	err := s.take(request(0, "Entries", 0xdc, 0, 100))
	for i := 0; i < 100 && err == nil; i++ {
		err = s.take(append(long(0xdb, 1<<20), make([]byte, 1<<20)...))
	}
	if !errors.Is(err, ErrBound) || s.size > some.Message+1<<20+10 {
		t.Errorf("a message of %d bytes: %v", s.size, err)
	}
	s = scan{limits: Answers, answers: true}
	if err := s.take(long(0xdb, 1<<20)); !errors.Is(err, ErrBound) {
		t.Errorf("an answer of 1 MiB: %v", err)
	}
}

// What ends is told, and the next bytes are not looked for in it.
func TestAConnectionEndsWithWhatIsRefused(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := Requests(here, some, nil)
	go func() { _, _ = there.Write(hostile["a text of 4 GiB"]) }()
	for range 2 {
		if n, err := c.Read(make([]byte, 100)); n != 0 || !errors.Is(err, ErrBound) {
			t.Errorf("%d bytes are read: %v", n, err)
		}
	}
	if _, err := there.Write([]byte{0}); err == nil {
		t.Error("the connection is open")
	}
}

// Of one member one large message at a time is read. The next one has its turn when that was answered, or its connection has ended.
func TestLargeMessagesOfOneMemberFollowEachOther(t *testing.T) {
	turn := make(chan struct{}, 1)
	message := append(request(0, "Leader", long(0xdb, LargeFrom)...), make([]byte, LargeFrom)...)
	type end struct {
		c     *Conn
		there net.Conn
		read  chan error
	}
	begin := func() end {
		here, there := net.Pipe()
		e := end{Requests(pieces{here, 4096}, some, turn), there, make(chan error, 1)}
		go func() { _, _ = there.Write(message) }()
		go func() {
			_, err := io.ReadFull(e.c, make([]byte, len(message)))
			e.read <- err
		}()
		return e
	}
	first := begin()
	if err := <-first.read; err != nil || !first.c.holds() {
		t.Fatalf("the first: %v", err)
	}
	second, third := begin(), begin()
	for _, waits := range []end{second, third} {
		select {
		case err := <-waits.read:
			t.Errorf("another one was read meanwhile: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	third.c.Close()
	if err := <-third.read; err == nil {
		t.Error("one that was closed is read")
	}
	go func() { _, _ = io.ReadFull(first.there, make([]byte, 2)) }()
	if _, err := first.c.Write([]byte("ok")); err != nil {
		t.Fatal(err)
	}
	if err := <-second.read; err != nil || !second.c.holds() || first.c.holds() {
		t.Errorf("the second: %v", err)
	}
	second.c.Close()
	if len(turn) != 0 {
		t.Error("a connection that has ended has the turn")
	}
	for _, e := range []end{first, second, third} {
		e.c.Close()
		e.there.Close()
	}
}

// Whatever comes in whatever pieces: the same is let through, and Raft's decoder finds the same end of a message.
func FuzzTake(f *testing.F) {
	for _, sent := range hostile {
		f.Add(sent, uint8(1))
	}
	f.Add(append(request(0, "Term", 7), request(1, "Term", 7)...), uint8(3))
	f.Add(append(request(2, "Size", 3), 9, 9, 9, 0, 0x80), uint8(2))
	f.Add(request(2, "Size", 0xcf, 0x3d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), uint8(1))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint8) {
		whole, cut := scan{limits: some}, scan{limits: some}
		refused := whole.take(sent) != nil
		var err error
		for at := 0; at < len(sent) && err == nil; at += int(piece) + 1 {
			err = cut.take(sent[at:min(at+int(piece)+1, len(sent))])
		}
		if refused != (err != nil) || !refused && whole.next != cut.next {
			t.Fatalf("whole: refused %t, in pieces: %v", refused, err)
		}
		// The first message by itself.
		one, end := scan{limits: some}, 0
		for end < len(sent) {
			if one.take(sent[end:end+1]) != nil {
				return // and the connection ends; a snapshot that has no room is refused with its last byte
			}
			end++
			if !one.middle() || one.next == content {
				break
			}
		}
		if end == 0 || one.middle() && one.next != content {
			return
		}
		decoder := codec.NewDecoderBytes(sent[1:], &codec.MsgpackHandle{})
		into := []any{
			&raft.AppendEntriesRequest{}, &raft.RequestVoteRequest{}, &raft.InstallSnapshotRequest{}, &raft.TimeoutNowRequest{},
			&raft.RequestPreVoteRequest{},
		}[sent[0]]
		if decoder.Decode(into) != nil {
			return // and Raft closes the connection
		}
		if read := 1 + decoder.NumBytesRead(); read != end {
			t.Fatalf("the message ends at %d for Raft, and at %d here: %x", read, end, sent)
		}
		if snapshot, is := into.(*raft.InstallSnapshotRequest); is && snapshot.Size != one.after {
			t.Fatalf("the content has %d bytes for Raft, and %d here", snapshot.Size, one.after)
		}
	})
}
