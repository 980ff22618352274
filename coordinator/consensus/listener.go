package consensus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"golang.org/x/time/rate"

	"berth/coordinator/consensus/sieve"
	"berth/coordinator/doorkeeper"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	handshakeLimit = 5 * time.Second
	alpn           = "berth-raft"
)

// handshakes at a time. A member dials a few connections at once.
var handshakes = doorkeeper.Limits{Address: 16, All: 256}

// connections of one member at a time: Raft's transport has some five to each other member, and those that nobody closed go on for a
// while. The newest one takes the place of the oldest.
const connections = 16

// admission decides who may speak to this member, and who a dialled address has to be.
type admission interface {
	// admit refuses a member that may not speak to this one, and recognise one that this one must not speak to.
	admit(who pki.Bearer) error
	recognise(who pki.Bearer) error
	// memberAt is the ID of the member that Raft expects at an address; empty when it expects none.
	memberAt(address raft.ServerAddress) string
	// memberFrom tells whether connections from an address may be those of a member.
	memberFrom(address string) bool
}

// listener is the raft.StreamLayer: TLS 1.3, both sides with a certificate of role peer of this cluster. The role is
// looked at on this port alone: a certificate of an agent or an operator gets nobody into the quorum (the fault of
// CVE-2021-37218).
type listener struct {
	net.Listener
	advertise address
	server    *tls.Config
	client    func() *tls.Config // of now: the authorities may change
	clusterID string
	members   admission
	names     *rpc.Names
	logger    hclog.Logger
	limits    sieve.Limits // of what members send

	accepted chan net.Conn
	door     *doorkeeper.Keeper
	open     context.Context // until Close
	close    context.CancelFunc
	working  sync.WaitGroup // accept and handshakes
	refusals rate.Sometimes // of the log

	mu    sync.Mutex
	conns map[*inbound]struct{}
	turns map[string]chan struct{} // by member ID: one at a time of its connections has a large message on its way
	count uint64                   // of members' connections, so far
	over  bool
}

// address is what the others dial; it may be a name.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// inbound is an accepted connection of a known member.
type inbound struct {
	net.Conn
	member pki.Bearer
	from   *listener
	number uint64 // in the order in which they came
}

// Read implements net.Conn. The transport takes every other error than EOF for a fault worth logging.
func (c *inbound) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Close implements net.Conn.
func (c *inbound) Close() error {
	c.from.mu.Lock()
	delete(c.from.conns, c)
	c.from.mu.Unlock()
	return c.Conn.Close()
}

func listen(cfg *Config, members admission) (*listener, error) {
	server, err := pki.ServerConfig(cfg.TLS, tls.RequireAndVerifyClientCert)
	if err != nil {
		return nil, err
	}
	client, err := pki.Client(cfg.TLS, pki.RolePeer)
	if err != nil {
		return nil, err
	}
	plain, err := net.Listen("tcp", cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("listen for the other coordinators: %w", err)
	}
	l := &listener{
		Listener: plain, advertise: address(cfg.Advertise), server: server, client: client, clusterID: cfg.ClusterID,
		names: cmp.Or(cfg.Names, rpc.NewNames("")), members: members, logger: cfg.Logger.Named("transport"),
		accepted: make(chan net.Conn), door: doorkeeper.New(handshakes, members.memberFrom, cfg.Logger.Named("transport")),
		refusals: rate.Sometimes{First: 10, Interval: time.Second},
		conns:    make(map[*inbound]struct{}), turns: make(map[string]chan struct{}), limits: limitsOf(cfg.DataDir),
	}
	l.open, l.close = context.WithCancel(context.Background())
	l.restrict()
	l.working.Go(l.acceptAll)
	return l, nil
}

// restrict adds this port's own check to the configuration that is made for each connection.
func (l *listener) restrict() {
	build := l.server.GetConfigForClient
	l.server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config := l.server
		if build != nil {
			fresh, err := build(hello)
			if err != nil {
				return nil, err
			}
			config = fresh
		}
		config = config.Clone()
		config.GetConfigForClient = nil
		config.NextProtos = []string{alpn}
		config.VerifyConnection = func(state tls.ConnectionState) error {
			_, err := l.check(state)
			return err
		}
		return config, nil
	}
}

// check tells which member is on the other side of an accepted connection.
func (l *listener) check(state tls.ConnectionState) (member pki.Bearer, err error) {
	if len(state.PeerCertificates) == 0 {
		return member, errors.New("it sent no certificate")
	}
	identity, err := pki.BearerOf(state.PeerCertificates[0])
	switch {
	case err != nil:
		return member, err
	case identity.Role != pki.RolePeer:
		return member, fmt.Errorf("%s may not take part in Raft, only a %s may", identity, pki.RolePeer)
	case identity.ClusterID != l.clusterID:
		return member, fmt.Errorf("%w: cluster %s, this is %s", ErrForeign, identity.ClusterID, l.clusterID)
	}
	return identity, l.members.admit(identity)
}

func (l *listener) acceptAll() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			l.logger.Warn("a connection could not be accepted", "error", err)
			select { // out of files, most likely
			case <-time.After(100 * time.Millisecond):
				continue
			case <-l.open.Done():
				return
			}
		}
		l.door.Came(conn) // what is too many is closed, and its handshake fails
		l.working.Go(func() { l.handshake(conn) })
	}
}

func (l *listener) handshake(plain net.Conn) {
	ctx, cancel := context.WithTimeout(l.open, handshakeLimit)
	defer cancel()
	secure := tls.Server(plain, l.server)
	err := secure.HandshakeContext(ctx)
	l.door.Left(plain)
	if err != nil {
		plain.Close()
		l.refusals.Do(func() {
			l.logger.Warn("refused a connection to the Raft port", "from", plain.RemoteAddr().String(), "reason", err)
		})
		return
	}
	member, err := l.check(secure.ConnectionState())
	if err != nil {
		secure.Close()
		return
	}
	l.door.Knows(plain)
	conn, oldest := l.take(secure, member)
	if conn == nil {
		secure.Close()
		return
	}
	if oldest != nil {
		oldest.Close()
	}
	select {
	case l.accepted <- conn:
	case <-l.open.Done():
		conn.Close()
	}
}

// take puts a connection of a member on the list; nil: this listener is closed. The oldest is the one to be closed for it, nil if none is.
func (l *listener) take(secure net.Conn, member pki.Bearer) (conn, oldest *inbound) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, nil
	}
	turn := l.turns[member.ID]
	if turn == nil {
		turn = make(chan struct{}, 1)
		l.turns[member.ID] = turn
	}
	l.count++
	limits := l.limits
	limits.Who = member.ID
	conn = &inbound{Conn: sieve.Requests(secure, limits, turn), member: member, from: l, number: l.count}
	others := 0
	for one := range l.conns {
		if one.member.ID == member.ID {
			others++
			if oldest == nil || one.number < oldest.number {
				oldest = one
			}
		}
	}
	l.conns[conn] = struct{}{}
	if others < connections {
		return conn, nil
	}
	return conn, oldest
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.open.Done():
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener: what Raft tells the others, not what is bound.
func (l *listener) Addr() net.Addr { return l.advertise }

// Dial implements raft.StreamLayer.
func (l *listener) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	settings := l.client()
	settings.NextProtos = []string{alpn}
	conn, err := l.names.DialTLS(ctx, "tcp", string(to), settings)
	if err != nil {
		return nil, fmt.Errorf("connect to the coordinator at %s: %w", to, err)
	}
	if plain, is := conn.NetConn().(*net.TCPConn); is {
		_ = plain.SetKeepAlivePeriod(5 * time.Second)
	}
	identity, err := pki.BearerOf(conn.ConnectionState().PeerCertificates[0])
	if err == nil {
		err = l.members.recognise(identity)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	// Two addresses that lead to one member would give it two votes.
	if want := l.members.memberAt(to); want != "" && identity.ID != want {
		conn.Close()
		return nil, fmt.Errorf("the coordinator at %s is %s (%s), not %s", to, identity.ID, identity.Name, want)
	}
	return sieve.OfAnswers(conn), nil
}

// sweep closes connections of members that may no longer speak.
func (l *listener) sweep() {
	l.mu.Lock()
	conns := make([]*inbound, 0, len(l.conns))
	for conn := range l.conns {
		conns = append(conns, conn)
	}
	l.mu.Unlock()
	for _, conn := range conns {
		if err := l.members.admit(conn.member); err != nil {
			l.logger.Info("closing a connection to the Raft port", "from", conn.RemoteAddr().String(), "reason", err)
			conn.Close()
		}
	}
}

// Close implements net.Listener. It ends every accepted connection too, which Raft's transport would leave open.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return nil
	}
	l.over = true
	conns := l.conns
	l.conns = make(map[*inbound]struct{})
	l.mu.Unlock()
	l.close()
	err := l.Listener.Close()
	for conn := range conns {
		conn.Conn.Close()
	}
	l.working.Wait()
	return err
}
