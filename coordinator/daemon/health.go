package daemon

import (
	"context"
	"math"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/lastknown"
	"berth/coordinator/consensus"
	"berth/coordinator/doorkeeper"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
)

// tellHealth reports to the leader how this member is, again and again; the leader itself included. A report that does
// not arrive is followed by another one.
func (d *daemon) tellHealth(ctx context.Context) {
	for pause.For(ctx, consensus.ReportEvery) {
		report := d.consensus.Report()
		report.Backup = d.backups.health()
		report.Asking, report.Hearing = d.agents.Asking(), d.agents.Hearing()
		report.AgentsMost = doorkeeper.Agents(doorkeeper.Files()).Known
		report.History = d.history.Health().Problem
		report.MetricsPort = d.config.Metrics.Port()
		leader, known := d.consensus.Leader()
		switch {
		case !known:
		case leader == d.who.ID:
			d.consensus.Heard(leader, report)
			now, snapshot := time.Now(), d.store.Snapshot()
			heard, digest := lastknown.Heard(d.inventory.View(snapshot, now))
			d.lastKnown.Keep(heard, digest, now, snapshot)
		default:
			if err := d.report(ctx, leader, report); err != nil && ctx.Err() == nil {
				d.log.Debug("the leader did not hear how this coordinator is", "error", err)
			}
		}
	}
}

func (d *daemon) report(ctx context.Context, leader string, report consensus.Report) error {
	snapshot := d.store.Snapshot()
	record, known := snapshot.Member(leader)
	if !known {
		return nil // it has not come here yet
	}
	request := &berthv1.ReportRequest{
		Version: report.Version, FeatureLevel: report.FeatureLevel, StateIndex: report.Index, StateHash: report.Hash,
		LogBytes: int64(report.LogSize), BackupEverySeconds: report.Backup.Every.Seconds(), BackupProblem: report.Backup.Problem,
	}
	request.HistoryProblem, request.MetricsPort = report.History, int32(report.MetricsPort)
	request.AgentsAsking, request.AgentsMost = int32(min(report.Asking, math.MaxInt32)), int32(min(report.AgentsMost, math.MaxInt32))
	request.At, request.WriteSeconds = timestamppb.New(report.At), report.Write.Seconds()
	if !report.Backup.At.IsZero() {
		request.BackupAt = timestamppb.New(report.Backup.At)
	}
	ctx, cancel := context.WithTimeout(ctx, consensus.ReportEvery)
	defer cancel()
	request.HeardDigest = d.lastKnown.Digest()
	answer, err := berthv1connect.NewMemberServiceClient(d.peers, "https://"+record.APIAddress).Report(ctx, connect.NewRequest(request))
	if err == nil {
		of := lastknown.Within(snapshot, answer.Msg.GetHeardIndex())
		d.lastKnown.Keep(answer.Msg.GetHeard(), answer.Msg.GetHeardDigest(), time.Now(), of)
	}
	return err
}
