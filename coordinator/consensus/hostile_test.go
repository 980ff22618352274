package consensus

import (
	"bytes"
	"crypto/tls"
	"math"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/consensus/claims"
	"berth/shared/pki"
)

// impostor speaks Raft with a member's certificate, and says what it likes.
type impostor struct {
	net.Listener
	t     *testing.T
	files pki.Files
	as    raft.RPCHeader
	over  *raft.NetworkTransport
}

// Dial implements raft.StreamLayer.
func (i *impostor) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	config, err := pki.ClientConfig(i.files, pki.RolePeer)
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{alpn}
	return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", string(to), config)
}

// betray ends a member and gives what has its certificate.
func betray(t *testing.T, p *peer) *impostor {
	t.Helper()
	p.kill()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{
		Listener: listener, t: t, files: p.cfg.TLS,
		as: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(p.cfg.MemberID), Addr: []byte(p.cfg.Advertise)},
	}
	i.over = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: i, MaxPool: 1, Timeout: patience, Logger: hclog.NewNullLogger(), MsgpackUseNewTimeFormat: true,
	})
	t.Cleanup(func() {
		i.over.CloseStreams()
		i.over.Close()
	})
	return i
}

func (i *impostor) appends(to raft.ServerAddress, as raft.RPCHeader, term uint64) error {
	request := &raft.AppendEntriesRequest{RPCHeader: as, Term: term}
	return i.over.AppendEntries("", to, request, &raft.AppendEntriesResponse{})
}

func (i *impostor) asksForVote(to raft.ServerAddress, as raft.RPCHeader, term uint64) error {
	request := &raft.RequestVoteRequest{
		RPCHeader: as, Term: term, LastLogIndex: math.MaxUint64, LastLogTerm: 0, LeadershipTransfer: true,
	}
	return i.over.RequestVote("", to, request, &raft.RequestVoteResponse{})
}

// A member that was taken over neither unseats the leader by what it claims, nor leads the others' terms to where no election is possible.
func TestAHostileMemberUnseatsNobody(t *testing.T) {
	all := newTunedTeam(t, newAuthority(t, "c1"), 3, calm)
	leader := all.leader()
	var rest team
	for _, p := range all {
		if p != leader {
			rest = append(rest, p)
		}
	}
	other, foe := rest[0], betray(t, rest[1])
	all.running().agree()
	term, sitting := leader.Term(), raft.ServerAddress(leader.cfg.Advertise)
	posing, lodging := foe.as, foe.as
	posing.ID = []byte(leader.cfg.MemberID)
	lodging.Addr = []byte(sitting)
	for name, p := range map[string]*peer{"the leader": leader, "a follower": other} {
		at := raft.ServerAddress(p.cfg.Advertise)
		for what, say := range map[string]func() error{
			"that it leads this term": func() error { return foe.appends(at, foe.as, term) },
			"that it leads the last":  func() error { return foe.appends(at, foe.as, math.MaxUint64) },
			"that it is the leader":   func() error { return foe.appends(at, posing, term) },
			"that it has a snapshot of this term": func() error {
				request := &raft.InstallSnapshotRequest{
					RPCHeader: foe.as, SnapshotVersion: 1, Term: term, LastLogIndex: 1 << 40, LastLogTerm: term, Size: 4,
					Configuration: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{
						ID: raft.ServerID(foe.as.ID), Address: raft.ServerAddress(foe.as.Addr),
					}}}),
				}
				return foe.over.InstallSnapshot("", at, request, &raft.InstallSnapshotResponse{}, bytes.NewReader([]byte("mine")))
			},
			"that it runs for the last term":      func() error { return foe.asksForVote(at, foe.as, math.MaxUint64) },
			"that it lives where the leader does": func() error { return foe.asksForVote(at, lodging, term+1) },
			"that the other one is to run for once": func() error {
				return foe.over.TimeoutNow("", at, &raft.TimeoutNowRequest{RPCHeader: foe.as}, &raft.TimeoutNowResponse{})
			},
		} {
			if say() == nil {
				t.Errorf("%s believes %s", name, what)
			}
		}
	}
	if foe.asksForVote(sitting, foe.as, term+1) == nil {
		t.Error("the leader believes that it hands over")
	}
	if leader.Term() != term || !leader.IsLeader() || other.Term() != term {
		t.Errorf("the leader is in term %d and leads: %t, the other is in term %d; it was %d",
			leader.Term(), leader.IsLeader(), other.Term(), term)
	}
	leader.mustPropose(enrol("n1"))

	// What a leader that hands over may make a follower do, it does so often, and then seldom.
	brought := 0
	for foe.asksForVote(raft.ServerAddress(other.cfg.Advertise), foe.as, other.Term()+1) == nil {
		if brought++; brought > 2*claims.Turns {
			t.Fatalf("it brings any number of terms")
		}
	}
	all.running().leader().mustPropose(enrol("n2"))
	all.running().agree()
}
