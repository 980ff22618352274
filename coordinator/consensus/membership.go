package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/doorkeeper"
)

// When a joined member may vote: it has answered within reachable, its log is at most maxBehind entries short, and both
// have held for Config.Stability, and its state is not known to be another one. The figures are those of Consul's
// autopilot.
const (
	reachable = 2 * time.Second
	maxBehind = 250
	leadEvery = 200 * time.Millisecond // looked at
)

// Server is one member of the Raft configuration.
type Server struct {
	ID      string
	Address string
	Voter   bool
}

// membership is who takes part, and who may speak to this member.
type membership struct{ *self }

// Configuration is the members as this one knows them, committed or not, in the order in which they joined.
func (c *membership) Configuration() []Server {
	var servers []Server
	for _, server := range c.servers() {
		servers = append(servers, Server{
			ID: string(server.ID), Address: string(server.Address), Voter: server.Suffrage == raft.Voter,
		})
	}
	return servers
}

// Joined tells whether this member is in the configuration that it knows, voter or not. One that is not has to ask the
// leader to be added.
func (c *membership) Joined() bool {
	_, joined := c.server(c.cfg.MemberID)
	return joined
}

func (c *self) servers() []raft.Server {
	return c.raft.Load().GetConfiguration().Configuration().Servers
}

func (c *self) server(id string) (raft.Server, bool) {
	for _, server := range c.servers() {
		if string(server.ID) == id {
			return server, true
		}
	}
	return raft.Server{}, false
}

// AddNonvoter adds a member that receives the log and does not vote; the leader lets it vote once it keeps up. Adding a
// member again changes its address only. The error is ErrNotLeader, ErrUnknown or ctx's own.
func (c *membership) AddNonvoter(ctx context.Context, id, address string) error {
	if id == "" || address == "" {
		return errors.New("a member needs an ID and an address")
	}
	for _, server := range c.servers() {
		if string(server.Address) == address && string(server.ID) != id {
			return fmt.Errorf("%s is the address of member %s already", address, server.ID)
		}
	}
	if server, known := c.server(id); known && string(server.Address) == address {
		return notLeader(c.raft.Load().State())
	}
	return c.change(ctx, func(r *raft.Raft) raft.Future {
		return r.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, 0)
	})
}

// change makes one change of the configuration. Raft makes them one at a time.
func (c *membership) change(ctx context.Context, start func(*raft.Raft) raft.Future) error {
	r := c.raft.Load()
	if err := notLeader(r.State()); err != nil {
		return err
	}
	return c.await(ctx, func() error {
		if err := start(r).Error(); err != nil {
			return outcome(err)
		}
		return nil
	})
}

// Promote waits until the leader has let a joined member vote. The error is ErrNotLeader, ErrNoMember or ctx's own.
func (c *membership) Promote(ctx context.Context, id string) error {
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		server, known := c.server(id)
		switch {
		case !c.IsLeader():
			return ErrNotLeader
		case !known:
			return fmt.Errorf("%w: %s", ErrNoMember, id)
		case server.Suffrage == raft.Voter:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.stopped:
			return ErrNotLeader
		}
	}
}

// promoteJoined lets a member vote that has been healthy for long enough; since tells from when on. One at a time: the
// next one is looked at when the last change is committed.
func (c care) promoteJoined(ctx context.Context, since map[raft.ServerID]time.Time) error {
	for _, server := range c.servers() {
		if server.Suffrage == raft.Voter || c.lag(server.ID) != "" {
			delete(since, server.ID)
			continue
		}
		if since[server.ID].IsZero() {
			since[server.ID] = time.Now()
		}
		if time.Since(since[server.ID]) < c.cfg.Stability {
			continue
		}
		err := c.change(ctx, func(r *raft.Raft) raft.Future { return r.AddVoter(server.ID, server.Address, 0, 0) })
		if err != nil {
			return fmt.Errorf("make %s a voter: %w", server.ID, err)
		}
		return nil
	}
	return nil
}

// Remove takes a member out of the configuration. It refuses, with ErrQuorum, when those left could not decide anything:
// when no voter or no majority of voters that answer would be left. A leader that removes itself stops leading. The
// error may also be ErrNotLeader, ErrNoMember, ErrUnknown or ctx's own.
func (c *membership) Remove(ctx context.Context, id string) error {
	if err := notLeader(c.raft.Load().State()); err != nil {
		return err
	}
	server, known := c.server(id)
	if !known {
		return fmt.Errorf("%w: %s", ErrNoMember, id)
	}
	if server.Suffrage == raft.Voter {
		if err := c.checkQuorumWithout(server.ID); err != nil {
			return err
		}
	}
	return c.change(ctx, func(r *raft.Raft) raft.Future { return r.RemoveServer(server.ID, 0, 0) })
}

func (c *membership) checkQuorumWithout(id raft.ServerID) error {
	voters, answering := 0, 0
	for _, server := range c.servers() {
		if server.Suffrage != raft.Voter || server.ID == id {
			continue
		}
		voters++
		seen, known := c.transport.ends.of(server.ID)
		if string(server.ID) == c.cfg.MemberID || known && time.Since(seen.at) < reachable {
			answering++
		}
	}
	if quorum := voters/2 + 1; answering < quorum {
		return fmt.Errorf("%w: without %s %d of %d voters answer, %d are needed", ErrQuorum, id, answering, voters, quorum)
	}
	return nil
}

// admit implements admission: members of the configuration may speak. So may every coordinator of the cluster while this
// one is joining, and while it knows no leader: it may have missed that the next one was added, and raft itself gives no
// vote to strangers. Once it follows such a one, that one has to be able to tell it.
func (c *membership) admit(member string) error {
	r := c.raft.Load()
	if r == nil {
		return nil
	}
	servers := c.servers()
	if len(servers) == 0 {
		return nil
	}
	if _, known := c.server(member); known {
		return nil
	}
	if _, leader := r.LeaderWithID(); leader == "" || string(leader) == member {
		return nil
	}
	return fmt.Errorf("%w: %s is not in the Raft configuration", ErrNoMember, member)
}

// memberAt implements admission.
func (c *membership) memberAt(address raft.ServerAddress) string {
	if c.raft.Load() == nil {
		return ""
	}
	for _, server := range c.servers() {
		if server.Address == address {
			return string(server.ID)
		}
	}
	return ""
}

// memberFrom implements admission.
func (c *membership) memberFrom(address string) bool {
	if c.raft.Load() == nil {
		return false
	}
	for _, server := range c.servers() {
		host, _, err := net.SplitHostPort(string(server.Address))
		if err != nil {
			continue
		}
		last := []string{host}
		if net.ParseIP(host) == nil && c.cfg.Names != nil {
			last = c.cfg.Names.Last(host)
		}
		for _, one := range last {
			if at, err := netip.ParseAddr(one); err == nil && doorkeeper.Source(at) == address {
				return true
			}
		}
	}
	return false
}

// MemberFrom tells whether connections from an address, as a doorkeeper counts it, may be those of a member.
func (c *membership) MemberFrom(address string) bool { return c.memberFrom(address) }
