package adversary

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
)

// member is a coordinator that was let in, is in the Raft configuration, and does what it likes.
type member struct {
	*coordinator
	files   pki.Files
	address string // where the leader dials it
}

func (c *coordinator) betray() *member {
	c.Helper()
	_, files := c.enrol("coordinator", "coord2")
	m := &member{coordinator: c, files: files, address: c.enrolled}
	client := berthv1connect.NewMemberServiceClient(c.client(files), "https://"+c.config.Listen.API)
	_, err := client.Join(c.Context(), connect.NewRequest(&berthv1.JoinRequest{
		FeatureLevel: state.FeatureLevel, ApiAddress: m.address, AgentAddress: m.address, RaftAddress: m.address,
	}))
	c.check(err)
	c.eventually("it may speak", func() bool { return c.knock(files) == nil })
	return m
}

// dial opens a connection on the leader's port for Raft.
func (m *member) dial() *tls.Conn {
	m.Helper()
	settings, err := pki.ClientConfig(m.files, pki.RolePeer)
	m.check(err)
	settings.NextProtos = []string{"berth-raft"}
	conn, err := tls.Dial("tcp", m.config.Listen.Raft, settings)
	m.check(err)
	m.Cleanup(func() { conn.Close() })
	return conn
}

// isClosed tells whether the other side ends a connection within a time in which it would have answered.
func isClosed(conn net.Conn, within time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	return err != nil && (!errors.As(err, &timeout) || !timeout.Timeout())
}

func long(code byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{code}, length)
}

// appends is a request to append with one value under a key.
func appends(key string, value ...byte) []byte {
	return append(append([]byte{0, 0x81, 0xa0 | byte(len(key))}, key...), value...)
}

// allocated is how much this process, in which the coordinator runs, has taken so far, given back or not, in bytes.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// A member can send what makes Raft's own decoder take gigabytes, and endless messages. It takes no memory, and the leader leads on.
func TestAHostileMemberTakesNoMemory(t *testing.T) {
	c := coordinate(t)
	m := c.betray()
	for what, sent := range map[string][]byte{
		"a key of 3 GiB":         append([]byte{0, 0x81}, long(0xdb, 3<<30)...),
		"a text of 3 GiB":        appends("Leader", long(0xdb, 3<<30)...),
		"3 thousand million":     appends("Entries", long(0xdd, 3<<30)...),
		"a million empty ones":   append(appends("Entries", long(0xdd, 1<<20)...), bytes.Repeat([]byte{0x80}, 1<<20)...),
		"a snapshot of 8 EiB":    append([]byte("\x02\x81\xa4Size\xcf\x7f"), bytes.Repeat([]byte{0xff}, 7)...),
		"a kind that is not one": {77},
	} {
		before := allocated()
		conn := m.dial()
		_, _ = conn.Write(sent) // the other side may have closed by then
		if !isClosed(conn, 10*time.Second) {
			t.Errorf("%s: the connection is open", what)
		}
		if took := allocated() - before; took > 256<<20 {
			t.Errorf("%s took %d MiB", what, took>>20)
		}
	}
	// Endless ones, each part of which may be sent.
	conn, before := m.dial(), allocated()
	entry := append(append([]byte{0x81, 0xa4}, "Data"...), append(long(0xdb, state.MaxCommand), make([]byte, state.MaxCommand)...)...)
	_, err := conn.Write(appends("Entries", long(0xdd, 1000)...))
	sent := 0
	for ; err == nil && sent < 1000; sent++ {
		_, err = conn.Write(entry)
	}
	if sent > 70 {
		t.Errorf("%d entries of 4 MiB were read", sent)
	}
	t.Logf("%d entries of 4 MiB were read, which took %d MiB", sent, (allocated()-before)>>20)
	m.leads()
}

// A member has some connections, and each further one ends another.
func TestAHostileMemberHasFewConnections(t *testing.T) {
	c := coordinate(t)
	m := c.betray()
	var all []*tls.Conn
	for range 60 {
		all = append(all, m.dial())
	}
	c.eventually("all but a few are closed", func() bool {
		open := 0
		for _, conn := range all {
			if !isClosed(conn, time.Millisecond) {
				open++
			}
		}
		return open > 0 && open <= 16
	})
	m.leads()
}

// Whom the leader dials may answer with what has no end.
func TestAHostileMemberAnswersInVain(t *testing.T) {
	c := coordinate(t)
	m := c.betray()
	settings, err := pki.ServerConfig(m.files, tls.RequireAnyClientCert)
	c.check(err)
	settings.NextProtos = []string{"berth-raft"}
	build := settings.GetConfigForClient
	settings.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if build == nil {
			return nil, nil
		}
		fresh, err := build(hello)
		if err != nil {
			return nil, err
		}
		fresh = fresh.Clone()
		fresh.NextProtos = []string{"berth-raft"}
		return fresh, nil
	}
	listener, err := tls.Listen("tcp", m.address, settings)
	c.check(err)
	t.Cleanup(func() { listener.Close() })
	took := make(chan int, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					return
				}
				sent, err := conn.Write(long(0xdb, 3<<30))
				for part := make([]byte, 64<<10); err == nil && sent < 1<<30; sent += len(part) {
					_, err = conn.Write(part)
				}
				took <- sent
			}()
		}
	}()
	select {
	case sent := <-took: // what is on its way in the buffers of both sides counts
		if sent > 64<<20 {
			t.Errorf("%d MiB of an answer are taken", sent>>20)
		}
	case <-time.After(30 * time.Second):
		t.Error("the leader asks nothing, or reads on")
	}
	m.leads()
}

// leads fails unless the coordinator commits something.
func (m *member) leads() {
	m.Helper()
	_, err := m.api(m.admin).CreateToken(m.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: "agent", Name: "hv1"}))
	m.check(err)
}

// raft asks the coordinator something with Raft's own encoding, and gives the text of the error that it is answered. What ends the
// connection instead is an error as well. Without one the answer is read; nil: it is not looked at.
func (m *member) raft(kind byte, request, answer any) string {
	m.Helper()
	conn := m.dial()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	var message bytes.Buffer
	message.WriteByte(kind)
	m.check(codec.NewEncoder(&message, &codec.MsgpackHandle{}).Encode(request))
	_, err := conn.Write(message.Bytes())
	m.check(err)
	decoder, refusal := codec.NewDecoder(conn, &codec.MsgpackHandle{}), ""
	if err := decoder.Decode(&refusal); err != nil {
		return "closed: " + err.Error()
	}
	if refusal == "" && answer != nil {
		m.check(decoder.Decode(answer))
	}
	return refusal
}

// A member says that it leads, that there is the last of all terms, that the leader is to be followed by it, and that it is the leader
// itself. None of that is believed, and the leader leads on in its term.
func TestAHostileMemberIsNotBelieved(t *testing.T) {
	c := coordinate(t)
	m := c.betray()
	text, err := os.ReadFile(m.files.Certificate)
	c.check(err)
	who, err := pki.BearerOfPEM(text)
	c.check(err)
	as := func(id string) raft.RPCHeader {
		return raft.RPCHeader{ProtocolVersion: 3, ID: []byte(id), Addr: []byte(m.address)}
	}
	term := func() uint64 {
		var vote raft.RequestVoteResponse
		refusal := m.raft(1, &raft.RequestVoteRequest{RPCHeader: as(who.ID)}, &vote)
		if refusal != "" || vote.Granted {
			c.Fatalf("a vote in no term: %q, granted %t", refusal, vote.Granted)
		}
		return vote.Term
	}
	now := term()
	for what, one := range map[string]struct {
		kind    byte
		request any
		want    string
	}{
		"leads this term":     {0, &raft.AppendEntriesRequest{RPCHeader: as(who.ID), Term: now}, "which this one leads"},
		"leads the last term": {0, &raft.AppendEntriesRequest{RPCHeader: as(who.ID), Term: math.MaxUint64}, "claims term"},
		"is the leader":       {0, &raft.AppendEntriesRequest{RPCHeader: as(c.id), Term: now + 1}, "closed"},
		"follows the leader": {
			1, &raft.RequestVoteRequest{RPCHeader: as(who.ID), Term: now + 1, LeadershipTransfer: true}, "has not asked it to",
		},
		"calls an election": {3, &raft.TimeoutNowRequest{RPCHeader: as(who.ID)}, "does not lead"},
		"is nobody":         {0, &raft.AppendEntriesRequest{Term: now + 1}, "closed"},
	} {
		if answer := m.raft(one.kind, one.request, nil); !strings.Contains(answer, one.want) {
			t.Errorf("it %s, and is answered %q", what, answer)
		}
	}
	if is := term(); is != now {
		t.Errorf("the term was %d and is %d", now, is)
	}
	m.leads()
}
