package crew

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"berth/integration/bench/testbed"
	"berth/integration/simagent"
)

// role is the first argument of a process of the crew; the second is the socket at which it is told what to do.
const role = "simulated-agents"

// dialWithin is as long as an agent waits for a connection.
const dialWithin = 3 * time.Second

// Child does the work of a process of the crew and ends it, if this is one. Else it does nothing.
func Child() {
	if len(os.Args) != 3 || os.Args[1] != role {
		return
	}
	if err := serve(os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve does what it is told at a socket until the other side hangs up.
func serve(socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName(role, &Agents{connections: map[net.Conn]bool{}}); err != nil {
		return err
	}
	server.ServeConn(conn)
	return nil
}

// Agents are those of one process. Its methods are called from outside, as package net/rpc demands.
type Agents struct {
	fleet  simagent.Fleet
	agents []*simagent.Agent
	first  int         // number of the first one
	one    atomic.Bool // all call from one address

	reporters []*reporter
	silence   func() // ends them

	mu          sync.Mutex
	connections map[net.Conn]bool
}

// Recruits are nodes to enrol with one token.
type Recruits struct {
	Coordinators  []string // one of them leads
	Token, Folder string
	First, Count  int
}

// Name is that of a node, by its number.
func Name(node int) string { return fmt.Sprintf("node%05d", node) }

// Enrol enrols nodes, one after the other: several at a time from one address look like somebody who guesses tokens.
func (a *Agents) Enrol(r Recruits, _ *bool) error {
	if len(a.agents) == 0 {
		a.first = r.First
	}
	for n := r.First; n < r.First+r.Count; n++ {
		name := Name(n)
		tries := 0
		identity, err := testbed.Patiently(context.Background(), func() (simagent.Identity, error) {
			tries++ // another one may lead by now
			return simagent.Enrol(context.Background(), r.Coordinators[tries%len(r.Coordinators)], r.Token, name, filepath.Join(r.Folder, name))
		})
		if err != nil {
			return err
		}
		agent, err := a.fleet.Add(identity, testbed.SimulatedSize, hclog.NewNullLogger())
		if err != nil {
			return err
		}
		agent.CallBy(a.dial(n))
		a.agents = append(a.agents, agent)
	}
	return nil
}

// Run lets all agents look for the leader, all at once. They go on until the process ends.
func (a *Agents) Run(bool, *bool) error {
	for _, agent := range a.agents {
		go func() { _ = agent.Run(context.Background()) }() // it never ends
	}
	return nil
}

// Reports are what nodes are to send that do nothing else.
type Reports struct {
	Address string
	Every   time.Duration
	Nodes   int // those of lower numbers
}

// Report lets nodes report, all at once, until they are silenced.
func (a *Agents) Report(r Reports, _ *bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	a.reporters = nil
	for _, agent := range a.agents[:min(max(r.Nodes-a.first, 0), len(a.agents))] {
		one := &reporter{identity: agent.Identity, address: r.Address, every: r.Every}
		a.reporters = append(a.reporters, one)
		ended.Go(func() { one.run(ctx) })
	}
	a.silence = func() { cancel(); ended.Wait() }
	return nil
}

// Silence ends what Report has begun.
func (a *Agents) Silence(bool, *bool) error {
	a.silence()
	a.reporters = nil
	return nil
}

// Gather has all agents call from one address from now on, as behind a NAT, or each from its own.
func (a *Agents) Gather(one bool, _ *bool) error {
	a.one.Store(one)
	return nil
}

// Count is what the agents of a process have seen.
type Count struct {
	In       int // have been welcomed by a leader since the moment that was asked for
	Open     int // have a session; of nodes that do nothing but report
	Last     time.Time
	Welcomes int // ever
	Samples  int // ever
}

// Count counts the agents that were welcomed since a moment.
func (a *Agents) Count(since time.Time, count *Count) error {
	*count = Count{}
	welcomed := func(last time.Time, times int) {
		if last.After(since) {
			count.In++
		}
		if last.After(count.Last) {
			count.Last = last
		}
		count.Welcomes += times
	}
	for _, agent := range a.agents {
		welcomed(agent.Welcomed())
		count.Samples += agent.Samples()
	}
	for _, one := range a.reporters {
		open, last, times := one.state()
		welcomed(last, times)
		if open {
			count.Open++
		}
		count.Samples += int(one.sent.Load())
	}
	return nil
}

// Drop breaks all connections, without a farewell.
func (a *Agents) Drop(bool, *bool) error {
	a.mu.Lock()
	var all []net.Conn
	for conn := range a.connections {
		all = append(all, conn)
	}
	a.mu.Unlock()
	for _, conn := range all {
		_ = conn.(*connection).Conn.(*net.TCPConn).SetLinger(0) // what is not sent is lost
		_ = conn.Close()                                        // its agent sees it
	}
	return nil
}

// Domains are the nodes that have each domain, by UUID.
func (a *Agents) Domains(_ bool, on *map[string][]string) error {
	*on = map[string][]string{}
	for _, agent := range a.agents {
		for _, domain := range agent.Domains() {
			(*on)[domain.UUID] = append((*on)[domain.UUID], agent.Name)
		}
	}
	return nil
}

// everybody is the address behind which all are gathered.
var everybody = net.IPv4(127, 8, 0, 1)

// ownAddress is one on loopback that no other agent has.
func ownAddress(n int) net.IP {
	return binary.BigEndian.AppendUint32(nil, 127<<24|16<<16+uint32(n))
}

// dial connects an agent from its address.
func (a *Agents) dial(n int) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		from := ownAddress(n)
		if a.one.Load() {
			from = everybody
		}
		dialer := net.Dialer{Timeout: dialWithin, LocalAddr: &net.TCPAddr{IP: from}, Control: portLater}
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: conn, agents: a}
		a.mu.Lock()
		a.connections[c] = true
		a.mu.Unlock()
		return c, nil
	}
}

// portLater lets the system choose the port when it connects: a port of one address can then be used towards several coordinators.
func portLater(_, _ string, raw syscall.RawConn) error {
	var refused error
	err := raw.Control(func(file uintptr) {
		refused = unix.SetsockoptInt(int(file), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	return errors.Join(err, refused)
}

// connection is taken off the list when it ends.
type connection struct {
	net.Conn
	agents *Agents
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.agents.mu.Lock()
	delete(c.agents.connections, c)
	c.agents.mu.Unlock()
	return c.Conn.Close()
}
