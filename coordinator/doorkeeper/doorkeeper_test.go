package doorkeeper

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/hashicorp/go-hclog"

	"berth/shared/pki"
)

// caller is a connection that only tells whether it was closed.
type caller struct {
	net.Conn
	from   string
	port   uint16 // 0: 1024
	closed bool
}

func (c *caller) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), cmp.Or(c.port, 1024)))
}

func (c *caller) Close() error {
	if c.closed {
		return errors.New("closed twice")
	}
	c.closed = true
	return nil
}

type door struct {
	*testing.T
	*Keeper
}

func newDoor(t *testing.T, limits Limits) door {
	return door{t, New(limits, func(address string) bool { return address == "10.0.0.1" }, hclog.NewNullLogger())}
}

func (d door) come(from string) *caller {
	c := &caller{from: from}
	d.Watch(c, http.StateNew)
	return c
}

func (d door) want(what string, c *caller, closed bool) {
	d.Helper()
	if c.closed != closed {
		d.Errorf("%s: closed is %t", what, c.closed)
	}
}

func (d door) empty() {
	d.Helper()
	if len(d.open)+len(d.remote)+len(d.waiting)+len(d.holders)+d.strange+d.known != 0 {
		d.Errorf("left over: %d open, %d waiting, %d holders, %d strange, %d known",
			len(d.open), len(d.waiting), len(d.holders), d.strange, d.known)
	}
}

func TestTheOldestOfAnAddressGivesWay(t *testing.T) {
	d := newDoor(t, Limits{Address: 2, All: 100, Holder: 9, Known: 9})
	one, two, other := d.come("10.9.0.1"), d.come("10.9.0.1"), d.come("10.9.0.2")
	three := d.come("10.9.0.1")
	d.want("the oldest", one, true)
	for _, kept := range []*caller{two, three, other} {
		d.want("one of "+kept.from, kept, false)
	}
	d.Watch(one, http.StateClosed) // the server sees it
	d.Watch(two, http.StateClosed)
	d.Watch(two, http.StateClosed) // twice is once
	four := d.come("10.9.0.1")
	d.want("one for which a place was free", three, false)
	for _, c := range []*caller{three, four, other} {
		d.Watch(c, http.StateClosed)
	}
	d.empty()
}

// A request is no proof: without a certificate it may hold its connection as long as it likes.
func TestWhoSaysSomethingWithoutACertificateIsCountedOn(t *testing.T) {
	d := newDoor(t, Limits{Address: 2, All: 100, Holder: 9, Known: 9})
	one := d.come("10.9.0.1")
	d.Watch(one, http.StateActive)
	d.Watch(one, http.StateIdle)
	d.come("10.9.0.1")
	d.come("10.9.0.1")
	d.want("one that has sent a request", one, true)
}

// Behind a proxy all browsers have one address. Those that have shown a session are counted by it, and strangers take no place of theirs.
func TestWhoHasShownASessionIsCountedByIt(t *testing.T) {
	d := newDoor(t, Limits{Address: 2, All: 100, Holder: 3, Known: 5})
	come := func(port uint16) *caller {
		c := &caller{from: "10.9.0.1", port: port}
		d.Watch(c, http.StateNew)
		return c
	}
	show := func(port uint16, session string) *caller {
		c := come(port)
		d.Showed(c.RemoteAddr().String(), session)
		d.Showed(c.RemoteAddr().String(), session) // with each request
		return c
	}
	callers := []*caller{show(1, "s1"), show(2, "s1"), show(3, "s1"), show(4, "s2")}
	strangers := []*caller{come(5), come(6), come(7)}
	for _, c := range callers {
		d.want("one with a session", c, false)
	}
	d.want("the oldest stranger of the address", strangers[0], true)
	d.want("a younger one", strangers[1], false)
	fourth := show(8, "s1")
	d.want("a fourth of one session", fourth, true)
	fifth, sixth := show(9, "s3"), show(10, "s4")
	d.want("the last for which there is a place", fifth, false)
	d.want("one more than all may have", sixth, true)
	d.Watch(callers[0], http.StateClosed)
	again := show(1, "s1")
	d.want("one for which a place was free", again, false)
	d.Showed("10.9.0.1:99", "s1") // it has gone
	for _, c := range append(callers[1:], again, strangers[0], strangers[1], strangers[2], fourth, fifth, sixth) {
		d.Watch(c, http.StateClosed)
	}
	d.empty()
}

// A /64 is one customer's of IPv6, and all its addresses are one.
func TestManyAddressesAreNotManyPlaces(t *testing.T) {
	d := newDoor(t, Limits{Address: 2, All: 100, Holder: 9, Known: 9})
	one := d.come("2001:db8::1")
	d.come("2001:db8::2")
	d.want("one of two", one, false)
	d.come("2001:db8::3")
	d.want("one of three", one, true)
	mapped := d.come("::ffff:10.9.0.1")
	d.come("10.9.0.1")
	d.come("10.9.0.1")
	d.want("one of three by another spelling", mapped, true)
}

func TestStrangersTogetherHaveABound(t *testing.T) {
	d := newDoor(t, Limits{Address: 10, All: 20, Holder: 9, Known: 9})
	honest := d.come("10.1.0.1")
	var greedy []*caller
	for range 5 {
		greedy = append(greedy, d.come("10.9.0.1"))
	}
	for i := range 15 { // fourteen free places, and one too many
		d.want("the greedy one's oldest", greedy[0], false)
		d.come(fmt.Sprint("10.9.1.", i))
	}
	d.want("the greedy one's oldest, now", greedy[0], true)
	d.want("its newest", greedy[4], false)
	d.want("an honest one", honest, false)
	if d.strange != 20 {
		t.Errorf("%d strangers", d.strange)
	}
}

func TestMembersComeFirst(t *testing.T) {
	d := newDoor(t, Limits{Address: 2, All: 10, Holder: 9, Known: 9})
	// A node was known here before.
	node := d.come("10.1.0.1")
	d.Proved(node, pki.Identity{Role: pki.RoleAgent, ID: "n1"})
	d.Left(node)
	member, back := d.come("10.0.0.1"), d.come("10.1.0.1")
	for i := range 1000 {
		d.come(fmt.Sprint("10.9.", i/250, ".", i%250))
	}
	d.want("a member's", member, false)
	d.want("a node's that was known", back, false)
	for range 8 {
		d.want("the next one of a member", d.come("10.0.0.1"), false)
	}
	if d.strange != 10 {
		t.Errorf("%d strangers", d.strange)
	}
}

func TestACertificateHasFewConnections(t *testing.T) {
	d := newDoor(t, Limits{Address: 9, All: 9, Holder: 2, Known: 3})
	come := func(role pki.Role, id string) *caller {
		c := d.come("10.1.0.1")
		d.Proved(c, pki.Identity{Role: role, ID: id})
		d.Proved(c, pki.Identity{Role: role, ID: id}) // with each request
		return c
	}
	first, second := come(pki.RoleAgent, "n1"), come(pki.RoleAgent, "n1")
	d.want("the third of a node", come(pki.RoleAgent, "n1"), true)
	d.want("the first", first, false)
	d.want("the second", second, false)
	d.want("another node's", come(pki.RoleAgent, "n2"), false)
	d.want("one too many in all", come(pki.RoleOperator, "n3"), true)
	for range 5 {
		d.want("a member's", come(pki.RolePeer, "m1"), false)
	}
	d.Left(first)
	d.want("one in its place", come(pki.RoleAgent, "n1"), false)
	d.Left(&caller{from: "10.1.0.1"}) // that never came
	d.Proved(&caller{from: "10.1.0.1"}, pki.Identity{Role: pki.RoleAgent, ID: "n1"})
	if d.known != 3 || d.strange != 0 || len(d.waiting) != 0 {
		t.Errorf("%d known, %d strange, %d waiting", d.known, d.strange, len(d.waiting))
	}
}

func TestAddressesThatAreKnownAreBounded(t *testing.T) {
	d := newDoor(t, Agents(1<<20))
	for i := range familiarMost + 100 {
		d.remember(fmt.Sprint(i))
	}
	if len(d.familiar) != familiarMost || !d.familiar[fmt.Sprint(familiarMost+99)] {
		t.Errorf("%d are known", len(d.familiar))
	}
}

func TestFilesAreLeftForTheCoordinator(t *testing.T) {
	for _, files := range []int{64, 1024, 65536, 1 << 20} {
		people, agents := People(files), Agents(files)
		if both := people.All + people.Known + agents.All + agents.Known; both > files*3/4 {
			t.Errorf("of %d files %+v and %+v", files, people, agents)
		}
		for _, one := range []Limits{people, agents} {
			if one.All < 1 || one.Known < 1 || one.Address > one.All || one.Holder > one.Known {
				t.Errorf("of %d files %+v", files, one)
			}
		}
	}
	if agents := Agents(20_000); agents.Known < 10_000 {
		t.Errorf("with 20,000 files %d agents stay connected", agents.Known)
	}
	for _, nodes := range []int{1, 543, 544, 545, 10_000, 20_000} {
		if files := FilesFor(nodes); Agents(files).Known < nodes {
			t.Errorf("%d files for %d agents let %d in", files, nodes, Agents(files).Known)
		}
	}
	if Files() < 64 {
		t.Errorf("%d files", Files())
	}
}
