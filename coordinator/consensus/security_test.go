package consensus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/identities"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// knock dials the Raft port with a certificate and tells whether the other side keeps the connection.
func knock(t *testing.T, at string, files pki.Files) error {
	t.Helper()
	config, err := pki.ClientConfig(files, pki.RolePeer)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{alpn}
	// The other cluster's server would be refused by the client first, and this is about the server.
	config.InsecureSkipVerify, config.VerifyConnection = true, nil
	conn, err := tls.Dial("tcp", at, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return nil // it waits for what this one has to say
	}
	return err
}

// everybody admits whoever gets so far.
type everybody struct{}

func (everybody) admit(pki.Bearer) error             { return nil }
func (everybody) recognise(pki.Bearer) error         { return nil }
func (everybody) memberAt(raft.ServerAddress) string { return "" }
func (everybody) memberFrom(string) bool             { return false }

// Two clusters may have one authority by mistake, and members of one name: what a certificate says of its cluster counts.
func TestAMemberOfAnotherClusterIsForeignWhoeverSigned(t *testing.T) {
	l := &listener{clusterID: "c1", members: everybody{}}
	for cluster, want := range map[string]error{"c1": nil, "c2": ErrForeign} {
		files := newAuthority(t, cluster).files(t, pki.RolePeer, "m2")
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.check(tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}); !errors.Is(err, want) {
			t.Errorf("a member of cluster %s: %v, want %v", cluster, err, want)
		}
	}
}

func TestOnlyMembersSpeakOnTheRaftPort(t *testing.T) {
	ca := newAuthority(t, "c1")
	all := newTeam(t, ca, 2)
	all.leader()
	at := all[0].cfg.Bind
	if err := knock(t, at, all[1].cfg.TLS); err != nil {
		t.Errorf("a member was refused: %v", err)
	}
	for name, files := range map[string]pki.Files{
		"an agent":                    ca.files(t, pki.RoleAgent, "m2"),
		"an operator":                 ca.files(t, pki.RoleOperator, "m2"),
		"a peer that is no member":    ca.files(t, pki.RolePeer, "m9"),
		"a peer of another authority": newAuthority(t, "c1").files(t, pki.RolePeer, "m2"),
		"a peer of another cluster":   newAuthority(t, "c2").files(t, pki.RolePeer, "m2"),
	} {
		if err := knock(t, at, files); err == nil {
			t.Errorf("%s was let in", name)
		}
	}
	plain, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(plain); err == nil && strings.Contains(string(answer), "HTTP/1.1 200") {
		t.Errorf("answered in clear: %q", answer)
	}
}

func TestARemovedMemberIsCutOff(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	var gone *peer
	for _, p := range all {
		if p != leader {
			gone = p
		}
	}
	// A connection that stands, as a candidate's would.
	conn, err := gone.stream.Dial(raft.ServerAddress(leader.cfg.Advertise), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	held := func() (member bool) {
		leader.stream.mu.Lock()
		defer leader.stream.mu.Unlock()
		for in := range leader.stream.conns {
			member = member || in.member.ID == gone.cfg.MemberID
		}
		return member
	}
	eventually(t, "the connection is accepted", held)
	if err := leader.Remove(t.Context(), gone.cfg.MemberID); err != nil {
		t.Fatal(err)
	}
	leader.stream.sweep()
	eventually(t, "the standing connection is closed", func() bool { return !held() })
	if err := knock(t, leader.cfg.Bind, gone.cfg.TLS); err == nil {
		t.Error("a removed member was let in")
	}
}

func TestAStrangerIsNotDialledForAMember(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 2)
	leader := all.leader()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Two members at one address would be one member with two votes.
	if err := leader.AddNonvoter(ctx, "m3", all[1].cfg.Advertise); err == nil {
		t.Error("two members at one address")
	}
	// The same by another name of the address.
	_, port, err := net.SplitHostPort(all[1].cfg.Advertise)
	if err != nil {
		t.Fatal(err)
	}
	alias := raft.ServerAddress(net.JoinHostPort("127.0.0.1", port) + "")
	conn, err := all[0].stream.Dial(alias, time.Second)
	if err != nil {
		t.Fatalf("a member at its own address: %v", err)
	}
	conn.Close()
	all[0].stream.members = stranger{}
	if conn, err := all[0].stream.Dial(alias, time.Second); err == nil {
		conn.Close()
		t.Error("the member at that address is another one, and was dialled")
	}
}

// stranger expects m7 everywhere.
type stranger struct{}

func (stranger) admit(pki.Bearer) error             { return nil }
func (stranger) recognise(pki.Bearer) error         { return nil }
func (stranger) memberAt(raft.ServerAddress) string { return "m7" }
func (stranger) memberFrom(string) bool             { return false }

// besiege keeps connections to a port that say nothing, or a byte at a time, and opens each anew that is closed.
func besiege(ctx context.Context, t *testing.T, at string, most int) (opened *atomic.Int64) {
	opened = new(atomic.Int64)
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	for i := range most {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%250))}}
		work.Go(func() {
			for ctx.Err() == nil {
				conn, err := dialer.DialContext(ctx, "tcp", at)
				if err != nil {
					time.Sleep(50 * time.Millisecond)
					continue
				}
				opened.Add(1)
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				if i%2 == 0 { // the beginning of a ClientHello, and then a byte now and then
					for _, one := range []byte{22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3} {
						if _, err := conn.Write([]byte{one}); err != nil {
							break
						}
						time.Sleep(300 * time.Millisecond)
					}
				}
				_, _ = conn.Read(make([]byte, 1))
				stop()
				conn.Close()
				time.Sleep(20 * time.Millisecond) // or this machine would do nothing else
			}
		})
	}
	return opened
}

// The leader goes while each port for Raft is held by more than a thousand connections. The others still elect one, and it commits.
func TestConnectionsThatSayNothingStopNoElection(t *testing.T) {
	most := 1200
	if raceDetected { // the besiegers are slower as well, and share the processors; a port has more of them than it takes all the same
		most = handshakes.All + 44
	}
	all := newTeam(t, newAuthority(t, "c1"), 3)
	first := all.leader()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for _, p := range all {
		opened := besiege(ctx, t, p.cfg.Bind, most)
		eventually(t, "the siege of "+p.cfg.MemberID, func() bool { return opened.Load() >= int64(most) })
	}
	for _, p := range all { // whatever the members hold, they have to open anew
		p.transport.CloseStreams()
		p.stream.mu.Lock()
		for conn := range p.stream.conns {
			_ = conn.Conn.Close()
		}
		p.stream.mu.Unlock()
	}
	first.kill()
	patient, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if err := all.running().persist(patient, enrol("n1")); err != nil { // a busy machine may elect again meanwhile
		t.Fatal(err)
	}
	all.running().agree()
	open := 0
	for _, p := range all.running() {
		open += p.stream.door.Waiting()
	}
	if limit := 2*handshakes.All + len(all); open > limit { // the members' own come on top of strangers
		t.Errorf("%d handshakes at a time, more than %d", open, limit)
	}
}

func bearerOf(t *testing.T, files pki.Files) pki.Bearer {
	t.Helper()
	text, err := os.ReadFile(files.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	who, err := pki.BearerOfPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// A member that hears no leader may have missed a change of the configuration. It asks, and lets nobody in meanwhile.
func TestAMemberWithoutALeaderLetsNoStrangerIn(t *testing.T) {
	ca := newAuthority(t, "c1")
	all := newTeam(t, ca, 2)
	leader := all.leader()
	raise := state.RaiseLevel(state.IdentityLevel)
	raise.Key, raise.At = "raise", time.Now()
	leader.mustPropose(raise)
	begin, due := identities.Begin(
		leader.store.Snapshot(), []pki.Bearer{bearerOf(t, all[0].cfg.TLS), bearerOf(t, all[1].cfg.TLS)}, time.Now(),
	)
	if !due {
		t.Fatal("records do not begin")
	}
	begin.Key, begin.At = "begin", time.Now()
	leader.mustPropose(begin)
	all.agree()
	lonely := all[0]
	if lonely == leader {
		lonely = all[1]
	}
	other := leader.cfg.TLS
	leader.kill()
	eventually(t, "there is no leader", func() bool {
		id, known := lonely.Leader()
		return !known && id == ""
	})
	at := lonely.cfg.Bind
	next := ca.files(t, pki.RolePeer, "m9")
	for name, files := range map[string]pki.Files{
		"a peer that is no member": next, "a member's ID with another key": ca.files(t, pki.RolePeer, leader.cfg.MemberID),
		"its own ID with another key": ca.files(t, pki.RolePeer, lonely.cfg.MemberID),
	} {
		if err := knock(t, at, files); err == nil {
			t.Errorf("%s was let in", name)
		}
	}
	if !lonely.Missed() {
		t.Error("nobody is asked whether the stranger is a member by now")
	}
	if err := knock(t, at, other); err != nil {
		t.Errorf("a member was refused: %v", err)
	}
	lonely.Told([]string{bearerOf(t, next).Key})
	if err := knock(t, at, next); err != nil {
		t.Errorf("the leader has told of it, and it was refused: %v", err)
	}
}

// A member without any state follows only the coordinators that were there when it enrolled.
func TestAMemberThatJoinsFollowsThoseThatInvitedIt(t *testing.T) {
	ca := newAuthority(t, "c1")
	inviting, stranger := ca.files(t, pki.RolePeer, "m1"), ca.files(t, pki.RolePeer, "m9")
	late := newPeer(t, ca, "m2")
	late.cfg.Invited = []string{bearerOf(t, inviting).Key}
	late.start()
	if err := knock(t, late.cfg.Bind, inviting); err != nil {
		t.Errorf("who invited it was refused: %v", err)
	}
	if err := knock(t, late.cfg.Bind, stranger); err == nil {
		t.Error("a stranger was let in")
	}
}

// The authority may be replaced while a member runs: whom it dials, and whom it lets in, follows its file.
func TestTheRaftPortFollowsTheAuthorities(t *testing.T) {
	old, next := newAuthority(t, "c1"), newAuthority(t, "c1")
	both := append(old.CertificatePEM(), next.CertificatePEM()...)
	one, other := newPeer(t, old, "m1"), newPeer(t, next, "m2")
	var ports []*listener
	for _, p := range []*peer{one, other} {
		l, err := listen(&p.cfg, everybody{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l)
	}
	to := raft.ServerAddress(other.cfg.Bind)
	dial := func() error {
		conn, err := ports[0].Dial(to, 3*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		accepted := make(chan error, 1)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			accepted <- err
		}()
		theirs, err := ports[1].Accept()
		if err != nil {
			return err
		}
		theirs.Close()
		<-accepted
		return nil
	}
	if dial() == nil {
		t.Error("it has dialled a member whose authority is not on its list")
	}
	for _, p := range []*peer{one, other} {
		if err := os.WriteFile(p.cfg.TLS.CA, both, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dial(); err != nil {
		t.Errorf("it does not follow its list: %v", err)
	}
}

// Of a member the newest connections are kept: those before them may be of a process that has ended.
func TestTheNewestConnectionsOfAMemberAreKept(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 2)
	leader := all.leader()
	other := all[0]
	if other == leader {
		other = all[1]
	}
	var last net.Conn
	for range 3 * connections {
		conn, err := other.stream.Dial(raft.ServerAddress(leader.cfg.Advertise), patience)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		last = conn
	}
	eventually(t, "the others are closed", func() bool {
		leader.stream.mu.Lock()
		defer leader.stream.mu.Unlock()
		return len(leader.stream.conns) <= connections
	})
	if err := last.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := last.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the newest is closed: %v", err)
	}
	leader.mustPropose(enrol("n1"))
}
