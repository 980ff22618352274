package follow

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// Lines for a log: the beginning at once, then at most one each two seconds.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &lines{out: &out, now: time.Now}
		op := &berthv1.Operation{Id: "3nqk7d2m0x1ab", Kind: "migrate", Vm: "web1", Doing: "migrating from node1 to node2"}
		for i := range 12 { // every half second
			stats := &berthv1.MigrationStats{
				ElapsedSeconds: float64(i) / 2, DataTotalBytes: 128 << 20, DataProcessedBytes: int64(i) << 20,
				DataRemainingBytes: int64(128-i) << 20, MemoryBps: 2 << 20,
			}
			l.update(&berthv1.WatchOperationResponse{Operation: op, Progress: stats})
			time.Sleep(500 * time.Millisecond)
		}
		want := `vm/web1: migrating from node1 to node2 (operation 3nqk7d2m0x1ab)
vm/web1: 4 MiB sent, 124 MiB left, 2 MiB/s, 2s
vm/web1: 8 MiB sent, 120 MiB left, 2 MiB/s, 4s
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

// An older coordinator does not say in words what an operation does.
func TestTheBeginningOfAnOperationOfAnOlderCoordinator(t *testing.T) {
	if got := Beginning(&berthv1.Operation{Kind: "migrate"}); got != "migrate" {
		t.Errorf("got %q", got)
	}
}

func TestTheProgressOfCopiedDisks(t *testing.T) {
	stats := &berthv1.MigrationStats{
		ElapsedSeconds: 12, DataTotalBytes: 5 << 30, DataProcessedBytes: 3 << 30, DataRemainingBytes: 2 << 30, MemoryBps: 100 << 20,
		DiskTotalBytes: 4 << 30, DiskProcessedBytes: 5 << 29, DiskRemainingBytes: 3 << 29,
	}
	if got, want := transfer(stats), "disks 2.5 GiB of 4 GiB, memory 512 MiB sent, 512 MiB left, 100 MiB/s, 12s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := MigrationPhrase(stats); !strings.HasPrefix(got, "3 GiB sent, 2.5 GiB of it from disks, ") {
		t.Errorf("%q", got)
	}
}

func TestPredictionPhrase(t *testing.T) {
	got := PredictionPhrase(&berthv1.MigrationPrediction{ElapsedSeconds: 12, DataProcessedBytes: 3 << 30, DowntimeSeconds: 0.08, Of: 2})
	if want := "3 GiB sent in 12s, downtime 80ms, as by 2 migrations before"; got != want {
		t.Errorf("of an older coordinator: got %q, want %q", got, want)
	}
	got = PredictionPhrase(&berthv1.MigrationPrediction{
		ElapsedSeconds: 12, LeastSeconds: 6, MostSeconds: 48, DataProcessedBytes: 3 << 30, By: []string{"its limit", "the memory that it uses"},
	})
	if want := "3 GiB sent in 12s (6s to 48s), by its limit, the memory that it uses"; got != want {
		t.Errorf("of the first one: got %q, want %q", got, want)
	}
}
