package sieve

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
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
	limits := some
	limits.Who = "m1"
	return Requests(pieces{conn, s.piece}, limits, make(chan struct{}, 1)), nil
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
	"an extension of nothing":       request(0, "Leaner", 0xc7, 0, 0, 8),
	"one of a byte":                 request(0, "Leader", 0xd4, 0xff, 1),
	"one of 16 bytes":               append(request(0, "Leader", 0xd8, 0xff), make([]byte, 16)...),
	"a time that is none":           request(0, "Leader", 0xd6, 1, 0, 0, 0, 0),
	"a time of 11 bytes":            append(request(0, "Leader", 0xc7, 11, 0xff), make([]byte, 11)...),
	"no type":                       request(0, "Leader", 0xc1),
	"a snapshot of no size":         request(2, "Size", 0xc0),
	"a negative snapshot":           request(2, "Size", 0xd0, 0xff),
	"a snapshot of 16 EiB":          request(2, "Size", 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	"a snapshot of a float":         request(2, "Size", 0xca, 0, 0, 0, 0),
	"a snapshot of a list":          request(2, "Size", 0x91, 1),
	"a snapshot of two sizes":       append(append([]byte{2, 0x82}, append(text("Size"), 1)...), append(text("Size"), 2)...),
	"a snapshot with bytes as key":  append([]byte{2, 0x81, 0xc4, 4}, "Size\x01"...),
	"a snapshot with a list as key": {2, 0x81, 0x91, 1, 1},
	"a vote with bytes as key":      append([]byte{1, 0x81, 0xc4, 4}, "Term\x01"...),
}

// another are requests that m1 sends in another's name, or in a way in which that cannot be told.
var another = map[string][]byte{
	"another ID":             request(1, "ID", text("m2")...),
	"a longer one":           request(0, "ID", text("m11")...),
	"its own and another":    append(append([]byte{1, 0x82}, append(text("ID"), text("m1")...)...), append(text("ID"), text("m2")...)...),
	"bytes":                  request(3, "ID", 0xc4, 2, 'm', '2'),
	"no text":                request(4, "ID", 0xc0),
	"a list of numbers":      request(1, "ID", 0x92, 'm', '2'),
	"an empty one":           request(2, "ID", 0xa0),
	"a number of two bytes":  request(1, "ID", 0xd1, 'm', '1'),
	"an ID behind a list":    append([]byte{0, 0x82}, append(append(text("Entries"), 0x91, 0x80), append(text("ID"), text("m2")...)...)...),
	"an ID of two gigabytes": request(1, "ID", long(0xdb, 1<<31)...),
}

// A member says who it is with each request, and is what its certificate says.
func TestNobodySendsInAnothersName(t *testing.T) {
	limits := some
	limits.Who = "m1"
	for what, sent := range another {
		for _, piece := range []int{1, len(sent)} {
			s := scan{limits: limits}
			var err error
			for at := 0; at < len(sent) && err == nil; at += piece {
				err = s.take(sent[at:min(at+piece, len(sent))])
			}
			if !errors.Is(err, ErrBound) {
				t.Errorf("%s, in pieces of %d: %v", what, piece, err)
			}
		}
	}
	inside := append(append([]byte{0, 0x82}, append(text("ID"), text("m1")...)...), append(text("Entries"), 0x91, 0x81)...)
	inside = append(inside, append(text("ID"), text("m2")...)...) // which is no field of an entry, and of no header
	for what, sent := range map[string][]byte{
		"its own": request(1, "ID", text("m1")...), "its own as bytes": request(0, "ID", 0xc4, 2, 'm', '1'), "inside of an entry": inside,
		"two requests": append(request(1, "ID", text("m1")...), request(4, "ID", text("m1")...)...),
	} {
		s := scan{limits: limits}
		if err := s.take(sent); err != nil || s.middle() {
			t.Errorf("%s: %v, in the middle of it: %t", what, err, s.middle())
		}
	}
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
	for _, sent := range another {
		f.Add(sent, uint8(1))
	}
	f.Add(append(request(0, "Term", 7), request(1, "ID", text("m1")...)...), uint8(3))
	f.Add(append(request(2, "Size", 3), 9, 9, 9, 0, 0x80), uint8(2))
	f.Add(append(request(0, "Leader", 0xc7, 12, 0xff), make([]byte, 13)...), uint8(5))
	f.Add(request(0, "Leaner", 0xd7, 0xff, 1, 2, 3, 4, 5, 6, 7, 8), uint8(5))
	f.Add(request(2, "Size", 0xcf, 0x3d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), uint8(1))
	f.Fuzz(agrees)
}

// agrees fails if what is let through depends on the pieces in which it comes, or if Raft's decoder finds another end of the first message,
// another size of what follows, or another sender.
func agrees(t *testing.T, sent []byte, piece uint8) {
	limits := some
	limits.Who = "m1"
	whole, cut := scan{limits: limits}, scan{limits: limits}
	refused := whole.take(sent) != nil
	var err error
	for at := 0; at < len(sent) && err == nil; at += int(piece) + 1 {
		err = cut.take(sent[at:min(at+int(piece)+1, len(sent))])
	}
	if refused != (err != nil) || !refused && whole.next != cut.next {
		t.Fatalf("whole: refused %t, in pieces: %v", refused, err)
	}
	// The first message by itself.
	one, end := scan{limits: limits}, 0
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
	if who := string(into.(raft.WithRPCHeader).GetRPCHeader().ID); who != "" && who != "m1" {
		t.Fatalf("for Raft it is from %q: %x", who, sent)
	}
}

// fields are those of requests and entries, and some that there are not.
var fields = []string{
	"ProtocolVersion", "ID", "Addr", "Term", "Leader", "PrevLogEntry", "PrevLogTerm", "Entries", "LeaderCommitIndex", "Candidate",
	"LastLogIndex", "LastLogTerm",
	"LeadershipTransfer", "SnapshotVersion", "Peers", "Configuration", "ConfigurationIndex", "Size", "Index", "Type", "Data",
	"Extensions", "AppendedAt", "RPCHeader", "id", "Leaner", "",
}

// value draws a value with every kind of head, most of them such as there are.
func value(from *rand.Rand, depth int) []byte {
	some := func(head ...byte) []byte {
		for range from.IntN(3) {
			head = append(head, byte(from.Uint32()))
		}
		return head
	}
	switch from.IntN(9) {
	case 0:
		return text("m1")
	case 1:
		return some(byte(from.Uint32()))
	case 2:
		n := from.IntN(20)
		return append([]byte{[]byte{0xc4, 0xd9}[from.IntN(2)], byte(n)}, make([]byte, n)...)
	case 3: // numbers and short extensions
		first := 0xca + from.IntN(15)
		return append([]byte{byte(first)}, make([]byte, []int{4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17}[first-0xca])...)
	case 4:
		n := from.IntN(14)
		return append([]byte{0xc7, byte(n), byte(-from.IntN(2))}, make([]byte, n)...)
	case 5, 6:
		if depth == 0 {
			return some(byte(from.IntN(0x80)))
		}
		n := from.IntN(4)
		made := []byte{0x90 | byte(n)}
		for range n {
			made = append(made, value(from, depth-1)...)
		}
		return made
	case 7:
		if depth == 0 {
			return []byte{0xc0}
		}
		return document(from, depth-1)
	}
	return []byte{byte(from.IntN(0x80))}
}

// document draws a map.
func document(from *rand.Rand, depth int) []byte {
	n := from.IntN(5)
	made := []byte{0x80 | byte(n)}
	for range n {
		made = append(append(made, text(fields[from.IntN(len(fields))])...), value(from, depth)...)
	}
	return made
}

// Requests that are drawn field by field come further than bytes that are drawn.
func TestRandomRequestsEndWhereRaftEndsThem(t *testing.T) {
	through := 0
	for seed := range uint64(20_000) {
		from := rand.New(rand.NewPCG(seed, 15))
		sent := append([]byte{byte(from.IntN(kinds))}, document(from, 3)...)
		if s := (scan{limits: some}); s.take(sent) == nil {
			through++
		}
		sent = append(sent, byte(from.IntN(kinds)), 0x80)
		agrees(t, sent, uint8(from.IntN(9)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if through < 4_000 {
		t.Errorf("only %d of them are let through", through)
	}
}
