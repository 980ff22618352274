package consensus

import (
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// Stats are figures for people and for metrics.
type Stats struct {
	State        string // leader, follower, candidate or shutdown
	Leader       string // member ID; empty: none known
	Term         uint64
	LastIndex    uint64        // of the log
	CommitIndex  uint64        // as known here
	AppliedIndex uint64        // of the last entry given to the state
	LastSnapshot uint64        // index
	LastContact  time.Duration // since the leader was heard; 0 on the leader, -1: never heard
	Hash         string        // of the state, at StateIndex
	StateIndex   uint64        // of the last command in the state

	// Members are what the leader's heartbeats learnt; nil on the others.
	Members map[string]MemberStats // by ID
}

// MemberStats is how the leader sees a member, itself included.
type MemberStats struct {
	Reachable   bool
	LastContact time.Duration // since its last answer; -1: none in this term
	LastIndex   uint64        // of its log
	Behind      uint64        // entries
	Trouble     string        // what is wrong with it; empty: it is healthy
	Parted      bool          // it has another state than the leader at the same index
	Report      *Report       // its last one; nil: it has not told lately
}

// Stats are this member's figures now.
func (c *Consensus) Stats() Stats {
	r := c.raft.Load()
	snapshot := c.store.Snapshot()
	stats := Stats{
		State: map[raft.RaftState]string{
			raft.Leader: "leader", raft.Follower: "follower", raft.Candidate: "candidate", raft.Shutdown: "shutdown",
		}[r.State()],
		Term: r.CurrentTerm(), LastIndex: r.LastIndex(), CommitIndex: r.CommitIndex(), AppliedIndex: r.AppliedIndex(),
		LastSnapshot: lastSnapshot(r), LastContact: since(r.LastContact()),
		Hash: snapshot.Hash(), StateIndex: snapshot.Index(),
	}
	stats.Leader, _ = c.Leader()
	if r.State() != raft.Leader {
		return stats
	}
	stats.LastContact = 0
	stats.Members = make(map[string]MemberStats)
	for _, server := range c.servers() {
		member := MemberStats{Reachable: true, LastIndex: stats.LastIndex}
		if string(server.ID) != c.cfg.MemberID {
			seen, _ := c.transport.ends.of(server.ID)
			member.LastContact, member.LastIndex = since(seen.at), seen.what
			member.Reachable = member.LastContact >= 0 && member.LastContact < reachable
			member.Behind = stats.LastIndex - min(stats.LastIndex, seen.what)
		}
		member.Trouble = c.trouble(server.ID)
		if report, told := c.reportOf(server.ID); told {
			member.Report, member.Parted = &report, c.compare(report) == parted
		}
		stats.Members[string(server.ID)] = member
	}
	return stats
}

func since(at time.Time) time.Duration {
	if at.IsZero() {
		return -1
	}
	return time.Since(at)
}

// lastSnapshot is in Raft's own figures only, as text.
func lastSnapshot(r *raft.Raft) uint64 {
	index, err := strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64)
	if err != nil {
		return 0
	}
	return index
}
