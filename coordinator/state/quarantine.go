package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/returning"
)

// epochJump is what every epoch grows by when a backup is restored: more than any VM can have had since the backup was
// made, so that what agents have journalled meanwhile is older than whatever comes next. etcd bumps its revisions for
// the same reason.
const epochJump = 1 << 20

// Quarantine makes a backup, fresh from Load, fit to replace the present state of a running cluster. The nodes may have
// gone on since the backup was made, so that it is a claim and not a fact:
//
//   - Meta tells by MetaQuarantine that no VM may be started, stopped or moved until the nodes were compared.
//   - Every VM's next epoch jumps, also that of a VM which the backup does not know.
//   - Operations that were at work are parked: how they ended is not in the backup.
//   - Tokens and sessions go: one that has been used or ended since would be good again.
//   - The members are the present ones, as Raft keeps its present configuration, and so is what they can apply.
//   - Whoever was revoked since stays revoked. An identity that only the backup knows counts, has no permission, and waits to be
//     confirmed or revoked; a coordinator that is no member is revoked.
//   - Nodes that were enrolled since stay: VMs may run there, and their certificates are good.
//   - What the backup has as proof that a node is off is none any more: it may have booted since.
//
// The store must not be in Raft's hands yet.
func (s *Store) Quarantine(present *Snapshot, at time.Time, caller string) {
	s.writer.Lock()
	defer s.writer.Unlock()
	reason := fmt.Sprintf("restored at %s from a backup made at index %d", at.UTC().Format(time.RFC3339), s.now.Load().Index())
	s.quarantine(present, present.Members(), present.Identities(), reason, "cluster.restored", at, caller)
}

// QuarantineAlone makes a state, fresh from its log, fit to be gone on with by one member, because a majority of the others
// is gone for good: they may have decided more than this one knows. It is Quarantine, and the other members go and are revoked.
// If the state is of a release without records of identities, they begin with it, and nobody is waited for: the site may have had such for
// long, and whoever it has revoked since would count for as long as after an upgrade.
// Known is what is known of identities: those of its own log, or, for a backup, what else there is; the others wait to be confirmed.
func (s *Store) QuarantineAlone(member string, known []model.Identity, at time.Time, caller string) {
	s.writer.Lock()
	defer s.writer.Unlock()
	present := s.now.Load()
	var alone []model.Member
	for _, one := range present.Members() {
		if one.ID == member {
			alone = append(alone, one)
		}
	}
	reason := fmt.Sprintf("recovered at %s by one coordinator alone, at index %d", at.UTC().Format(time.RFC3339), present.Index())
	s.quarantine(present, alone, known, reason, "cluster.recovered", at, caller)
}

// quarantine is both. The caller holds writer.
func (s *Store) quarantine(
	present *Snapshot, members []model.Member, known []model.Identity, reason, event string, at time.Time, caller string,
) {
	backup := s.now.Load()
	// Below the index at which Raft will put the restored state, above everything that either state has.
	index := max(backup.Index(), present.Index()) + 1
	w := begin(backup.draft(), backup.applied, &Command{At: at}, entryPlace{index: index})
	w.parkOperations(backup.LiveOperations(), at, reason)
	w.jumpEpochs(backup, present)
	w.takeMembers(backup.Members(), members)
	w.takeNodes(backup, present)
	alone := present == backup
	identities := returning.Identities(backup.Identities(), known, !alone, reason)
	from := cmp.Or(present.Meta(MetaRecordsFrom), backup.Meta(MetaRecordsFrom))
	level := max(backup.FeatureLevel(), present.FeatureLevel())
	events := []model.Event{{At: at, Kind: event, Subject: "cluster", Message: reason, Caller: caller}}
	if alone && from == "" {
		from, level = at.UTC().Format(time.RFC3339), max(level, IdentityLevel)
		identities = append(identities, returning.Unrecorded(backup.Nodes(), identities, at, reason)...)
		events = append(events, model.Event{
			At: at, Kind: "identity.records", Subject: "cluster", Caller: caller,
			Message: "identities are on record from now on: operators without a record need a new token, and nodes wait to be confirmed",
		})
	}
	w.putRecords(&Command{Identities: identities})
	w.putRecords(&Command{Identities: returning.Coordinators(identities, members, alone, at, caller)})
	for _, token := range backup.Tokens() {
		w.remove(string(Tokens), token.Hash, &token)
	}
	for _, one := range backup.Sessions() {
		w.remove(string(Sessions), one.ID, &one)
	}
	meta := RaiseLevel(level).Meta
	meta[MetaQuarantine] = reason
	if from != "" {
		meta[MetaRecordsFrom] = from
	}
	// Whom the cluster trusts does not go back: certificates of today would be refused, and one that is retired would be good again.
	for _, key := range []string{MetaAuthorities, MetaHypervisors} {
		if authorities := present.Meta(key); authorities != "" {
			meta[key] = authorities
		}
	}
	w.putRecords(&Command{Meta: meta})
	w.putHistory(&Command{Events: events})
	w.trim()
	s.publish(newSnapshot(w.draft, w.seal(Result{Index: index})))
}

func (w *write) parkOperations(live []operation.Operation, at time.Time, reason string) {
	for i := range live {
		live[i].Phase, live[i].Result = operation.Ended, operation.Parked
		live[i].Message = "the state was " + reason + " while this operation was at work"
		live[i].UpdatedAt, live[i].EndedAt = at, at
	}
	w.putRecords(&Command{Operations: live})
}

func (w *write) jumpEpochs(backup, present *Snapshot) {
	vms := backup.VMs()
	for i := range vms {
		// The epoch that the guest runs under is a fact of its node; only the next one has to be above everything.
		vms[i].LastEpoch = max(vms[i].EpochsGiven(), present.LastEpoch(vms[i].ID)) + epochJump
	}
	w.putRecords(&Command{VMs: vms})
	gone := append(backup.deletedEpochs(), present.deletedEpochs()...)
	for _, vm := range present.VMs() {
		gone = append(gone, epochRow{VM: vm.ID})
	}
	for _, row := range gone {
		if _, known := backup.VM(row.VM); known {
			continue
		}
		if jumped, ok := get[epochRow](w.tables, tableEpochs, row.VM); !ok {
			w.applied.Epochs++
		} else if jumped.Index == w.index {
			continue
		}
		last := max(backup.LastEpoch(row.VM), present.LastEpoch(row.VM))
		put(w, tableEpochs, row.VM, &epochRow{VM: row.VM, Epoch: last + epochJump, Index: w.index})
	}
}

func (w *write) takeMembers(before, members []model.Member) {
	for _, member := range before {
		w.remove(string(Members), member.ID, &member)
	}
	w.putRecords(&Command{Members: members})
}

// takeNodes adds the nodes that the backup does not know, and takes over what was heard of the others since. That one was
// proven to be off counts only as of now: it may have booted since.
func (w *write) takeNodes(backup, present *Snapshot) {
	nodes := backup.Nodes()
	alone := present == backup // what the others noticed since is not known
	for i := range nodes {
		node := &nodes[i]
		now, known := present.Node(node.ID)
		if !known || alone && now.Fenced() {
			now.Fencing = model.Fencing{}
		}
		node.Fencing = now.Fencing
		if known {
			node.Name, node.Boot, node.Watchdog = now.Name, now.Boot, now.Watchdog
		} else if _, taken := present.NodeByName(node.Name); taken { // it was removed since, and another one has its name
			node.Name = model.OtherName(node.Name, node.ID, func(name string) bool {
				_, taken := present.NodeByName(name)
				return taken || slices.ContainsFunc(nodes, func(n model.Node) bool { return n.Name == name })
			})
		}
	}
	for _, node := range present.Nodes() {
		if _, known := backup.Node(node.ID); known {
			continue
		}
		if node.Cluster != "" && !w.declared(node.Cluster) {
			node.Cluster = model.DefaultCluster
		}
		nodes = append(nodes, node)
	}
	w.putRecords(&Command{Nodes: nodes})
}

func (x *Snapshot) deletedEpochs() []epochRow {
	return list(x.tables, tableEpochs, byID, "", copied[epochRow])
}
