package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pause"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// group is several coordinators of one cluster.
type group struct {
	*machine // the one that made the cluster, whose operator is admin
	all      []*machine
}

func newGroup(t *testing.T, members int) *group {
	t.Helper()
	first := newMachine(t, "c1")
	first.init()
	first.run()
	first.status("", led)
	g := &group{machine: first, all: []*machine{first}}
	for i := 2; i <= members; i++ {
		m := newMachine(t, fmt.Sprint("c", i))
		_, err := Join(t.Context(), JoinOptions{
			Address: first.load().Listen.API, ConfigPath: m.config,
			Token: first.token(&berthv1.CreateTokenRequest{Purpose: pki.PurposeCoordinator}),
		})
		first.check(err)
		m.client = first.client
		m.run()
		g.all = append(g.all, m)
		first.status("", func(s *berthv1.StatusResponse) bool { return voting(s) == i })
	}
	return g
}

// address is that of the API of a member that runs.
func (g *group) address() string {
	for _, m := range g.all {
		if m.stop != nil {
			return m.load().Listen.API
		}
	}
	g.t.Fatal("no member runs")
	return ""
}

// changeLeader stops the leader until another one leads.
func (g *group) changeLeader() {
	g.t.Helper()
	before := g.status(g.address(), led).GetLeader()
	for _, m := range g.all {
		if m.load().Name != before {
			continue
		}
		m.halt()
		after := g.status(g.address(), func(s *berthv1.StatusResponse) bool { return s.GetLeader() != before && s.GetLeader() != "" })
		m.run()
		g.status(g.address(), func(s *berthv1.StatusResponse) bool { return voting(s) == len(g.all) })
		g.t.Logf("%s led, and now %s does", before, after.GetLeader())
		return
	}
	g.t.Fatalf("there is no member %s", before)
}

// rotate begins to replace the authority, and is its ID.
func (g *group) rotate() string {
	g.t.Helper()
	answer, err := g.operator(g.address()).RotateAuthority(g.t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{}))
	g.check(err)
	return answer.Msg.GetProgress().GetId()
}

func (g *group) force() {
	g.t.Helper()
	_, err := g.operator(g.address()).RotateAuthority(g.t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{Force: true}))
	g.check(err)
}

// list waits until the list of authorities is as wanted.
func (g *group) list(what string, good func(*berthv1.ListAuthoritiesResponse) bool) *berthv1.ListAuthoritiesResponse {
	g.t.Helper()
	var last string
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		answer, err := g.operator(g.address()).ListAuthorities(g.t.Context(), connect.NewRequest(&berthv1.ListAuthoritiesRequest{}))
		if err == nil && good(answer.Msg) {
			return answer.Msg
		}
		last = fmt.Sprint(answer, err)
	}
	g.t.Fatalf("%s: not in time; the last list was %s", what, last)
	return nil
}

// states are those of the cluster's authorities, the oldest first.
func states(list *berthv1.ListAuthoritiesResponse) string {
	var are []string
	for _, one := range list.GetAuthorities() {
		if one.GetName() == "cluster" {
			are = append(are, one.GetState())
		}
	}
	return strings.Join(are, " ")
}

// waitsFor waits until the authorities are in these states, and exactly these are waited for.
func (g *group) waitsFor(is string, who ...string) {
	g.t.Helper()
	g.list(fmt.Sprintf("%s, waiting for %v", is, who), func(list *berthv1.ListAuthoritiesResponse) bool {
		return states(list) == is && slices.Equal(list.GetProgress().GetWaits(), who)
	})
}

// trustOne waits until every running member trusts one authority alone.
func (g *group) trustOne() {
	g.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var are []string
		for _, m := range g.all {
			if ids, err := pki.AuthorityIDs([]byte(m.read(place{m.data}.tls().CA))); err != nil || len(ids) != 1 {
				are = append(are, fmt.Sprint(m.load().Name, " trusts ", ids, err))
			}
		}
		if len(are) == 0 {
			return
		}
		if time.Now().After(end) {
			g.t.Fatal(are)
		}
	}
}

// somebody is an operator who logs in with a token, and calls only when he is told to.
func (g *group) somebody(name string) *caller {
	g.t.Helper()
	c := g.admin("")
	c.files = g.enrolOperator(name)
	return c
}

// at calls a coordinator, and follows what its answer says of authorities.
func (c *caller) at(ctx context.Context, address string) error {
	c.address = address
	var named string
	err := c.with(func(clients *connectClients) error {
		answer, err := clients.operator.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err == nil {
			named = answer.Header().Get(rpc.AuthoritiesHeader)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.follow(ctx, named)
}

// comes has somebody call until he is not waited for any more. A member follows what the leader has decided within a second.
func (g *group) comes(c *caller) {
	g.t.Helper()
	pair, err := pki.LoadPair(c.files)
	g.check(err)
	name := "operator/" + pair.Identity.Name
	g.list(name+" comes", func(list *berthv1.ListAuthoritiesResponse) bool {
		g.check(c.at(g.t.Context(), g.address()))
		return !slices.Contains(list.GetProgress().GetWaits(), name)
	})
}

// unwanted tells that a call was refused for who made it, or that no connection could be made because of a certificate. A coordinator that
// is stopping is neither.
func unwanted(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodePermissionDenied || code == connect.CodeUnauthenticated || errors.Is(err, pki.ErrPeer) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || strings.Contains(fmt.Sprint(err), "remote error: tls")
}

// press calls every member all the time, with a new connection each, until it is told to end. It answers how many calls there were, and
// those that were refused for their certificate.
func (g *group) press(c *caller) (end func() (calls int, refused []error)) {
	ctx, stop := context.WithCancel(g.t.Context())
	var calling sync.WaitGroup
	var mu sync.Mutex
	calls, refused := 0, []error{}
	for _, m := range g.all {
		address := m.load().Listen.API
		calling.Go(func() {
			own := *c
			own.address = address
			for pause.For(ctx, 5*time.Millisecond) {
				err := own.with(func(clients *connectClients) error {
					_, err := clients.operator.Status(g.t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
					return err
				})
				mu.Lock()
				if calls++; unwanted(err) {
					refused = append(refused, err)
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, []error) {
		stop()
		calling.Wait()
		return calls, refused
	}
}

// Whoever leads goes on: in each phase the leader ends, and no call is refused for a certificate.
func TestTheNextLeaderGoesOnWithAReplacementInEachPhase(t *testing.T) {
	g := newGroup(t, 3)
	admin, alice := g.admin(""), g.somebody("alice")
	end := g.press(admin)
	next := g.rotate()
	g.waitsFor("issuing announced", "operator/admin", "operator/alice")
	g.changeLeader()
	g.waitsFor("issuing announced", "operator/admin", "operator/alice")
	g.comes(admin)
	g.waitsFor("issuing announced", "operator/alice")
	g.comes(alice)
	g.list("the new one signs", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "outgoing issuing" })
	g.changeLeader()
	// Alice came last: she may have been given her next certificate when the new one signed already.
	g.list("admin is waited for", func(list *berthv1.ListAuthoritiesResponse) bool {
		return states(list) == "outgoing issuing" && slices.ContainsFunc(list.GetProgress().GetAwaited(), func(one *berthv1.AuthorityWait) bool {
			return one.GetSubject() == "operator/admin"
		})
	})
	g.comes(alice)
	g.comes(admin)
	g.list("the old one is retired", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "retired issuing" })
	g.changeLeader()
	list := g.list("it stays so", func(list *berthv1.ListAuthoritiesResponse) bool { return list.GetProgress() == nil })
	if states(list) != "retired issuing" || list.GetAuthorities()[1].GetId() != next {
		t.Errorf("at the end the authorities are %v", list.GetAuthorities())
	}
	g.trustOne()
	if calls, refused := end(); len(refused) > 0 {
		t.Errorf("%d calls of %d were refused for a certificate, the first with: %v", len(refused), calls, refused[0])
	} else {
		t.Logf("%d calls", calls)
	}
}

// A coordinator that is off holds a replacement up, and goes on with it when it is back. If somebody has said not to wait, it finds another
// authority in place of the one that it knows: that one has signed the other's key, so it is trusted again and trusts again.
func TestACoordinatorThatWasAwayDuringAReplacementIsTrustedAgain(t *testing.T) {
	g := newGroup(t, 3)
	admin := g.admin("")
	away := g.all[2]
	if g.status("", led).GetLeader() == "c3" {
		g.changeLeader()
	}
	away.halt()
	g.rotate()
	g.comes(admin)
	g.waitsFor("issuing announced", "coordinator/c3")
	away.run()
	g.waitsFor("outgoing issuing", "operator/admin")
	away.halt()
	g.comes(admin)
	away.run()
	g.list("the first replacement ends", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "retired issuing" })
	g.trustOne()

	away.halt()
	g.rotate()
	g.comes(admin)
	g.waitsFor("retired issuing announced", "coordinator/c3")
	g.force()
	g.list("the new one signs", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "retired outgoing issuing" })
	g.comes(admin)
	g.waitsFor("retired outgoing issuing", "coordinator/c3")
	away.run()
	g.list("the second replacement ends", func(list *berthv1.ListAuthoritiesResponse) bool {
		return states(list) == "retired retired issuing"
	})
	g.trustOne()
	g.status("", func(s *berthv1.StatusResponse) bool { return voting(s) == 3 })
	g.status(away.load().Listen.API, led) // it forwards to the leader, whom it trusts
	g.all[0].halt()
	g.all[1].status(away.load().Listen.API, led) // and makes a majority
}

// save writes a backup.
func (g *group) save(name string) string {
	g.t.Helper()
	saved, err := g.operator("").SaveSnapshot(g.t.Context(), connect.NewRequest(&berthv1.SaveSnapshotRequest{}))
	g.check(err)
	var data []byte
	for saved.Receive() {
		data = append(data, saved.Msg().GetChunk()...)
	}
	g.check(errors.Join(saved.Err(), saved.Close()))
	path := filepath.Join(g.dir, name)
	g.check(os.WriteFile(path, data, 0o600))
	return path
}

// restore puts a backup in place of the state. An operator that came back with an earlier one has to be confirmed for that.
func (g *group) restore(path string) {
	g.t.Helper()
	g.confirmAsRoot("operator/admin")
	stream := g.operator("").RestoreSnapshot(g.t.Context())
	_ = stream.Send(&berthv1.RestoreSnapshotRequest{Chunk: []byte(g.read(path))}) // the answer tells
	_, err := stream.CloseAndReceive()
	g.check(err)
}

// recover puts a backup in place of a store that is lost.
func (g *group) recover(path string) {
	g.t.Helper()
	g.halt()
	g.check(os.RemoveAll(filepath.Join(g.data, "raft")))
	if out, err := g.verb("c1\n", "recover", "--config", g.config, "--from", path); err != nil {
		g.t.Fatalf("%s: %v", out, err)
	}
	g.run()
	g.status("", led)
}

// Whom the cluster trusts does not go back with a backup, whether that is of before a replacement or of its middle, and whether the
// state of today is there or only the files: the new authority signs, and a certificate of the retired one stays out.
func TestABackupOfBeforeAReplacementBringsNoAuthorityBack(t *testing.T) {
	g := newGroup(t, 1)
	admin, alice := g.admin(""), g.somebody("alice")
	g.comes(alice)
	old, err := tls.LoadX509KeyPair(admin.files.Certificate, admin.files.Key)
	g.check(err)
	one := g.list("one signs", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "issuing" })
	first := one.GetAuthorities()[0].GetId()
	before := g.save("before")
	next := g.rotate()
	g.comes(admin)
	g.waitsFor("issuing announced", "operator/alice")
	announced := g.save("announced")
	g.comes(alice)
	g.list("the new one signs", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "outgoing issuing" })
	g.comes(admin)
	g.waitsFor("outgoing issuing", "operator/alice")
	outgoing := g.save("outgoing")

	// In the middle of it the state of before comes back, and goes on by what the files say.
	g.recover(before)
	g.waitsFor("outgoing issuing", "operator/alice")
	g.comes(admin)
	g.comes(alice)
	ended := func(what string) {
		t.Helper()
		list := g.list(what, func(list *berthv1.ListAuthoritiesResponse) bool { return list.GetProgress() == nil })
		for _, one := range list.GetAuthorities() {
			wrong := one.GetName() == "cluster" && (one.GetState() == "issuing") != (one.GetId() == next)
			if wrong || one.GetId() == first && one.GetState() != "retired" {
				t.Errorf("%s: the authorities are %v", what, list.GetAuthorities())
			}
		}
		g.trustOne()
		g.comes(admin)
		g.comes(alice)
		c := g.load().Listen
		for _, port := range []string{c.API, c.Agent} {
			if err := handshake(port, old, "h2"); err == nil || !strings.Contains(err.Error(), "tls:") {
				t.Errorf("%s: a certificate of the retired authority is taken at %s: %v", what, port, err)
			}
		}
	}
	ended("after it went on")
	for _, backup := range []string{before, announced, outgoing} {
		name := filepath.Base(backup)
		g.restore(backup)
		ended("restored, " + name)
		g.recover(backup)
		ended("recovered, " + name)
	}
}

// certify has a node ask what its libvirt needs, whoever leads.
func (g *group) certify(node *caller, request *berthv1.CertifyHypervisorRequest) *berthv1.CertifyHypervisorResponse {
	g.t.Helper()
	var last error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, m := range g.all {
			node.address = m.load().Listen.Agent
			var answer *connect.Response[berthv1.CertifyHypervisorResponse]
			last = node.with(func(clients *connectClients) (err error) {
				answer, err = clients.agent.CertifyHypervisor(g.t.Context(), connect.NewRequest(request))
				return err
			})
			if last == nil {
				return answer.Msg
			}
		}
	}
	g.t.Fatal(last)
	return nil
}

// libvirts waits until the authorities of libvirt are in these states, and exactly these are waited for.
func (g *group) libvirts(is string, who ...string) {
	g.t.Helper()
	g.list(fmt.Sprintf("libvirt: %s, waiting for %v", is, who), func(list *berthv1.ListAuthoritiesResponse) bool {
		var are, waits []string
		for _, one := range list.GetAuthorities() {
			if one.GetName() == "libvirt" {
				are = append(are, one.GetState())
			}
		}
		for _, progress := range list.GetHypervisors() {
			waits = append(waits, progress.GetWaits()...)
		}
		return strings.Join(are, " ") == is && slices.Equal(waits, who)
	})
}

// The authority of libvirt is replaced whoever leads: each leader has its key, and no node is given a
// certificate by the one before once the new one signs. A backup of before brings nothing back.
func TestTheAuthorityOfLibvirtIsReplacedWhoeverLeads(t *testing.T) {
	g := newGroup(t, 3)
	node := g.node("n1")
	csr, _, err := pki.NewRequest("n1")
	g.check(err)
	first := g.certify(node, &berthv1.CertifyHypervisorRequest{})
	before := g.save("before")
	_, err = g.operator("").RotateAuthority(t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{Name: "libvirt"}))
	g.check(err)
	g.libvirts("issuing announced", "node/n1")
	g.changeLeader()
	g.libvirts("issuing announced", "node/n1")
	says := func(certificate []byte) *berthv1.CertifyHypervisorRequest {
		t.Helper()
		trusts, err := pki.AuthorityIDs(g.certify(node, &berthv1.CertifyHypervisorRequest{}).GetControlCaPem())
		g.check(err)
		request := &berthv1.CertifyHypervisorRequest{ControlTrusts: trusts}
		if certificate != nil {
			request.ControlAuthority = trusts[slices.IndexFunc(trusts, func(id string) bool { return id == signedBy(t, certificate) })]
		}
		return request
	}
	if g.certify(node, &berthv1.CertifyHypervisorRequest{}).GetDataCaPem() == nil {
		t.Error("QEMU's authority is gone")
	}
	g.certify(node, says(nil))
	g.libvirts("outgoing issuing", "node/n1")
	g.changeLeader()
	answer := g.certify(node, &berthv1.CertifyHypervisorRequest{ControlCsrPem: csr})
	ids, err := pki.AuthorityIDs(answer.GetControlCaPem())
	g.check(err)
	old, err := pki.AuthorityIDs(first.GetControlCaPem())
	g.check(err)
	if by := signedBy(t, answer.GetControlCertificatePem()); len(ids) != 2 || by != ids[0] || ids[1] != old[0] {
		t.Errorf("a certificate by %s, and trusted are %v; the first one was %v", by, ids, old)
	}
	g.certify(node, says(answer.GetControlCertificatePem()))
	g.libvirts("retired issuing")
	g.changeLeader()
	g.restore(before)
	g.libvirts("retired issuing")
	for range 3 {
		answer = g.certify(node, &berthv1.CertifyHypervisorRequest{ControlCsrPem: csr})
		trusts, err := pki.AuthorityIDs(answer.GetControlCaPem())
		g.check(err)
		if by := signedBy(t, answer.GetControlCertificatePem()); by != ids[0] || !slices.Equal(trusts, ids[:1]) {
			t.Errorf("at the end a certificate is by %s, and trusted are %v, want %s alone", by, trusts, ids[0])
		}
		g.changeLeader()
	}
}

// signedBy is the ID of the authority that has signed a certificate.
func signedBy(t *testing.T, text []byte) string {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%q is no certificate", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return pki.AuthorityOf(certificate)
}

// A coordinator that was passed over can be elected before it has the key of the authority that signs. It gets that from one that has it,
// as soon as such a one is there, and the replacement goes on. Here the two that come first have their files of before.
func TestALeaderWithoutTheNewKeyGetsItFromAnother(t *testing.T) {
	g := newGroup(t, 3)
	admin, behind := g.admin(""), g.all[1:]
	copies := map[*machine]string{}
	for _, m := range behind {
		copies[m] = t.TempDir()
		g.check(os.CopyFS(copies[m], os.DirFS(filepath.Join(m.data, "tls"))))
	}
	_, err := g.operator("").RotateAuthority(t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{Name: "libvirt"}))
	g.check(err)
	g.libvirts("retired issuing") // there is no node
	next := g.rotate()
	g.comes(admin)
	g.waitsFor("outgoing issuing", "operator/admin")
	for _, m := range g.all {
		m.halt()
	}
	for _, m := range behind {
		g.check(os.RemoveAll(filepath.Join(m.data, "tls")))
		g.check(os.CopyFS(filepath.Join(m.data, "tls"), os.DirFS(copies[m])))
		m.run()
	}
	const lacks = "this coordinator leads and lacks the key of"
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if strings.Contains(behind[0].log.String()+behind[1].log.String(), lacks) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a leader without the key does not say so")
		}
	}
	g.run()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var are []string
		for _, m := range behind {
			ids, err := pki.AuthorityIDs([]byte(m.read(place{m.data}.tls().CA)))
			libvirt := m.read(filepath.Join(m.data, "tls", "hypervisor-control.pem"))
			if err != nil || ids[0] != next || libvirt != g.read(filepath.Join(g.data, "tls", "hypervisor-control.pem")) {
				are = append(are, fmt.Sprint(m.load().Name, " has ", ids, err))
			}
		}
		if len(are) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal(are)
		}
	}
	g.comes(admin)
	g.list("the replacement ends", func(list *berthv1.ListAuthoritiesResponse) bool { return states(list) == "retired issuing" })
	g.trustOne()
}
