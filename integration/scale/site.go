package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/api"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/consensus"
	"berth/coordinator/control"
	"berth/coordinator/control/lead"
	"berth/coordinator/inventory"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/simagent/inprocess"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/units"
)

// boot is what the hosts run under, which their VMs are on record with: a leader has nothing to write down of them.
const boot = inprocess.Boot

// vmsANode is how many VMs a node has at the beginning.
const vmsANode = 10

// site is one coordinator that leads, with its nodes.
type site struct {
	store     *state.Store
	log       *localLog
	inventory *inventory.Store
	agents    *localAgents
	control   *control.Control
	api       *api.Server

	cancel context.CancelFunc
	ended  sync.WaitGroup
	dir    string
	rested bool // its leader has led for a while

	profile profile
}

// raise makes a site of so many nodes, all of them heard.
func raise(nodes int) (*site, error) {
	dir, err := os.MkdirTemp("", "berth-scale-")
	if err != nil {
		return nil, err
	}
	s := &site{store: state.NewStore(), dir: dir}
	s.log = &localLog{store: s.store}
	s.inventory = inventory.New(time.Now, hclog.NewNullLogger())
	s.agents = &localAgents{inprocess.Agents{
		Store: s.store, Inventory: s.inventory, Answered: func(answer operation.Answer) { s.control.Answered(answer) },
	}}
	authority, err := pki.NewAuthority("scale", time.Now())
	if err != nil {
		return nil, err
	}
	vault, err := answer.NewVault(authority, authority.CertificatePEM(), nil, func(*pki.Authority) error { return nil })
	if err != nil {
		return nil, err
	}
	s.control = control.New(control.Config{Fences: goodFences{}, Config: lead.Config{
		Store: s.store, Proposer: s.log, Agents: s.agents, Inventory: s.inventory, Logger: hclog.NewNullLogger(), Now: time.Now,
		Random: rand.Uint64,
	}})
	s.api = api.New(api.Config{
		Config: answer.Config{
			Self: "c1", SelfName: "c1", Vault: vault, Hypervisors: keyring.New(nil), Store: s.store,
			Consensus: s.log, Inventory: s.inventory, Now: time.Now,
			Log: hclog.NewNullLogger(),
		},
		Control: s.control, Imports: dir, Removed: s.agents.Removed, Keeper: gate.NewKeeper(s.store, time.Now),
	})
	if err := s.fill(nodes); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.ended.Go(func() { s.control.Lead(ctx, 1) })
	return s, nil
}

func (s *site) close() error {
	s.cancel()
	s.ended.Wait()
	s.api.Stop()
	return os.RemoveAll(s.dir)
}

// begun is when the first node of a site was enrolled.
var begun = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// nodeID is an ID as enrolment gives them, of nodes that come a second or two after each other: what a decision writes into the
// log depends on how much of an ID tells nothing new.
func nodeID(n int) string {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	return model.NewID(begun.Add(time.Duration(n)*2*time.Second+time.Duration(random.IntN(1999))*time.Millisecond), random.Uint64())
}

func vmName(n, v int) string { return fmt.Sprintf("vm-%05d-%02d", n, v) }

func vmID(n, v int) string {
	random := rand.New(rand.NewPCG(uint64(v)+2, uint64(n)))
	return model.NewUUID(random.Uint64(), random.Uint64())
}

// fill makes the records, and has each node tell its inventory and a sample.
func (s *site) fill(nodes int) error {
	s.log.change(state.RaiseLevel(state.FeatureLevel))
	s.log.change(state.Command{
		Expect: []state.Expectation{{Table: state.Members, ID: "c1"}},
		Members: []model.Member{{
			ID: "c1", Name: "c1", APIAddress: "127.0.0.1:7420", AgentAddress: "127.0.0.1:7421", RaftAddress: "127.0.0.1:7422", JoinedAt: time.Now(),
		}},
	})
	for first := 0; first < nodes; first += 100 {
		command := state.Command{Kind: "fill"}
		for n := first; n < min(first+100, nodes); n++ {
			id := nodeID(n)
			command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: id})
			command.Nodes = append(command.Nodes, model.Node{
				ID: id, Name: fmt.Sprintf("node-%05d", n), Cluster: model.DefaultCluster, HostUUID: "host-" + id, MachineID: "machine-" + id,
				EnrolledAt: time.Now(), Fence: model.FenceDevice{Method: model.FenceCommand, Program: "fence_ipmilan", Machine: "host-" + id},
			})
			for v := range vmsANode {
				vm := vmID(n, v)
				command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm})
				command.VMs = append(command.VMs, model.VM{
					ID: vm, Name: vmName(n, v), Desired: model.Running, Holder: id, LastNode: id, Epoch: 1, LastEpoch: 1, CreatedAt: time.Now(),
					StartedAt: time.Now(), Whereabouts: model.Whereabouts{Boot: boot},
					Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/boot/vmlinuz"},
				})
			}
		}
		if result := s.log.change(command); result.Refusal != nil {
			return errors.New(result.Refusal.Message)
		}
	}
	for n := range nodes {
		s.agents.join(n)
	}
	return nil
}

// localLog commits by applying: the log of a member that is alone and has no disk.
type localLog struct {
	mu    sync.Mutex
	store *state.Store
	index uint64
	bytes int
	plain int // bytes before entries were packed
	keep  bool
	kept  [][]byte // encoded commands, while they are to be kept
}

// change commits a command of the measurement itself.
func (l *localLog) change(command state.Command) state.Result {
	command.Key, command.At = answer.NewID(time.Now()), time.Now()
	if command.Kind == "" {
		command.Kind = "scale"
	}
	result, err := l.Propose(context.Background(), command)
	if err != nil {
		return state.Result{Refusal: &state.Refusal{Message: err.Error()}}
	}
	return result
}

func (l *localLog) Propose(_ context.Context, command state.Command) (state.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.store.Snapshot()
	data, read, err := command.Lean(now).Written()
	if err != nil {
		return state.Result{}, err
	}
	l.index++
	l.plain += len(data)
	if l.keep {
		l.kept = append(l.kept, data)
	}
	data = state.Entry([][]byte{data}, now.FeatureLevel())
	l.bytes += len(data)
	defer l.store.Foresee(data, []*state.Command{read})()
	return l.store.FSM().Apply(&raft.Log{Index: l.index, Type: raft.LogCommand, Data: data}).(state.Result), nil
}

func (l *localLog) ProposeTogether(ctx context.Context, commands []state.Command) []consensus.Answer {
	answers := make([]consensus.Answer, len(commands))
	for i := range commands {
		answers[i].Result, answers[i].Err = l.Propose(ctx, commands[i])
	}
	return answers
}

func (l *localLog) Barrier(context.Context) error     { return nil }
func (l *localLog) VerifyRead(context.Context) error  { return nil }
func (l *localLog) Established(context.Context) error { return nil }
func (l *localLog) IsLeader() bool                    { return true }
func (l *localLog) Leader() (string, bool)            { return "c1", true }
func (l *localLog) Stats() consensus.Stats {
	return consensus.Stats{State: "leader", Leader: "c1", Term: 1}
}
func (l *localLog) Configuration() []consensus.Server    { return nil }
func (l *localLog) Heard(string, consensus.Report)       {}
func (l *localLog) Transfer(context.Context) error       { return errAlone }
func (l *localLog) Remove(context.Context, string) error { return errAlone }
func (l *localLog) AddNonvoter(context.Context, string, string) error {
	return errAlone
}
func (l *localLog) SaveSnapshot(context.Context, io.Writer) error { return errAlone }
func (l *localLog) RestoreSnapshot(context.Context, io.Reader, bool) error {
	return errAlone
}

var errAlone = errors.New("this member is alone")

// localAgents are the agents of the site's nodes.
type localAgents struct{ inprocess.Agents }

func (a *localAgents) join(n int) {
	node := nodeID(n)
	report := &berthv1.InventoryReport{Node: &berthv1.NodeInventory{
		MemoryBytes: 256 << 30, Cpus: 64, DomainTypes: []string{"kvm"}, MigrationUri: "qemu+tls://" + node + "/system", HostUuid: "host-" + node,
	}}
	for v := range vmsANode {
		report.Domains = append(report.Domains, inprocess.Running(vmID(n, v), vmName(n, v), 1, model.Size{Memory: units.GiB, VCPUs: 1}))
	}
	if err := a.Join(node, report); err != nil {
		panic(err)
	}
	a.sample(node, 0)
}

// sample has a node tell how it is.
func (a *localAgents) sample(node string, i int) {
	a.Sample(node, func(sequence uint64) *berthv1.NodeTelemetry {
		random := rand.New(rand.NewPCG(uint64(i), sequence))
		available, load, busy := int64(200<<30+random.IntN(8<<18)<<12), float64(random.IntN(1600))/100, random.Float64()/2
		pressure := func(most int) *berthv1.Pressure {
			return &berthv1.Pressure{SomeAvg10: float64(max(random.IntN(2*most)-most, 0)) / 100}
		}
		return &berthv1.NodeTelemetry{
			MemoryAvailableBytes: &available, Load1: &load, CpuBusyRatio: &busy, CpuPressure: pressure(500), MemoryPressure: pressure(20),
		}
	})
}

// report has the next node tell how it is.
func (a *localAgents) report(i int) { a.sample(nodeID(i%a.Count()), i) }

// reportAll has every node tell how it is.
func (a *localAgents) reportAll() {
	for i := range a.Count() {
		a.report(i)
	}
}

// goodFences are fence devices that answer at once, and as they should.
type goodFences struct{}

func (goodFences) Off(context.Context, model.FenceDevice) error        { return nil }
func (goodFences) On(context.Context, model.FenceDevice) (bool, error) { return true, nil }
func (goodFences) Reach(context.Context, []string) string              { return "" }
func (goodFences) Identity(_ context.Context, device model.FenceDevice) (string, error) {
	return device.Machine, nil
}
