package recorder

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is what is sampled, at the time of the test.
type host struct{ sample *berthv1.NodeTelemetry }

func (h *host) Sample(context.Context) *berthv1.NodeTelemetry {
	h.sample.SampledAt = timestamppb.Now()
	return h.sample
}

func busy() *host {
	return &host{&berthv1.NodeTelemetry{
		CpuBusyRatio: new(0.5), MemoryTotalBytes: new(int64(64 << 30)), MemoryAvailableBytes: new(int64(24 << 30)),
		Domains: []*berthv1.DomainTelemetry{
			{Uuid: "u1", CpuRatio: new(2.0), RssBytes: new(int64(8 << 30)), Vcpus: new(int32(3)), VcpuDelayRatio: new(0.1)},
			{Uuid: "u2", Vcpus: new(int32(1)), VcpuDelayRatio: new(0.5)},
			{Uuid: "u3", Vcpus: new(int32(8))},
		},
	}}
}

// sampled has an hour and a minute of samples taken.
func sampled(r *Recorder) {
	for range 61 {
		r.Sample(context.Background())
		time.Sleep(time.Minute)
	}
}

func near(got *float64, want float64) bool {
	return got != nil && *got > 0.975*want && *got < 1.025*want
}

func TestSamplesBecomeProfilesThatOutliveTheAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profiles.json.gz")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r := Open(busy(), path, "n1", hclog.NewNullLogger())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		sampled(r)
		synctest.Wait()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("after an hour: %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		stop()
		<-ended
		again := Open(busy(), path, "n1", hclog.NewNullLogger())
		for _, r := range []*Recorder{r, again} {
			node := r.Week("", time.Now())
			if len(node) != 1 || !near(node[0].CpuRatio, 0.5) || !near(new(float64(node[0].GetMemoryBytes())), 40<<30) ||
				!near(node[0].VcpuDelayRatio, 0.2) {
				t.Errorf("%v is known of the node", node)
			}
			guest := r.Week("u1", time.Now())
			if len(guest) != 1 || !near(guest[0].CpuRatio, 2) || !near(new(float64(guest[0].GetMemoryBytes())), 8<<30) ||
				!near(guest[0].VcpuDelayRatio, 0.1) || !guest[0].GetBeganAt().AsTime().Equal(time.Now().Add(-time.Hour).Truncate(time.Hour)) {
				t.Errorf("%v is known of a guest", guest)
			}
			if other := r.Week("u2", time.Now()); len(other) != 1 || other[0].CpuRatio != nil || other[0].MemoryBytes != nil {
				t.Errorf("%v is known of a guest of which only the delay was measured", other)
			}
			if nobody := r.Week("u9", time.Now()); len(nobody) != 0 {
				t.Errorf("%v is known of nobody", nobody)
			}
		}
	})
}

// What cannot be used is named in the log, and profiles begin anew.
func TestAFileThatCannotBeUsedIsBegunAnew(t *testing.T) {
	for what, spoil := range map[string]func(t *testing.T, path string) (node string){
		"damaged": func(t *testing.T, path string) string {
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, data[:len(data)/2], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			return "n1"
		},
		"of another node": func(*testing.T, string) string { return "n2" },
		"a folder": func(t *testing.T, path string) string {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			return "n1"
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "profiles.json.gz")
			synctest.Test(t, func(t *testing.T) {
				before := Open(busy(), path, "n1", hclog.NewNullLogger())
				sampled(before)
				before.save()
				node := spoil(t, path)
				var said bytes.Buffer
				log := hclog.New(&hclog.LoggerOptions{Output: &said})
				r := Open(busy(), path, node, log)
				if !strings.Contains(said.String(), "begun anew") || !strings.Contains(said.String(), path) {
					t.Errorf("the log says %q", said.String())
				}
				if known := r.Week("", time.Now()); len(known) != 0 {
					t.Errorf("%v is known", known)
				}
				sampled(r)
				if known := r.Week("", time.Now()); len(known) != 1 {
					t.Errorf("%v is known after an hour", known)
				}
				said.Reset()
				r.save()
				if told := strings.Contains(said.String(), "could not be saved"); told != (what == "a folder") {
					t.Errorf("the log says %q", said.String())
				}
			})
		})
	}
}

// An agent that never ran has no file, and says nothing of that.
func TestTheFirstStartSaysNothing(t *testing.T) {
	var said bytes.Buffer
	Open(busy(), filepath.Join(t.TempDir(), "profiles.json.gz"), "n1", hclog.New(&hclog.LoggerOptions{Output: &said}))
	if said.Len() > 0 {
		t.Errorf("the log says %q", said.String())
	}
}
