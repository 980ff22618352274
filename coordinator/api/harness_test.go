package api

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/api/sessions"
	"berth/coordinator/consensus"
	"berth/coordinator/control/adoption"
	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/control/volumes"
	"berth/coordinator/evidence"
	"berth/coordinator/inventory"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/profile"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/integration/loopback"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/units"
)

func TestMain(m *testing.M) {
	// What runs side by side waits more than it works: more of it at a time than there are CPUs.
	_ = flag.Set("test.parallel", "8") // every test binary has the flag
	goleak.VerifyTestMain(m)
}

const clusterID = "test"

// cloud is a cluster of coordinators in this process: real consensus, real mutual TLS on loopback, and a control that
// does what the test says.
type cloud struct {
	t         *testing.T
	authority *pki.Authority
	members   []*coordinator
}

// coordinator is one member.
type coordinator struct {
	cloud     *cloud
	id        string
	files     pki.Files
	store     *state.Store
	consensus *consensus.Consensus
	log       *entries
	inventory *inventory.Store
	control   *fakeControl
	api       *Server
	keeper    *gate.Keeper
	server    *http.Server
	imports   string // its directory for files of images on their way
	record    model.Member
	skew      atomic.Int64              // of its clock
	stands    atomic.Pointer[time.Time] // where its clock was stopped
	gone      []string                  // nodes whose session was ended
	reports   int
	stopped   bool
}

// newCloud starts a cluster of so many voters. The tests on single ones run side by side: they mostly wait. Of several
// voters, a machine that is busy with other tests would elect another leader in the middle of a test.
func newCloud(t *testing.T, size int) *cloud {
	t.Helper()
	if size == 1 {
		t.Parallel()
	}
	authority, err := pki.NewAuthority(clusterID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{t: t, authority: authority}
	t.Cleanup(c.stop)
	for i := range size {
		c.members = append(c.members, c.start(fmt.Sprintf("c%d", i+1), i == 0))
		added := c.members[i]
		if i == 0 {
			// The first one raises it by itself. Once there are others it would wait for their reports, and nobody reports here.
			c.eventually("the feature level is raised", func() bool { return added.store.Snapshot().FeatureLevel() == state.FeatureLevel })
		} else {
			c.lead(func(lead *coordinator) error {
				return lead.consensus.AddNonvoter(t.Context(), added.id, added.record.RaftAddress)
			})
		}
		added.propose(state.Command{
			Kind: "test", Expect: []state.Expectation{{Table: state.Members, ID: added.id}}, Members: []model.Member{added.record},
		})
		c.lead(func(lead *coordinator) error { return lead.consensus.Promote(t.Context(), added.id) })
	}
	c.members[0].guard("") // as a site that an earlier release began, which permits everything
	for _, m := range c.members {
		c.eventually("every member knows all", func() bool { return len(m.store.Snapshot().Members()) == size })
	}
	return c
}

func (c *cloud) start(name string, first bool) *coordinator {
	c.t.Helper()
	dir := c.t.TempDir()
	m := &coordinator{cloud: c, id: "id-" + name, files: c.certify(dir, pki.RolePeer, "id-"+name, name), control: &fakeControl{}}
	listener, err := net.Listen("tcp", freeAddress(c.t)) // its own over a restart
	c.check(err)
	m.record = model.Member{
		ID: m.id, Name: name, APIAddress: listener.Addr().String(), AgentAddress: "127.0.0.1:7421", RaftAddress: freeAddress(c.t),
		JoinedAt: time.Now().UTC(),
	}
	settings := consensus.Config{
		DataDir: filepath.Join(dir, "raft"), MemberID: m.id, ClusterID: clusterID, Bind: m.record.RaftAddress,
		Advertise: m.record.RaftAddress, TLS: m.files, Logger: hclog.NewNullLogger(), Stability: 50 * time.Millisecond,
		Fatal: func(err error) { c.t.Errorf("member %s cannot go on: %v", name, err) },
		Seals: func() (seal.Keys, error) { return seal.Keys{{7}}, nil },
	}
	if first {
		c.check(consensus.Bootstrap(settings))
	}
	m.store = state.NewStore()
	m.keeper = gate.NewKeeper(m.store, time.Now)
	m.consensus, err = consensus.Open(settings, m.store)
	c.check(err)
	go func() {
		for range m.consensus.Leadership() {
		}
	}()
	m.log = &entries{Consensus: m.consensus}
	m.inventory = inventory.New(m.now, hclog.NewNullLogger())
	asPeer, err := pki.ClientConfig(m.files, pki.RolePeer)
	c.check(err)
	m.imports = filepath.Join(dir, "imports")
	vault, err := answer.NewVault(c.authority, c.authority.CertificatePEM(), nil, func(*pki.Authority) error { return nil })
	c.check(err)
	m.api = New(Config{
		Config: answer.Config{
			Self: m.id, SelfName: name, Vault: vault, Hypervisors: keyring.New(nil), Store: m.store,
			Consensus: m.log, Inventory: m.inventory, Transport: rpc.NewHTTPClient(asPeer).Transport, Now: m.now, Log: hclog.NewNullLogger(),
		},
		Control:    m.control,
		Imports:    m.imports,
		Disconnect: func(node, _ string) { m.gone = append(m.gone, node) },
		Removed:    func() []evidence.Removed { return nil },
		Keeper:     m.keeper,
		Console:    func() sessions.Place { return sessions.Place{Address: "coord:7423", Fingerprint: "f1"} },
	})
	served, err := pki.ServerConfig(m.files, tls.VerifyClientCertIfGiven)
	c.check(err)
	m.server = rpc.NewServer("", m.api.Handler(), served, hclog.NewNullLogger())
	go func() {
		if err := m.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			c.t.Errorf("member %s: %v", name, err)
		}
	}()
	return m
}

// entries is the log as the API has it. A test puts something before the next entry of a kind: it was made without knowing of that.
type entries struct {
	*consensus.Consensus
	kind   string
	before func()
}

func (e *entries) Propose(ctx context.Context, command state.Command) (state.Result, error) {
	if before := e.before; before != nil && command.Kind == e.kind {
		e.before = nil
		before()
	}
	return e.Consensus.Propose(ctx, command)
}

func (m *coordinator) now() time.Time {
	if stands := m.stands.Load(); stands != nil {
		return *stands
	}
	return time.Now().UTC().Add(time.Duration(m.skew.Load()))
}

// stand stops its clock. On a busy machine a test may take longer than a node may be silent.
func (m *coordinator) stand() {
	now := m.now()
	m.stands.Store(&now)
}

// kill ends a member without a word to the others.
func (m *coordinator) kill() {
	if m.stopped {
		return
	}
	m.stopped = true
	m.api.Stop()
	_ = m.server.Close()
	m.api.source.Transport.(*http.Transport).CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := m.consensus.Shutdown(ctx); err != nil {
		m.cloud.t.Errorf("member %s did not stop: %v", m.id, err)
	}
}

func (c *cloud) stop() {
	for _, m := range c.members {
		m.kill()
	}
}

func (c *cloud) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cloud) eventually(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	c.t.Fatalf("not in time: %s", what)
}

// leader is the member that leads now.
func (c *cloud) leader() *coordinator {
	c.t.Helper()
	var found *coordinator
	c.eventually("somebody leads", func() bool {
		for _, m := range c.members {
			if !m.stopped && m.consensus.IsLeader() {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func (c *cloud) follower() *coordinator {
	c.t.Helper()
	for _, m := range c.members {
		if !m.stopped && !m.consensus.IsLeader() {
			return m
		}
	}
	c.t.Fatal("nobody follows")
	return nil
}

// certify makes the files of somebody with a certificate of this cluster.
func (c *cloud) certify(dir string, role pki.Role, id, name string) pki.Files {
	c.t.Helper()
	request, key, err := pki.NewRequest(name)
	c.check(err)
	certificate, err := c.authority.Sign(request, pki.Identity{Role: role, ID: id, Name: name, ClusterID: clusterID},
		[]string{"127.0.0.1"}, time.Now(), time.Hour)
	c.check(err)
	files := pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "certificate.pem"), Key: filepath.Join(dir, "key.pem"),
	}
	for path, data := range map[string][]byte{files.CA: c.authority.CertificatePEM(), files.Certificate: certificate, files.Key: key} {
		c.check(os.WriteFile(path, data, 0o600))
	}
	return files
}

// as is an HTTP client with a certificate; with none for the anonymous role.
func (c *cloud) as(role pki.Role, id, name string) *http.Client {
	c.t.Helper()
	var settings *tls.Config
	if role == gate.Anonymous {
		fingerprint, err := pki.Fingerprint(c.authority.CertificatePEM())
		c.check(err)
		settings = pki.PinnedClientConfig(fingerprint)
	} else {
		var err error
		settings, err = pki.ClientConfig(c.certify(c.t.TempDir(), role, id, name), pki.RolePeer)
		c.check(err)
	}
	client := rpc.NewHTTPClient(settings)
	c.t.Cleanup(client.CloseIdleConnections)
	return client
}

func (m *coordinator) url() string { return "https://" + m.record.APIAddress }

// operator speaks to this member as operator/alice.
func (m *coordinator) operator() berthv1connect.BerthServiceClient {
	return berthv1connect.NewBerthServiceClient(m.cloud.as(pki.RoleOperator, "op1", "alice"), m.url())
}

func (m *coordinator) stranger() berthv1connect.EnrolmentServiceClient {
	return berthv1connect.NewEnrolmentServiceClient(m.cloud.as(gate.Anonymous, "", ""), m.url())
}

// lead does something at the leader, and again at the next one when the leadership moves: this machine may be slow.
func (c *cloud) lead(do func(lead *coordinator) error) {
	c.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		err := do(c.leader())
		if err == nil {
			return
		}
		if moving := errors.Is(err, consensus.ErrNotLeader) || errors.Is(err, consensus.ErrUnknown); !moving || time.Now().After(end) {
			c.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// propose commits a command that has to be stored, and returns when this member has applied it.
func (m *coordinator) propose(command state.Command) {
	m.cloud.t.Helper()
	command.At = time.Now().UTC()
	command.Key = answer.NewID(command.At)
	var result state.Result
	m.cloud.lead(func(lead *coordinator) (err error) {
		result, err = lead.consensus.Propose(m.cloud.t.Context(), command)
		return err
	})
	if result.Refusal != nil {
		m.cloud.t.Fatal(result.Refusal)
	}
	m.cloud.eventually("the change is here", func() bool { return m.store.Snapshot().Index() >= result.Index })
}

func (m *coordinator) addNode(id, name string) {
	m.cloud.t.Helper()
	m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Nodes, ID: id}},
		Nodes: []model.Node{{ID: id, Name: name, Cluster: model.DefaultCluster, HostUUID: "uuid-of-" + id, EnrolledAt: m.now()}},
	})
}

// reportIdle has a node's agent tell that it has so much memory, all of it free, 16 CPUs and no load.
func (m *coordinator) reportIdle(node string, memory units.Bytes) {
	m.cloud.t.Helper()
	m.reports++
	session, err := m.inventory.OpenSession(node, &berthv1.Hello{NodeId: node, Incarnation: fmt.Sprint("boot-", m.reports)}, 1)
	m.cloud.check(err)
	for i, message := range []*berthv1.SessionRequest{
		{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: int64(memory), Cpus: 16, DomainTypes: []string{"kvm"}, CollectedAt: timestamppb.Now()},
		}}},
		{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{
			SampledAt: timestamppb.Now(), MemoryTotalBytes: new(int64(memory)), MemoryAvailableBytes: new(int64(memory)), Load1: new(0.0),
		}}},
	} {
		message.Sequence = uint64(i + 2)
		session.Report(message)
	}
}

// decide places a VM on what the nodes have reported, and keeps the decision.
func (m *coordinator) decide(id string, request placement.Request) placement.Decision {
	m.cloud.t.Helper()
	view := m.inventory.View(m.store.Snapshot(), m.now())
	decision := placement.Place(view, request, policies.Default(), 7)
	decision.ID, decision.Caller = id, "operator/alice"
	m.propose(state.Command{Kind: "test", Decisions: []placement.Decision{decision}})
	return decision
}

func (m *coordinator) addVM(vm model.VM) {
	m.cloud.t.Helper()
	m.propose(state.Command{Kind: "test", Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID}}, VMs: []model.VM{vm}})
}

// guard makes the site one that permits nothing until it is said, or one that permits everything: "".
func (m *coordinator) guard(mark string) {
	m.cloud.t.Helper()
	m.propose(state.Command{Kind: "test", Meta: map[string]string{model.MetaGuarded: mark}})
}

// begin puts an operation and its VM into the state.
func (m *coordinator) begin(op operation.Operation) {
	m.cloud.t.Helper()
	m.addVM(model.VM{ID: op.VM, Name: op.VMName, Desired: model.Running, Operation: op.ID})
	m.update(op)
}

func (m *coordinator) update(op operation.Operation) {
	m.cloud.t.Helper()
	last, _ := m.store.Snapshot().Operation(op.ID)
	m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Operations, ID: op.ID, Revision: last.Revision}},
		Operations: []operation.Operation{op},
	})
}

// fakeControl answers what the test says, and remembers what it was asked.
type fakeControl struct {
	add       func(lifecycle.AddVM) (lifecycle.Added, error)
	start     func(lifecycle.StartVM) (lifecycle.Started, error)
	act       func(lifecycle.ActOnVM) (operation.Operation, error)
	migrate   func(lifecycle.MigrateVM) (lifecycle.Migration, error)
	cancelled string
	judge     func(model.VM, placement.Purpose) (placement.Decision, error)

	unprovable map[string]string // by node name: why nothing would prove that it is off
	nowhere    map[string]string // by VM name: why no other node would take it
	found      map[string]string // by VM ID, as the leader has found it last
	shrunk     []string          // VM IDs

	batch   func(lifecycle.StartVMs) ([]lifecycle.StartedVM, error)
	drain   func(plans.DrainNode) (plans.Drained, error)
	undrain func(plans.UndrainNode) (model.Plan, error)
	propose func(plans.ProposePlan) (model.Plan, error)
	ended   func(verb string, request any) (model.Plan, error) // of apply, discard and cancel
	passes  map[string]plans.LastPass                          // by cluster

	deleteVM    func(lifecycle.DeleteVM) (operation.Operation, error)
	deleteDisk  func(volumes.DeleteDisk) error
	growDisk    func(volumes.GrowDisk) (model.Resource, error)
	importImage func(volumes.ImportImage) (model.Resource, error)
	deleteImage func(volumes.DeleteImage) error
	spread      func(customer string) (plans.Spread, error)
	console     func(ctx context.Context, vm string, force bool, stream io.ReadWriteCloser) error
	week        func(nodes []string, vm string) (told profile.Told, silent []string)

	fence        func(fencing.FenceNode) (model.Node, error)
	power        func(node string) ([]bool, error)
	held         map[string]evidence.FenceVerdict // by node ID, as the next
	identities   map[string]model.FenceIdentities // by node ID
	contradicted map[string]string
	locks        map[string]evidence.Locks // by pool
	survey       func(*state.Snapshot) *evidence.Survey
	adopt        func(adoption.AdoptVMs) ([]adoption.AdoptedVM, error)
	resolve      func(lifecycle.ResolveOperation) (operation.Operation, error)
}

func (f *fakeControl) AdoptVMs(_ context.Context, request adoption.AdoptVMs) ([]adoption.AdoptedVM, error) {
	return f.adopt(request)
}

func (f *fakeControl) Document(_ context.Context, vm model.VM) (text, node string, err error) {
	return "<domain><!-- " + vm.Name + " as it runs --></domain>", "hv1", nil
}

func (f *fakeControl) Week(_ context.Context, nodes []string, vm string) (told profile.Told, silent []string) {
	return f.week(nodes, vm)
}

func (f *fakeControl) DocumentUnused(_, after *model.VM) error {
	if strings.Contains(after.Spec.XML, "/srv/taken") {
		return &lead.Error{Code: lead.Conflict, Subject: "vm/mail", Message: "disk /srv/taken is one of VM \"mail\"", NextStep: "detach it there"}
	}
	return nil
}

func (f *fakeControl) ResolveOperation(_ context.Context, request lifecycle.ResolveOperation) (operation.Operation, error) {
	return f.resolve(request)
}

func (f *fakeControl) FenceNode(_ context.Context, request fencing.FenceNode) (model.Node, error) {
	return f.fence(request)
}

func (f *fakeControl) NodePower(_ context.Context, node string) ([]bool, error) { return f.power(node) }

func (f *fakeControl) FenceHeld(node string) (evidence.FenceVerdict, bool) {
	verdict, held := f.held[node]
	return verdict, held
}

func (f *fakeControl) IdentityOf(node *model.Node) model.FenceIdentities {
	return f.identities[node.ID]
}

func (f *fakeControl) Unprovable(node *model.Node) (why, next string) {
	return f.unprovable[node.Name], "do that"
}

func (f *fakeControl) PowerTried(node *model.Node) string {
	if node.Fence.Method != model.FenceCommand {
		return ""
	}
	return "asked for the power state at noon, and it answered"
}

func (f *fakeControl) ShrunkVMs() []string { return f.shrunk }

func (f *fakeControl) Nowhere() map[string]string { return f.found }

func (f *fakeControl) Elsewhere(_ *state.Snapshot, vm model.VM) string { return f.nowhere[vm.Name] }

func (f *fakeControl) Contradicted(node string) string { return f.contradicted[node] }

func (f *fakeControl) PoolLocks(_ *state.Snapshot, pool *model.Resource) evidence.Locks {
	return f.locks[pool.Name]
}

func (f *fakeControl) Survey(snapshot *state.Snapshot) *evidence.Survey {
	if f.survey == nil {
		return &evidence.Survey{}
	}
	return f.survey(snapshot)
}

func (f *fakeControl) DeleteVM(_ context.Context, request lifecycle.DeleteVM) (operation.Operation, error) {
	return f.deleteVM(request)
}

func (f *fakeControl) DeleteDisk(_ context.Context, request volumes.DeleteDisk) error {
	return f.deleteDisk(request)
}

func (f *fakeControl) GrowDisk(_ context.Context, request volumes.GrowDisk) (model.Resource, error) {
	return f.growDisk(request)
}

func (f *fakeControl) ImportImage(_ context.Context, request volumes.ImportImage) (model.Resource, error) {
	return f.importImage(request)
}

func (f *fakeControl) DeleteImage(_ context.Context, request volumes.DeleteImage) error {
	return f.deleteImage(request)
}

func (f *fakeControl) Spread(customer string) (plans.Spread, error) { return f.spread(customer) }

func (f *fakeControl) Console(ctx context.Context, vm string, force bool, stream io.ReadWriteCloser) error {
	return f.console(ctx, vm, force, stream)
}

func (f *fakeControl) StartVMs(_ context.Context, request lifecycle.StartVMs) ([]lifecycle.StartedVM, error) {
	return f.batch(request)
}

func (f *fakeControl) DrainNode(_ context.Context, request plans.DrainNode) (plans.Drained, error) {
	return f.drain(request)
}

func (f *fakeControl) UndrainNode(_ context.Context, request plans.UndrainNode) (model.Plan, error) {
	return f.undrain(request)
}

func (f *fakeControl) ProposePlan(_ context.Context, request plans.ProposePlan) (model.Plan, error) {
	return f.propose(request)
}

func (f *fakeControl) ApplyPlan(_ context.Context, request plans.ApplyPlan) (model.Plan, error) {
	return f.ended("apply", request)
}

func (f *fakeControl) DiscardPlan(_ context.Context, request plans.DiscardPlan) (model.Plan, error) {
	return f.ended("discard", request)
}

func (f *fakeControl) CancelPlan(_ context.Context, request plans.CancelPlan) (model.Plan, error) {
	return f.ended("cancel", request)
}

func (f *fakeControl) LastPass(cluster string) (plans.LastPass, bool) {
	pass, known := f.passes[cluster]
	return pass, known
}

func (f *fakeControl) AddVM(_ context.Context, request lifecycle.AddVM) (lifecycle.Added, error) {
	return f.add(request)
}

func (f *fakeControl) StartVM(_ context.Context, request lifecycle.StartVM) (lifecycle.Started, error) {
	return f.start(request)
}

func (f *fakeControl) ActOnVM(_ context.Context, request lifecycle.ActOnVM) (operation.Operation, error) {
	return f.act(request)
}

func (f *fakeControl) Judge(vm model.VM, purpose placement.Purpose, _ string) (lifecycle.Judgement, error) {
	if f.judge == nil {
		return lifecycle.Judgement{Decision: placement.Decision{Outcome: placement.Placed}}, nil
	}
	decision, err := f.judge(vm, purpose)
	return lifecycle.Judgement{Decision: decision}, err
}

func (f *fakeControl) MigrateVM(_ context.Context, request lifecycle.MigrateVM) (lifecycle.Migration, error) {
	return f.migrate(request)
}

func (f *fakeControl) CancelOperation(_ context.Context, id, caller string) (operation.Operation, error) {
	f.cancelled = id + " by " + caller
	return operation.Operation{ID: id, Cancel: true}, nil
}

// wantRefusal wants an error with this code of the detail, about this subject, with a next step.
func wantRefusal(t *testing.T, err error, code, subject string) {
	t.Helper()
	detail := rpc.Detail(err)
	if detail == nil {
		t.Fatalf("want a refusal %s, got %v", code, err)
	}
	if detail.GetCode() != code || subject != "" && detail.GetSubject() != subject {
		t.Errorf("refused as %s about %q (%v), want %s about %q", detail.GetCode(), detail.GetSubject(), err, code, subject)
	}
	if detail.GetNextStep() == "" {
		t.Errorf("no next step: %v", err)
	}
	if want := refusal.New(code, subject, "", "").Code(); connect.CodeOf(err) != want && code != rpc.Unavailable {
		t.Errorf("status %s, want %s", connect.CodeOf(err), want)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// storeWith is a state with these members, without any consensus.
func storeWith(t *testing.T, members ...model.Member) *state.Store {
	t.Helper()
	store := state.NewStore()
	command := state.Command{Key: "members", Kind: "test", At: time.Now(), Members: members}
	for _, member := range members {
		command.Expect = append(command.Expect, state.Expectation{Table: state.Members, ID: member.ID})
	}
	data, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if result := store.FSM().Apply(&raft.Log{Index: 1, Type: raft.LogCommand, Data: data}).(state.Result); result.Refusal != nil {
		t.Fatal(result.Refusal)
	}
	return store
}

// decisions are made of pairs of ID and VM.
func decisions(pairs ...string) []placement.Decision {
	var all []placement.Decision
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, placement.Decision{
			ID: pairs[i], At: time.Now().UTC(), Outcome: placement.Placed, Request: placement.Request{VMName: pairs[i+1]},
			Nodes: []placement.NodeResult{{Node: "n1", Name: "hv1", Admitted: true}},
		})
	}
	return all
}

// commandOf keeps decisions as they are.
func commandOf(all ...placement.Decision) state.Command {
	return state.Command{Kind: "test", Decisions: all}
}
