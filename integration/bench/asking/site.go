package asking

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/api"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/consensus"
	"berth/coordinator/control"
	"berth/coordinator/control/lead"
	"berth/coordinator/identities"
	"berth/coordinator/inventory"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/integration/bench/testbed"
	"berth/integration/simagent/inprocess"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	cluster   = "asking"
	member    = "c1"
	localhost = "127.0.0.1"
	life      = 24 * time.Hour
)

// site is a coordinator in this process: log on disk, decisions, API and mutual TLS are real. It is alone, so a call does not wait for
// others, and what the asking takes weighs more than with three.
type site struct {
	authority *pki.Authority
	folder    string
	store     *state.Store
	log       *consensus.Consensus
	inventory *inventory.Store
	control   *control.Control
	nodes     *inprocess.Agents
	config    api.Config

	own      pki.Files
	operator pki.Files
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	closers  []func() error
}

// raise makes a site with nodes that VMs can be placed on, and as many identities on record.
func raise(ctx context.Context, folder string, nodes, recorded int) (_ *site, err error) {
	s := &site{folder: folder, store: state.NewStore(), inventory: inventory.New(time.Now, hclog.NewNullLogger())}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.authority, err = pki.NewAuthority(cluster, time.Now()); err != nil {
		return nil, err
	}
	if err := s.begin(running); err != nil {
		return nil, err
	}
	if err := s.fill(ctx, nodes, recorded); err != nil {
		return nil, err
	}
	s.ended.Go(func() {
		for testbed.Pause(running, reportEvery) == nil {
			for n := range nodes {
				s.sample(agent(n).ID)
			}
		}
	})
	return s, nil
}

// begin opens the log, and lets the member lead.
func (s *site) begin(running context.Context) error {
	var err error
	if s.own, err = s.certify(pki.RolePeer, member); err != nil {
		return err
	}
	if s.operator, err = s.certify(pki.RoleOperator, "admin"); err != nil {
		return err
	}
	address, err := testbed.FreeAddresses(1)
	if err != nil {
		return err
	}
	settings := consensus.Config{
		DataDir: filepath.Join(s.folder, "raft"), MemberID: member, ClusterID: cluster, Bind: address[0], Advertise: address[0], TLS: s.own,
		Logger: hclog.NewNullLogger(), Stability: 50 * time.Millisecond, Fatal: func(error) {}, // its calls tell
		Seals: func() (seal.Keys, error) { return seal.Keys{{7}}, nil },
	}
	if err := consensus.Bootstrap(settings); err != nil {
		return err
	}
	if s.log, err = consensus.Open(settings, s.store); err != nil {
		return err
	}
	vault, err := answer.NewVault(s.authority, s.authority.CertificatePEM(), nil, func(*pki.Authority) error { return nil })
	if err != nil {
		return err
	}
	s.nodes = &inprocess.Agents{
		Store: s.store, Inventory: s.inventory, Answered: func(answer operation.Answer) { s.control.Answered(answer) },
	}
	s.control = control.New(control.Config{Config: lead.Config{
		Store: s.store, Proposer: s.log, Agents: s.nodes, Inventory: s.inventory, Logger: hclog.NewNullLogger(), Now: time.Now,
		Random: rand.Uint64,
	}})
	s.config = api.Config{
		Config: answer.Config{
			Self: member, SelfName: member, Vault: vault, Hypervisors: keyring.New(nil), Store: s.store, Consensus: s.log,
			Inventory: s.inventory, Now: time.Now, Log: hclog.NewNullLogger(),
		},
		Control: s.control, Imports: s.folder, Removed: s.nodes.Removed, Limits: gate.Limits{Rate: -1},
	}
	s.ended.Go(func() {
		end := func() {}
		for change := range s.log.Leadership() {
			end()
			end = func() {}
			if change.Leading {
				leading, stop := context.WithCancel(running)
				done := make(chan struct{})
				go func() { defer close(done); s.control.Lead(leading, change.Term) }()
				end = func() { stop(); <-done }
			}
		}
		end()
	})
	return nil
}

// certify makes a key with a certificate for somebody, whose ID is its name.
func (s *site) certify(role pki.Role, name string) (pki.Files, error) {
	request, key, err := pki.NewRequest(name)
	if err != nil {
		return pki.Files{}, err
	}
	who := pki.Identity{Role: role, ID: name, Name: name, ClusterID: cluster}
	certificate, err := s.authority.Sign(request, who, []string{localhost}, time.Now(), life)
	if err != nil {
		return pki.Files{}, err
	}
	at := func(part string) string { return filepath.Join(s.folder, name+"."+part) }
	files := pki.Files{CA: at("ca"), Certificate: at("pem"), Key: at("key")}
	return files, errors.Join(
		os.MkdirAll(s.folder, 0o700), os.WriteFile(files.CA, s.authority.CertificatePEM(), 0o600),
		os.WriteFile(files.Certificate, certificate, 0o600), os.WriteFile(files.Key, key, 0o600),
	)
}

// write commits a change of the measurement itself.
func (s *site) write(ctx context.Context, command state.Command) error {
	command.At = time.Now().UTC()
	command.Key = answer.NewID(command.At)
	if command.Kind == "" {
		command.Kind = "bench"
	}
	result, err := s.log.Propose(ctx, command)
	if err == nil && result.Refusal != nil {
		err = errors.New(result.Refusal.Message)
	}
	return err
}

// batch is how many records one change makes.
const batch = 500

// fill writes the records, and has each node report.
func (s *site) fill(ctx context.Context, nodes, recorded int) error {
	raised := func(ctx context.Context) error { return s.write(ctx, state.RaiseLevel(state.FeatureLevel)) }
	if err := testbed.Await(ctx, "the leader", 30*time.Second, raised); err != nil {
		return err
	}
	if err := s.write(ctx, state.Command{
		Expect:  []state.Expectation{{Table: state.Members, ID: member}},
		Members: []model.Member{{ID: member, Name: member, JoinedAt: time.Now()}},
	}); err != nil {
		return err
	}
	admin, err := bearer(s.operator)
	if err != nil {
		return err
	}
	begun, due := identities.Begin(s.store.Snapshot(), []pki.Bearer{admin}, time.Now().UTC())
	if !due {
		return errors.New("records of identities do not begin")
	}
	if err := s.write(ctx, begun); err != nil {
		return err
	}
	for first := 0; first < recorded; first += batch {
		var command state.Command
		for n := first; n < min(first+batch, recorded); n++ {
			identities.Put(&command, identities.New(agent(n), time.Now().UTC()))
		}
		if err := s.write(ctx, command); err != nil {
			return err
		}
	}
	var command state.Command
	for n := range nodes {
		id := agent(n).ID
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: id})
		command.Nodes = append(command.Nodes, model.Node{
			ID: id, Name: id, Cluster: model.DefaultCluster, HostUUID: "host-" + id, MachineID: "machine-" + id, EnrolledAt: time.Now().UTC(),
		})
	}
	if err := s.write(ctx, command); err != nil {
		return err
	}
	for n := range nodes {
		if err := s.join(agent(n).ID); err != nil {
			return err
		}
	}
	return nil
}

// bearer is who a certificate is for.
func bearer(files pki.Files) (pki.Bearer, error) {
	text, err := os.ReadFile(files.Certificate)
	if err != nil {
		return pki.Bearer{}, err
	}
	return pki.BearerOfPEM(text)
}

// leaf is the certificate of a node, as far as a coordinator reads it that TLS has handed it on to. No key is made for it.
func leaf(n int) *x509.Certificate {
	name := fmt.Sprintf("node%05d", n)
	names := &url.URL{Scheme: "berth", Host: cluster, Path: "/" + string(pki.RoleAgent) + "/" + name}
	return &x509.Certificate{
		RawSubjectPublicKeyInfo: []byte("key of " + name), Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{names}, NotAfter: ends,
	}
}

// ends is when the certificates of nodes end.
var ends = time.Now().Add(life).UTC().Truncate(time.Second)

// agent is who a node of the site is.
func agent(n int) pki.Bearer {
	who, err := pki.BearerOf(leaf(n))
	if err != nil {
		panic(err) // every number makes a name
	}
	return who
}

// door serves the API behind a keeper, and gives the operator's client to it.
func (s *site) door(ctx context.Context, keeper *gate.Keeper) (berthv1connect.BerthServiceClient, error) {
	config := s.config
	config.Keeper = keeper
	secure, err := pki.ServerConfig(s.own, tls.VerifyClientCertIfGiven)
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", localhost+":0")
	if err != nil {
		return nil, err
	}
	served := api.New(config)
	server := rpc.NewServer("", served.Handler(), secure, hclog.NewNullLogger())
	s.ended.Go(func() { _ = server.ServeTLS(listener, "", "") }) // it ends when it is closed
	asOperator, err := pki.ClientConfig(s.operator, pki.RolePeer)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	client := rpc.NewHTTPClient(asOperator)
	s.closers = append(s.closers, func() error {
		client.CloseIdleConnections()
		served.Stop()
		return server.Close()
	})
	return berthv1connect.NewBerthServiceClient(client, "https://"+listener.Addr().String()), nil
}

func (s *site) close() error {
	var failed error
	for _, one := range s.closers {
		failed = errors.Join(failed, one())
	}
	s.cancel()
	if s.log != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		failed = errors.Join(failed, s.log.Shutdown(ctx))
	}
	s.ended.Wait()
	return failed
}

// start asks for a VM, and waits until what follows from it is over. Only the call is timed.
func (s *site) start(ctx context.Context, client berthv1connect.BerthServiceClient, name string, dry bool) (time.Duration, error) {
	request := connect.NewRequest(&berthv1.StartVMRequest{
		Name: name, DryRun: dry, RequestId: name, Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
	})
	begun := time.Now()
	started, err := client.StartVM(ctx, request)
	took := time.Since(begun)
	if err != nil || dry {
		return took, err
	}
	for {
		x := s.store.Snapshot()
		if op, known := x.Operation(started.Msg.GetOperation().GetId()); known && !op.Live() {
			return took, nil
		}
		select {
		case <-x.Changed():
		case <-ctx.Done():
			return took, ctx.Err()
		}
	}
}

// join opens the session of a node, which tells how it is.
func (s *site) join(node string) error {
	err := s.nodes.Join(node, &berthv1.InventoryReport{Node: &berthv1.NodeInventory{
		MemoryBytes: int64(testbed.SimulatedSize.Memory), Cpus: int32(testbed.SimulatedSize.CPUs), DomainTypes: []string{"kvm"},
		MigrationUri: "qemu+tls://" + node + "/system", HostUuid: "host-" + node,
	}})
	if err == nil {
		s.sample(node)
	}
	return err
}

func (s *site) sample(node string) {
	s.nodes.Sample(node, func(uint64) *berthv1.NodeTelemetry {
		available, load, busy := int64(testbed.SimulatedSize.Memory), 1.0, 0.1
		return &berthv1.NodeTelemetry{
			MemoryAvailableBytes: &available, Load1: &load, CpuBusyRatio: &busy,
			CpuPressure: &berthv1.Pressure{}, MemoryPressure: &berthv1.Pressure{},
		}
	})
}

// reportEvery is how often all nodes report: often, so that a slow machine takes none for silent.
const reportEvery = 500 * time.Millisecond
