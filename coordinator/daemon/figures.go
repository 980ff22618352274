package daemon

import (
	"context"
	"net/http"
	"time"

	"berth/coordinator/api"
	"berth/coordinator/authorities"
	"berth/coordinator/identities"
	"berth/coordinator/metrics"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/targets"
	"berth/coordinator/view"
	"berth/shared/exposition"
	"berth/shared/pause"
	"berth/shared/scrape"
)

// countEvery is how often what was decided and done since is counted. The state keeps far more than comes in that time.
const countEvery = time.Second

// figures serves what Prometheus reads of this member.
func (d *daemon) figures() *scrape.Server {
	return &scrape.Server{
		Config: d.config.Metrics, Large: true, Log: d.log.Named("metrics"),
		Collect: func(page *exposition.Page) { metrics.Write(page, d.scrape(time.Now())) },
		Also: map[string]http.Handler{targets.Path: &targets.Handler{
			Consensus: d.consensus, Store: d.store, Inventory: d.inventory, Peers: d.peers, Book: &d.targets,
		}},
	}
}

// scrape gathers what one page is made of.
func (d *daemon) scrape(now time.Time) *metrics.Scrape {
	s := &metrics.Scrape{At: now, Member: d.member(), Totals: d.totals}
	if !s.Member.Leads {
		return s
	}
	snapshot := d.store.Snapshot()
	working := make(map[string]*operation.Operation)
	for op := range snapshot.SharedLive() {
		working[op.VM] = op
	}
	seen := d.inventory.View(snapshot, now)
	s.Site = &metrics.Site{
		View: seen, VMs: snapshot.SharedVMs(), Operations: snapshot.SharedLive(), Groups: snapshot.Groups(), States: api.VMStates(),
		State: func(vm *model.VM) string {
			var holder *view.NodeView
			if vm.Holder != "" {
				holder = seen.Node(vm.Holder)
			}
			return api.VMState(vm, working[vm.ID], holder)
		},
	}
	return s
}

// member is what this member knows of itself, and as the leader of the others.
func (d *daemon) member() metrics.Member {
	stats, report := d.consensus.Stats(), d.consensus.Report()
	backup := d.backups.health()
	m := metrics.Member{
		Name: d.who.Name, Leads: stats.State == "leader", LeaderKnown: stats.Leader != "", Term: stats.Term,
		Commit: stats.CommitIndex, Applied: stats.AppliedIndex, Last: stats.LastIndex, Snapshot: stats.LastSnapshot,
		LeaderContact: stats.LastContact, Log: report.LogSize, Write: report.Write,
		BackupAt: backup.At, BackupFailed: backup.Problem != "", Sessions: d.agents.Hearing(),
	}
	kept := d.history.Health()
	m.History = metrics.History{
		Size: kept.Size, Oldest: kept.Oldest, Behind: kept.Behind, Missing: kept.Lacks, Failed: kept.Problem != "",
	}
	for _, end := range authorities.Ends(d.vault.Issuing(), d.hypervisors.All()) {
		m.Authorities = append(m.Authorities, metrics.AuthorityEnd{Name: end.Name, At: end.At})
	}
	if !m.Leads {
		return m
	}
	snapshot := d.store.Snapshot()
	m.Certificates = identities.Ends(snapshot)
	for _, server := range d.consensus.Configuration() {
		seen, name := stats.Members[server.ID], server.ID
		if record, known := snapshot.Member(server.ID); known {
			name = record.Name
		}
		m.Members = append(m.Members, metrics.MemberSeen{
			Name: name, Voter: server.Voter, Healthy: seen.Reachable && seen.Trouble == "" && !seen.Parted, Behind: seen.Behind,
			Contact: seen.LastContact,
		})
	}
	return m
}

// keepTotals counts what is decided and done, as it comes out of the log.
func (d *daemon) keepTotals(ctx context.Context) {
	before := d.store.Snapshot()
	for op := range before.EndedSince(0) {
		d.totals.Learn(op)
	}
	last := before.Index()
	for pause.For(ctx, countEvery) {
		snapshot := d.store.Snapshot()
		if snapshot.Index() == last {
			continue
		}
		for _, decision := range snapshot.DecisionsSince(last) {
			d.totals.Decided(decision)
		}
		for op := range snapshot.EndedSince(last) {
			d.totals.Ended(op)
		}
		last = snapshot.Index()
	}
}
