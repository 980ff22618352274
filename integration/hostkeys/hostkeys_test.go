package hostkeys

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"berth/agent/hostpki"
	"berth/coordinator/authorities"
	"berth/coordinator/identities"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/shared/pki"
)

// site is a coordinator and some hosts that its certificates are for.
type site struct {
	*statetest.Site
	at     time.Time
	ring   *keyring.Ring
	member pki.Bearer
	hosts  []*host
	met    map[string]int // which kinds of pairs have connected
}

// host has its files, and a libvirt that may not take them up.
type host struct {
	*hostpki.Host
	who    pki.Bearer
	broken error // why libvirt does not take up what was written
}

func (h *host) name() string { return h.who.Name }

func newSite(t *testing.T, hosts int) *site {
	t.Helper()
	s := &site{Site: statetest.New(t), at: statetest.Noon, met: map[string]int{}}
	all, err := pki.NewHypervisors("c1", s.at)
	s.check(err)
	s.ring = keyring.New(all)
	s.Apply(state.RaiseLevel(state.IdentityLevel))
	s.member = bearer(pki.RolePeer, "m1")
	founders := []pki.Bearer{s.member}
	for i := 1; i <= hosts; i++ {
		id := fmt.Sprint("n", i)
		if i > 1 {
			s.Apply(state.Command{
				Expect: []state.Expectation{{Table: state.Nodes, ID: id}},
				Nodes:  []model.Node{{ID: id, Name: id, Cluster: model.DefaultCluster}},
			})
		}
		h := &host{
			Host: &hostpki.Host{Root: t.TempDir(), Daemon: "libvirtd", Group: os.Getgid(), Now: func() time.Time { return s.at }},
			who:  bearer(pki.RoleAgent, id),
		}
		s.hosts = append(s.hosts, h)
		founders = append(founders, h.who)
	}
	command, due := identities.Begin(s.Snapshot(), founders, s.at)
	if !due {
		t.Fatal("records do not begin")
	}
	s.Apply(command)
	for _, h := range s.hosts {
		material, err := hostpki.Issue(h.name(), nil, s.ask(h))
		s.check(err)
		_, err = h.Install(material, false)
		s.check(err)
		s.renew(h)
	}
	s.allMove("at the beginning")
	return s
}

func bearer(role pki.Role, id string) pki.Bearer {
	return pki.Bearer{
		Identity: pki.Identity{Role: role, ID: id, Name: id, ClusterID: "c1"}, Key: "key-" + id,
		Until: statetest.Noon.AddDate(1, 0, 0), Authority: "0a",
	}
}

func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// ask answers a host as the leader does.
func (s *site) ask(h *host) hostpki.Ask {
	return func(question hostpki.Question) (m hostpki.Material, err error) {
		says := map[string]authorities.Use{}
		for purpose, use := range question.Uses {
			says[authorities.Called(purpose)] = authorities.Use(use)
		}
		if command, due := authorities.Follow(s.Snapshot(), h.who, says, s.at); due {
			s.Apply(command)
		}
		lists := authorities.OfHypervisors(s.Snapshot())
		for purpose, pair := range map[pki.Purpose]*hostpki.Pair{pki.Control: &m.Control, pki.Data: &m.Data} {
			signer, trusted, known := s.ring.Signer(purpose, lists.For(purpose))
			if !known {
				return m, errors.New("the leader has no key")
			}
			pair.CA = trusted
			if request := question.Requests[purpose]; request != nil {
				if pair.Certificate, err = signer.Sign(request, h.name(), []string{h.name()}, s.at); err != nil {
					return m, err
				}
			}
		}
		for _, one := range s.hosts {
			m.Names = append(m.Names, one.name())
		}
		return m, nil
	}
}

// works is a host on which every program does what it is told.
func works(context.Context, string, ...string) (string, error) { return "", nil }

// renew is what a host does every two minutes.
func (s *site) renew(h *host) {
	s.Helper()
	err := hostpki.Renewal{
		Host: h.Host, Name: h.name(), Ask: s.ask(h), Say: s.Logf,
		TakeUp: func(restart bool) (bool, error) {
			if h.broken != nil {
				return false, h.broken
			}
			todo, err := (&hostpki.Service{Run: works}).TakeUp(s.Context(), h.Host, restart)
			return todo != "" && !restart, err
		},
	}.Once()
	if !errors.Is(err, h.broken) {
		s.Fatalf("%s: %v", h.name(), err)
	}
}

// lead is what the leader does twice a second.
func (s *site) lead() {
	s.Helper()
	lists := authorities.OfHypervisors(s.Snapshot())
	for _, purpose := range pki.Purposes {
		_, err := s.ring.Follow(purpose, lists.For(purpose))
		s.check(err)
	}
	if command, due := authorities.Follow(s.Snapshot(), s.member, authorities.Holding(s.ring.IDs()), s.at); due {
		s.Apply(command)
	}
	if command, due := authorities.Advance(s.Snapshot(), s.at); due {
		s.Apply(command)
	}
}

func (s *site) rotate(purpose pki.Purpose) {
	s.Helper()
	next, err := pki.NewHypervisorAuthority("c1", purpose, s.at)
	s.check(err)
	s.check(s.ring.Keep(next))
	command, err := authorities.AnnounceHypervisor(s.Snapshot(), purpose, s.ring.Issuing(purpose), next, "operator/o1", s.at)
	s.check(err)
	s.Apply(command)
}

// age tells by which authority a host's certificate is, counted from the oldest.
func (s *site) age(h *host, purpose pki.Purpose) string {
	s.Helper()
	uses, err := h.Uses()
	s.check(err)
	by := uses[purpose].By
	for i, one := range authorities.OfHypervisors(s.Snapshot()).For(purpose).All {
		if one.ID == by {
			return string(rune('a' + i))
		}
	}
	return "?"
}

// move makes the connections of a migration from one host to another: from libvirt to libvirt, and from QEMU to QEMU.
func (s *site) move(from, to *host) error {
	client, err := from.Material()
	s.check(err)
	server, err := to.Material()
	s.check(err)
	for purpose, pair := range map[pki.Purpose][2]hostpki.Pair{
		pki.Control: {client.Control, server.Control}, pki.Data: {client.Data, server.Data},
	} {
		if err := s.connect(pair[0], pair[1], to.name()); err != nil {
			return fmt.Errorf("%s from %s to %s: %w", purpose, from.name(), to.name(), err)
		}
	}
	return nil
}

func (s *site) connect(client, server hostpki.Pair, name string) error {
	settings := func(pair hostpki.Pair) *tls.Config {
		certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		s.check(err)
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pair.CA) {
			s.Fatal("a host trusts nobody")
		}
		return &tls.Config{
			Certificates: []tls.Certificate{certificate}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			Time: func() time.Time { return s.at }, ServerName: name,
		}
	}
	here, there := net.Pipe()
	caller, called := tls.Client(here, settings(client)), tls.Server(there, settings(server))
	answered := make(chan error, 1)
	go func() {
		_, err := called.Write([]byte{1})
		answered <- errors.Join(err, there.Close())
	}()
	_, err := caller.Read(make([]byte, 1))
	_ = here.Close() // a server that waits for the rest of a refused handshake ends
	return errors.Join(err, <-answered)
}

// allMove tells that a guest can go from any host to any other one.
func (s *site) allMove(when string, without ...*host) {
	s.Helper()
	for _, from := range s.hosts {
		for _, to := range s.hosts {
			if from == to || slices.Contains(without, from) || slices.Contains(without, to) {
				continue
			}
			if err := s.move(from, to); err != nil {
				s.Fatalf("%s: %v", when, err)
			}
			for _, purpose := range pki.Purposes {
				if s.states(purpose) != nil {
					s.met[s.age(from, purpose)+s.age(to, purpose)]++
				}
			}
		}
	}
}

func (s *site) states(purpose pki.Purpose) (are []authorities.State) {
	for _, one := range authorities.OfHypervisors(s.Snapshot()).For(purpose).All {
		are = append(are, one.State)
	}
	return are
}

func (s *site) ended(purpose pki.Purpose) bool {
	return !authorities.OfHypervisors(s.Snapshot()).For(purpose).UnderWay()
}

// Whatever order hosts and the leader come in, guests move between all hosts after each single step, both ways, and the old authority is of
// no use in the end.
func TestGuestsMoveInEachPhaseOfAReplacement(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := newSite(t, 3)
			before := make([]hostpki.Material, len(s.hosts))
			for i, h := range s.hosts {
				var err error
				before[i], err = h.Material()
				s.check(err)
			}
			rotating := [][]pki.Purpose{{pki.Control}, {pki.Data}, pki.Purposes}[seed%3]
			for _, purpose := range rotating {
				s.rotate(purpose)
			}
			steps := 0
			over := func() bool {
				return !slices.ContainsFunc(rotating, func(p pki.Purpose) bool { return !s.ended(p) })
			}
			for ; !over(); steps++ {
				if steps > 500 {
					t.Fatalf("it does not end: %+v", authorities.ProgressOf(s.Snapshot(), authorities.Called(rotating[0]), s.at))
				}
				if who := random.IntN(len(s.hosts) + 1); who < len(s.hosts) {
					s.renew(s.hosts[who])
				} else {
					s.lead()
				}
				s.at = s.at.Add(time.Second)
				s.allMove(fmt.Sprintf("seed %d, step %d, %v", seed, steps, s.states(rotating[0])))
			}
			s.lead()
			for _, h := range s.hosts {
				s.renew(h)
			}
			s.allMove("at the end")
			for _, purpose := range rotating {
				for i, h := range s.hosts {
					old := map[pki.Purpose]hostpki.Pair{pki.Control: before[i].Control, pki.Data: before[i].Data}[purpose]
					s.refuses(h, purpose, old)
				}
			}
			for kind, count := range s.met {
				met[kind] += count
			}
		})
	}
	for _, kind := range []string{"aa", "ab", "ba", "bb"} { // a is old, b is new
		if met[kind] == 0 {
			t.Errorf("no two hosts %s have met: %v", kind, met)
		}
	}
}

// refuses tells that a host takes no certificate of before, neither as a server nor as a client.
func (s *site) refuses(h *host, purpose pki.Purpose, old hostpki.Pair) {
	s.Helper()
	now, err := h.Material()
	s.check(err)
	own := map[pki.Purpose]hostpki.Pair{pki.Control: now.Control, pki.Data: now.Data}[purpose]
	thief := hostpki.Pair{CA: slices.Concat(old.CA, own.CA), Certificate: old.Certificate, Key: old.Key}
	if s.connect(thief, own, h.name()) == nil || s.connect(own, thief, h.name()) == nil {
		s.Errorf("%s takes a certificate of the authority that is retired for %s", h.name(), purpose)
	}
}

// A host that is down holds a replacement up until somebody says that it goes on. The others are not touched by that, and it comes back by
// itself.
func TestAHostThatIsDownIsPassedOverAndComesBack(t *testing.T) {
	s := newSite(t, 3)
	away, there := s.hosts[2], s.hosts[:2]
	s.rotate(pki.Control)
	step := func(want ...authorities.State) {
		t.Helper()
		for range 3 {
			s.lead()
			for _, h := range there {
				s.renew(h)
				s.allMove(fmt.Sprint(want), away)
			}
		}
		if !slices.Equal(s.states(pki.Control), want) {
			t.Fatalf("the authorities are %v, want %v", s.states(pki.Control), want)
		}
		is := authorities.ProgressOf(s.Snapshot(), authorities.Libvirt, s.at)
		if waits := is.Names(); is.New != "" && !slices.Equal(waits, []string{"node/n3"}) {
			t.Errorf("it waits for %v", waits)
		}
	}
	force := func() {
		t.Helper()
		command, _, err := authorities.Pass(s.Snapshot(), authorities.Libvirt, s.at)
		s.check(err)
		s.Apply(command)
	}
	step(authorities.Issuing, authorities.Announced)
	s.allMove("announced, with the host of before") // it is slow, and not off
	force()
	step(authorities.Outgoing, authorities.Issuing)
	force()
	step(authorities.Retired, authorities.Issuing)
	if s.move(away, there[0]) == nil {
		t.Error("a host that was left behind is trusted")
	}
	s.renew(away)
	s.allMove("after it came back")
}

// A host whose libvirt does not take up what was written does not say that it uses it, so the others do not go ahead of it.
func TestWhatLibvirtDoesNotUseIsNotTold(t *testing.T) {
	s := newSite(t, 2)
	slow := s.hosts[1]
	s.rotate(pki.Control)
	slow.broken = errors.New("it does not answer")
	for range 3 {
		s.renew(s.hosts[0])
		s.renew(slow)
		s.lead()
	}
	if names := func() []string {
		is := authorities.ProgressOf(s.Snapshot(), authorities.Libvirt, s.at)
		return is.Names()
	}(); !slices.Equal(names, []string{"node/n2"}) {
		t.Errorf("it waits for %v", names)
	}
	slow.broken = nil
	s.renew(slow) // takes it up
	s.renew(slow) // and says so
	s.lead()
	if !slices.Equal(s.states(pki.Control), []authorities.State{authorities.Outgoing, authorities.Issuing}) {
		t.Errorf("the authorities are %v", s.states(pki.Control))
	}
}
