package api

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestProblemsOfCoordinators(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := func(name string, change func(*berthv1.Member)) *berthv1.Member {
		m := &berthv1.Member{Name: name, Voter: true, Reachable: true, Healthy: true, FeatureLevel: state.FeatureLevel, Version: "0.6"}
		if change != nil {
			change(m)
		}
		return m
	}
	silent := func(seconds float64) func(*berthv1.Member) {
		return func(m *berthv1.Member) {
			m.Reachable, m.Healthy, m.LastContactSeconds = false, false, proto.Float64(seconds)
		}
	}
	backup := func(age time.Duration) func(*berthv1.Member) {
		return func(m *berthv1.Member) {
			m.BackupEverySeconds, m.BackupAt, m.BackupProblem = 900, timestamppb.New(now.Add(-age)), "no space left on device"
		}
	}
	for name, test := range map[string]struct {
		members []*berthv1.Member
		want    []string
	}{
		"one":   {[]*berthv1.Member{of("c1", nil)}, nil},
		"three": {[]*berthv1.Member{of("c1", nil), of("c2", nil), of("c3", nil)}, nil},
		"two": {[]*berthv1.Member{of("c1", nil), of("c2", nil)}, []string{
			"2 coordinators vote, and with an even number no more may fail than with 1: let another join, or remove one",
		}},
		"two and one that joins": {
			[]*berthv1.Member{of("c1", nil), of("c2", nil), of("c3", func(m *berthv1.Member) { m.Voter = false })}, nil,
		},
		"one of three silent": {[]*berthv1.Member{of("c1", nil), of("c2", nil), of("c3", silent(45))}, []string{
			"coordinator c3 is not reachable since 45 s; 'systemctl status berth-coordinator' there tells whether it runs",
			"one more coordinator lost, and nothing can be changed until it is back",
		}},
		"one of five gone": {[]*berthv1.Member{of("c1", nil), of("c2", nil), of("c3", nil), of("c4", nil), of("c5", silent(3700))}, []string{
			"coordinator c5 is not reachable since 1h2m0s; if it is gone for good: 'berth coordinator delete c5', then let another join",
		}},
		"behind": {[]*berthv1.Member{of("c1", func(m *berthv1.Member) { m.Healthy, m.Health = false, "is 900 entries behind" })}, []string{
			"coordinator c1 is 900 entries behind",
		}},
		"older": {[]*berthv1.Member{of("c1", func(m *berthv1.Member) { m.FeatureLevel, m.Version = 1, "0.5" })}, []string{
			"coordinator c1 runs release 0.5 of feature level 1: what is new at level 3 waits until it is upgraded to release 0.7 or a later one",
		}},
		"large": {[]*berthv1.Member{of("c1", func(m *berthv1.Member) { m.LogBytes = 2 << 30 })}, []string{
			"coordinator c1 has a log of 2 GiB on its disk, which does not shrink by itself: stop it and run 'berth coordinator compact' there",
		}},
		"one backup failed": {[]*berthv1.Member{of("c1", backup(20*time.Minute))}, nil},
		"backups fail": {
			[]*berthv1.Member{of("c1", backup(32*time.Minute))},
			[]string{"coordinator c1 has no verified backup for 32m0s: no space left on device"},
		},
		"no backup was made yet": {[]*berthv1.Member{of(
			"c1", func(m *berthv1.Member) { m.BackupEverySeconds, m.BackupProblem = 900, "no room" },
		)}, []string{
			"coordinator c1 has no verified backup yet: no room",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, memberProblems(test.members, now)); diff != "" {
				t.Error(strings.TrimSpace(diff))
			}
		})
	}
}
