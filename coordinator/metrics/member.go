package metrics

import (
	"maps"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/shared/exposition"
	"berth/shared/units"
)

// Member is what a coordinator knows of itself and, if it leads, of the others.
type Member struct {
	Name                  string
	Leads, LeaderKnown    bool
	Term                  uint64
	Commit, Applied, Last uint64        // indexes of the log
	Snapshot              uint64        // index of the last one
	LeaderContact         time.Duration // since the leader was heard; 0 on the leader, negative: never
	Log                   units.Bytes   // size of its file; 0: not known
	Write                 time.Duration // that 99 of 100 of the last writes to the log took at most; 0: too few to tell
	BackupAt              time.Time     // of the last one that was verified; zero: none yet
	BackupFailed          bool          // the last try
	Sessions              int           // of agents

	History History

	Authorities []AuthorityEnd // that sign certificates

	Certificates map[model.IdentityKind]time.Time // when the first of each kind ends, of operators the last; nil where it does not lead

	Members []MemberSeen // of all, itself included; nil where it does not lead
}

// AuthorityEnd is when an authority ends.
type AuthorityEnd struct {
	Name string // cluster, libvirt or qemu
	At   time.Time
}

// History is what a coordinator has kept of the past.
type History struct {
	Size    units.Bytes
	Oldest  time.Time // of what it has; zero: it has nothing yet
	Behind  uint64    // entries of the log that it has not looked at
	Missing uint64    // entries of the log that it lacks, between others that it has
	Failed  bool      // it cannot be written or read now
}

// MemberSeen is how the leader sees a member.
type MemberSeen struct {
	Name    string
	Voter   bool
	Healthy bool
	Behind  uint64        // entries
	Contact time.Duration // since its last answer; negative: none in this term
}

var (
	raftLeader      = gauge("berth_raft_leader", "1 on the coordinator that leads, 0 on the others")
	raftLeaderKnown = gauge("berth_raft_leader_known",
		"Whether this coordinator knows who leads (1) or not (0): without a leader nothing is decided")
	raftTerm      = gauge("berth_raft_term", "Raft's term, which grows with every election")
	raftCommit    = gauge("berth_raft_commit_index", "Entry of the log up to which this coordinator knows that a majority has it")
	raftApplied   = gauge("berth_raft_applied_index", "Entry of the log up to which this coordinator's state has come")
	raftLast      = gauge("berth_raft_last_index", "Last entry of this coordinator's log")
	raftSnapshot  = gauge("berth_raft_snapshot_index", "Entry of the log that this coordinator's last snapshot stands for")
	raftContact   = gauge("berth_raft_leader_contact_seconds", "Time since the leader was heard; 0 on the leader")
	raftLog       = gauge("berth_raft_log_bytes", "Size of the file that has the log")
	raftWrite     = gauge("berth_raft_write_seconds", "Time that 99 of 100 of the last writes to the log took at most")
	backupAt      = gauge("berth_backup_verified_timestamp_seconds", "When the last backup was verified, in seconds since 1970")
	backupFailed  = gauge("berth_backup_failed", "1 while the last try of a backup has failed, else 0")
	agentSessions = gauge("berth_agent_streams", "Agents that have a stream to this coordinator")

	authorityEnds = gauge("berth_authority_expires_timestamp_seconds",
		"When an authority that signs certificates ends, in seconds since 1970", "authority")
	certificateEnds = gauge("berth_certificate_expires_timestamp_seconds",
		"When the first certificate of nodes and of coordinators ends, and the last one of operators, in seconds since 1970", "kind")

	historySize    = gauge("berth_history_bytes", "Size of what this coordinator has kept of the past")
	historyOldest  = gauge("berth_history_oldest_timestamp_seconds", "When the oldest of that happened, in seconds since 1970")
	historyBehind  = gauge("berth_history_behind_entries", "Entries of the log that are applied and not looked at by the history yet")
	historyMissing = gauge("berth_history_missing_entries", "Entries of the log that the history lacks and fetches from other coordinators")
	historyFailed  = gauge("berth_history_failed", "1 while the history cannot be kept, else 0")

	raftMembers = gauge("berth_raft_members", "Coordinators, as the leader knows them, by whether they vote", "voter")
	peerHealthy = gauge("berth_raft_member_healthy", "Whether the leader finds a coordinator healthy (1) or not (0)", "member")
	peerBehind  = gauge("berth_raft_member_behind_entries", "Entries of the log that a coordinator does not have yet", "member")
	peerContact = gauge("berth_raft_member_contact_seconds", "Time since a coordinator last answered the leader", "member")
)

var memberFamilies = []*exposition.Family{
	&raftLeader, &raftLeaderKnown, &raftTerm, &raftCommit, &raftApplied, &raftLast, &raftSnapshot, &raftContact, &raftLog, &raftWrite,
	&backupAt, &backupFailed, &agentSessions, &authorityEnds, &certificateEnds, &historySize, &historyOldest, &historyBehind, &historyMissing,
	&historyFailed, &raftMembers, &peerHealthy, &peerBehind, &peerContact,
}

func writeMember(page *exposition.Page, m *Member) {
	page.Flag(&raftLeader, m.Leads)
	page.Flag(&raftLeaderKnown, m.LeaderKnown)
	for _, one := range []struct {
		family *exposition.Family
		value  uint64
	}{
		{&raftTerm, m.Term}, {&raftCommit, m.Commit}, {&raftApplied, m.Applied}, {&raftLast, m.Last}, {&raftSnapshot, m.Snapshot},
	} {
		page.Sample(one.family, float64(one.value))
	}
	if m.LeaderContact >= 0 {
		page.Sample(&raftContact, m.LeaderContact.Seconds())
	}
	if m.Log > 0 {
		page.Sample(&raftLog, float64(m.Log))
	}
	if m.Write > 0 {
		page.Sample(&raftWrite, m.Write.Seconds())
	}
	if !m.BackupAt.IsZero() {
		page.Sample(&backupAt, float64(m.BackupAt.Unix()))
	}
	page.Flag(&backupFailed, m.BackupFailed)
	page.Sample(&agentSessions, float64(m.Sessions))
	for _, end := range m.Authorities {
		page.Sample(&authorityEnds, float64(end.At.Unix()), end.Name)
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Certificates)) {
		page.Sample(&certificateEnds, float64(m.Certificates[kind].Unix()), string(kind))
	}
	page.Sample(&historySize, float64(m.History.Size))
	if !m.History.Oldest.IsZero() {
		page.Sample(&historyOldest, float64(m.History.Oldest.Unix()))
	}
	page.Sample(&historyBehind, float64(m.History.Behind))
	page.Sample(&historyMissing, float64(m.History.Missing))
	page.Flag(&historyFailed, m.History.Failed)
	if m.Members == nil {
		return
	}
	voters := 0
	for i := range m.Members {
		if m.Members[i].Voter {
			voters++
		}
	}
	page.Sample(&raftMembers, float64(voters), "true")
	page.Sample(&raftMembers, float64(len(m.Members)-voters), "false")
	for i := range m.Members {
		page.Flag(&peerHealthy, m.Members[i].Healthy, m.Members[i].Name)
	}
	for i := range m.Members {
		page.Sample(&peerBehind, float64(m.Members[i].Behind), m.Members[i].Name)
	}
	for i := range m.Members {
		if m.Members[i].Contact >= 0 {
			page.Sample(&peerContact, m.Members[i].Contact.Seconds(), m.Members[i].Name)
		}
	}
}
