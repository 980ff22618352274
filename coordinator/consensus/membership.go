package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/doorkeeper"
	"berth/coordinator/identities"
	"berth/shared/pki"
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

// told is what this member was told by a leader: the hashes of the keys of the members of its configuration. A member that was away
// may have neither the newest configuration nor the newest keys.
type told struct {
	mu   sync.Mutex
	keys []string
	// unknown is when somebody was refused who may be one of them.
	unknown time.Time
}

func (t *told) has(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.keys, key)
}

// Told takes what the leader has answered when it was asked: the keys of its members.
func (c *membership) Told(keys []string) {
	c.told.mu.Lock()
	defer c.told.mu.Unlock()
	c.told.keys = keys
}

// Missed tells whether a coordinator that is not known here has wanted to speak lately, while there is no leader. Then somebody has to
// be asked who the members are.
func (c *membership) Missed() bool {
	c.told.mu.Lock()
	defer c.told.mu.Unlock()
	return time.Since(c.told.unknown) < reachable && c.raft.Load().Leader() == ""
}

// admit implements admission: members of the configuration may speak, and those that the leader has told of. While this member is
// joining those may that it was invited by. A certificate alone lets nobody in, with or without a leader.
func (c *membership) admit(who pki.Bearer) error {
	r := c.raft.Load()
	if r == nil {
		return fmt.Errorf("%w: this coordinator is just starting", ErrNoMember)
	}
	if began, _ := identities.Began(c.store.Snapshot()); !began && len(c.servers()) > 0 {
		return c.admitUnrecorded(r, who)
	}
	if err := c.recognise(who); err != nil {
		c.told.mu.Lock()
		c.told.unknown = time.Now()
		c.told.mu.Unlock()
		return err
	}
	_, known := c.server(who.ID)
	if known || len(c.servers()) == 0 || c.told.has(who.Key) {
		return nil
	}
	return fmt.Errorf("%w: %s is not in the Raft configuration", ErrNoMember, who.ID)
}

// admitUnrecorded is admit as long as there are no records of identities: every coordinator of the cluster may speak while this one
// knows no leader. It may have missed that the next one was added, and raft itself gives no vote to strangers.
func (c *membership) admitUnrecorded(r *raft.Raft, who pki.Bearer) error {
	member := who.ID
	if _, known := c.server(member); known {
		return nil
	}
	if !c.invited(who) {
		return fmt.Errorf("%w: %s is not in the Raft configuration", ErrNoMember, member)
	}
	if _, leader := r.LeaderWithID(); leader == "" || string(leader) == member {
		return nil
	}
	return fmt.Errorf("%w: %s is not in the Raft configuration", ErrNoMember, member)
}

// Recognise refuses a coordinator whose certificate does not count here.
func (c *membership) Recognise(who pki.Bearer) error { return c.recognise(who) }

// recognise implements admission.
func (c *membership) recognise(who pki.Bearer) error {
	is := identities.Judge(c.store.Snapshot(), who, c.now())
	if is == identities.Unknown && c.told.has(who.Key) {
		return nil
	}
	if !is.Counts() {
		return fmt.Errorf("%w: %s (%s) %s", ErrNoMember, who.Name, who.ID, is.Why())
	}
	if c.raft.Load() != nil && len(c.servers()) == 0 && !c.invited(who) {
		return fmt.Errorf("%w: %s (%s) was not a coordinator when this one enrolled", ErrNoMember, who.Name, who.ID)
	}
	return nil
}

// invited tells whether this member may follow a coordinator of which it has no record yet.
func (c *membership) invited(who pki.Bearer) bool {
	return len(c.cfg.Invited) == 0 || slices.Contains(c.cfg.Invited, who.Key) || c.told.has(who.Key)
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
