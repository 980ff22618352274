package api

import (
	"fmt"
	"time"

	"berth/coordinator/api/answer"
	"berth/coordinator/consensus"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// longGone is after how long of silence a coordinator may be one that never comes back.
const longGone = 10 * time.Minute

// memberProblems are what is wrong with the coordinators themselves.
func memberProblems(members []*berthv1.Member, now time.Time) []string {
	var lines []string
	voters, silent, joining := 0, 0, 0
	for _, member := range members {
		switch {
		case !member.GetVoter():
			joining++
		case member.GetReachable():
			voters++
		default:
			voters, silent = voters+1, silent+1
		}
		lines = append(lines, memberTroubles(member, now)...)
	}
	switch most := (voters - 1) / 2; {
	case silent > 0 && silent == most:
		lines = append(lines, "one more coordinator lost, and nothing can be changed until it is back")
	case voters%2 == 0 && silent == 0 && joining == 0:
		lines = append(lines, fmt.Sprintf("%d coordinators vote, and with an even number no more may fail than with %d: "+
			"let another join, or remove one",
			voters, voters-1))
	}
	return lines
}

func memberTroubles(member *berthv1.Member, now time.Time) []string {
	var lines []string
	about := func(format string, args ...any) {
		lines = append(lines, "coordinator "+member.GetName()+" "+fmt.Sprintf(format, args...))
	}
	silence := time.Duration(member.GetLastContactSeconds() * float64(time.Second))
	switch {
	case !member.GetReachable() && member.LastContactSeconds == nil:
		about("is not reachable; 'systemctl status berth-coordinator' there tells whether it runs")
	case !member.GetReachable() && silence < longGone:
		about("is not reachable since %.0f s; 'systemctl status berth-coordinator' there tells whether it runs", silence.Seconds())
	case !member.GetReachable():
		about("is not reachable since %s; if it is gone for good: 'berth coordinator delete %s', then let another join",
			silence.Round(time.Minute), member.GetName())
	case !member.GetHealthy():
		about("%s", member.GetHealth())
	}
	if member.GetFeatureLevel() != 0 && member.GetFeatureLevel() < state.FeatureLevel {
		about("runs release %s of feature level %d: what is new at level %d waits until it is upgraded to release %s or a later one",
			member.GetVersion(), member.GetFeatureLevel(), state.FeatureLevel, state.FirstRelease(state.FeatureLevel))
	}
	if size := units.Bytes(member.GetLogBytes()); size > consensus.LargeLog {
		about("has a log of %v on its disk, which does not shrink by itself: stop it and run 'berth coordinator compact' there", size)
	}
	if why := member.GetHistoryProblem(); why != "" {
		about("keeps no history now, and catches up when it can: %s", why)
	}
	if line := backupTrouble(member, now); line != "" {
		about("%s", line)
	}
	return lines
}

// backupTrouble says when a coordinator that makes backups has no new one. One try may fail.
func backupTrouble(member *berthv1.Member, now time.Time) string {
	every := time.Duration(member.GetBackupEverySeconds() * float64(time.Second))
	if every == 0 {
		return ""
	}
	why := member.GetBackupProblem()
	if member.BackupAt == nil && why == "" {
		return "" // it is about to make the first one
	}
	if member.BackupAt == nil {
		return "has no verified backup yet: " + why
	}
	if age := now.Sub(member.GetBackupAt().AsTime()); age > 2*every+time.Minute {
		return answer.Because(fmt.Sprintf("has no verified backup for %s", age.Round(time.Minute)), why)
	}
	return ""
}
