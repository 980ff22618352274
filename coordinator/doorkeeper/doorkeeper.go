package doorkeeper

import (
	"container/list"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"berth/shared/pki"
)

// familiarMost is how many addresses are remembered from which somebody has proved who it is.
const familiarMost = 16 << 10

// Keeper counts the connections of one listener. It is safe for concurrent use.
type Keeper struct {
	limits Limits
	first  func(address string) bool
	log    hclog.Logger
	told   rate.Sometimes

	mu       sync.Mutex
	arrived  uint64
	open     map[net.Conn]*guest
	remote   map[string]*guest     // the same by the address and port of the other side
	waiting  map[string]*list.List // guests that have not proved who they are, by address, the oldest in front
	strange  int                   // of them, those of addresses that nobody is known from
	holders  map[string]int        // those that have, by certificate or session
	known    int
	familiar map[string]bool // addresses from which somebody has
}

// guest is a connection.
type guest struct {
	conn    net.Conn
	remote  string // address and port
	address string // of it, as connections are counted
	arrived uint64
	at      *list.Element // while it waits
	strange bool          // it counts among all strangers
	holder  string        // once it has proved who it is; empty for a member, which counts nowhere
}

// New makes a Keeper. First tells which addresses are those of members: they do not count among strangers.
func New(limits Limits, first func(address string) bool, log hclog.Logger) *Keeper {
	return &Keeper{
		limits: limits, first: first, log: log, told: rate.Sometimes{First: 3, Interval: 10 * time.Second},
		open: map[net.Conn]*guest{}, remote: map[string]*guest{},
		waiting: map[string]*list.List{}, holders: map[string]int{}, familiar: map[string]bool{},
	}
}

// Watch is an http.Server's ConnState.
func (k *Keeper) Watch(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		k.Came(conn)
	case http.StateClosed, http.StateHijacked:
		k.Left(conn)
	default: // the handshake is over, and a request has begun
		if secure, is := conn.(*tls.Conn); is {
			if chain := secure.ConnectionState().PeerCertificates; len(chain) > 0 {
				if who, err := pki.IdentityOf(chain[0]); err == nil {
					k.Proved(conn, who)
				}
			}
		}
	}
}

// Came counts a new connection, and closes the oldest of those that are too many with it.
func (k *Keeper) Came(conn net.Conn) {
	address := source(conn)
	member := k.first(address)
	k.mu.Lock()
	k.arrived++
	g := &guest{conn: conn, address: address, arrived: k.arrived, strange: !member && !k.familiar[address]}
	g.remote = conn.RemoteAddr().String()
	k.open[conn], k.remote[g.remote] = g, g
	line := k.waiting[address]
	if line == nil {
		line = list.New()
		k.waiting[address] = line
	}
	g.at = line.PushBack(g)
	if g.strange {
		k.strange++
	}
	most := k.limits.Address
	if member {
		most = max(most, k.limits.All)
	}
	var out *guest
	switch {
	case line.Len() > most:
		out = line.Front().Value.(*guest)
	case k.strange > k.limits.All:
		out = k.greedy()
	}
	if out != nil {
		k.forget(out)
	}
	k.mu.Unlock()
	if out != nil {
		k.turnOut(out, "connections that have not said who they are")
	}
}

// greedy is the oldest connection of the strange address that has most of them.
func (k *Keeper) greedy() (out *guest) {
	most := 0
	for _, line := range k.waiting {
		oldest := line.Front().Value.(*guest)
		if !oldest.strange || line.Len() < most || line.Len() == most && out != nil && oldest.arrived > out.arrived {
			continue
		}
		out, most = oldest, line.Len()
	}
	return out
}

// Proved takes a connection from among those that wait: its TLS handshake is over, and this is who is on the other side. One that is too
// many for its certificate is closed.
func (k *Keeper) Proved(conn net.Conn, who pki.Identity) {
	k.mu.Lock()
	g := k.open[conn]
	if g == nil || g.at == nil {
		k.mu.Unlock()
		return
	}
	k.unlist(g)
	k.remember(g.address)
	if who.Role == pki.RolePeer {
		k.mu.Unlock()
		return
	}
	most := k.limits.Holder
	if who.Role == pki.RoleAgent {
		most = min(most, MostOfAgent)
	}
	over := k.hold(g, string(who.Role)+"/"+who.ID, most)
	k.mu.Unlock()
	if over {
		k.turnOut(g, "connections of "+g.holder)
	}
}

// hold counts a connection as one of a holder. It tells whether that is one too many, and then forgets the connection.
func (k *Keeper) hold(g *guest, holder string, most int) (over bool) {
	g.holder = holder
	k.holders[holder]++
	k.known++
	over = k.holders[holder] > most || k.known > k.limits.Known
	if over {
		k.forget(g)
	}
	return over
}

// Showed is Proved of who shows a session and no certificate, over the connection from an address and port. The address becomes no more
// familiar by that: a proxy has strangers behind it, too.
func (k *Keeper) Showed(remote, session string) {
	k.mu.Lock()
	g := k.remote[remote]
	if g == nil || g.at == nil {
		k.mu.Unlock()
		return
	}
	k.unlist(g)
	over := k.hold(g, "session/"+session, k.limits.Holder)
	k.mu.Unlock()
	if over {
		k.turnOut(g, "connections of "+g.holder)
	}
}

// Left counts a connection no more.
func (k *Keeper) Left(conn net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if g := k.open[conn]; g != nil {
		k.forget(g)
	}
}

// Waiting is how many connections have not proved who they are.
func (k *Keeper) Waiting() (all int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, line := range k.waiting {
		all += line.Len()
	}
	return all
}

// Knows remembers the address of a connection: somebody there has proved who it is.
func (k *Keeper) Knows(conn net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remember(source(conn))
}

func (k *Keeper) forget(g *guest) {
	delete(k.open, g.conn)
	if k.remote[g.remote] == g {
		delete(k.remote, g.remote)
	}
	if g.at != nil {
		k.unlist(g)
	}
	if g.holder != "" {
		k.known--
		if k.holders[g.holder]--; k.holders[g.holder] == 0 {
			delete(k.holders, g.holder)
		}
	}
}

func (k *Keeper) unlist(g *guest) {
	line := k.waiting[g.address]
	line.Remove(g.at)
	g.at = nil
	if line.Len() == 0 {
		delete(k.waiting, g.address)
	}
	if g.strange {
		k.strange--
	}
}

// remember makes an address familiar. Where there are too many, some other one is forgotten.
func (k *Keeper) remember(address string) {
	if len(k.familiar) >= familiarMost && !k.familiar[address] {
		for other := range maps.Keys(k.familiar) {
			delete(k.familiar, other)
			break
		}
	}
	k.familiar[address] = true
}

// turnOut closes a connection without a word: whoever does not listen would have to be waited for.
func (k *Keeper) turnOut(g *guest, what string) {
	k.told.Do(func() {
		k.log.Warn("too many "+what+": one of them is closed", "address", g.address)
	})
	conn := g.conn
	if secure, is := conn.(*tls.Conn); is {
		conn = secure.NetConn()
	}
	_ = conn.Close() // whoever serves it sees that
}

// source is where a connection comes from. Who has an address of IPv6 has all that begin alike.
func source(conn net.Conn) string {
	text := conn.RemoteAddr().String()
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return text
	}
	return Source(at.Addr())
}

// Source is an address as connections are counted by it.
func Source(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if prefix, err := address.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return address.String()
}
