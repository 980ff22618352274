// Package remembering measures what it costs an agent that it remembers: the weeks of its guests, and the minutes of the last hour.
package remembering

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/profile/recorder"
	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/week"
)

// Goals are those that All measures.
var Goals = []string{"A6"}

// most is how much more an agent may have resident, in bytes.
const most = 3e6

// Size is how much is measured.
type Size struct {
	Guests int
	Hours  int // that are sampled
	Rounds int
}

// Goal is what the goal is set for: a week, so that each hour of it is known.
var Goal = Size{Guests: 200, Hours: week.Hours, Rounds: 5}

// Quick shows that everything works.
var Quick = Size{Guests: 20, Hours: 2, Rounds: 1}

// All takes all rows, with data in a folder.
func All(ctx context.Context, folder string, quick bool) ([]report.Row, error) {
	if quick {
		return Measure(ctx, folder, Quick)
	}
	return Measure(ctx, folder, Goal)
}

// Measure takes A6 from twins: one process remembers what it samples, the other one only sends it.
func Measure(ctx context.Context, folder string, size Size) ([]report.Row, error) {
	folder = filepath.Join(folder, "remembering")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var with, without report.Figures
	for range size.Rounds {
		for _, one := range []struct {
			keeps bool
			into  *report.Figures
		}{{false, &without}, {true, &with}} {
			resident, err := twin(ctx, folder, one.keeps, size)
			if err != nil {
				return nil, err
			}
			*one.into = append(*one.into, resident)
		}
	}
	more := with.Median() - without.Median()
	return []report.Row{{
		Goal:     "A6",
		What:     fmt.Sprintf("memory of an agent for what it remembers of %d guests, after %d hours", size.Guests, size.Hours),
		Measured: report.Megabytes(more),
		Against:  "with it " + with.Spread(report.Megabytes) + "\nwithout " + without.Spread(report.Megabytes),
		Wanted:   "<= " + report.Megabytes(most), Verdict: report.Judge(more, most),
	}}, nil
}

// twin is what one of the twins has resident at the end, in bytes.
func twin(ctx context.Context, folder string, keeps bool, size Size) (bytes float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, self, verb, strconv.FormatBool(keeps), strconv.Itoa(size.Guests), strconv.Itoa(size.Hours), folder)
	command.Stderr = os.Stderr
	stop, err := command.StdinPipe()
	if err != nil {
		return 0, err
	}
	said, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop.Close(), command.Wait()) }()
	if _, err := io.ReadFull(said, make([]byte, len(done))); err != nil {
		return 0, fmt.Errorf("a twin that samples %d guests: %w", size.Guests, err)
	}
	resident, err := testbed.Resident(command.Process.Pid)
	return resident.All, err
}

// verb makes this program a twin, and done is what that says when it has taken all samples.
const (
	verb = "remember"
	done = "done\n"
)

// Child is what a program does first that measures: if it was started as a twin, it is one, and ends.
func Child() {
	if len(os.Args) != 6 || os.Args[1] != verb {
		return
	}
	keeps, _ := strconv.ParseBool(os.Args[2])
	guests, _ := strconv.Atoi(os.Args[3])
	hours, _ := strconv.Atoi(os.Args[4])
	be(keeps, guests, hours, os.Args[5])
	os.Exit(0)
}

// What a twin has as an agent has it: how far its heap may grow, in per cent, and what else is on its heap, in bytes.
const (
	heapGrowth = 50
	elsewhere  = 8 << 20
)

// be takes the samples of so many hours: one a minute, which is enough for an hour to be known, and as many as an agent takes in the last
// one.
func be(keeps bool, guests, hours int, folder string) {
	debug.SetGCPercent(heapGrowth)
	heap := make([]byte, elsewhere)
	h := &host{guests: guests, now: time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)}
	var sampler recorder.Sampler = h
	if keeps {
		path := filepath.Join(folder, "profiles.json.gz")
		_ = os.Remove(path) // of the twin before
		remembers := recorder.Open(h, path, "node", hclog.NewNullLogger())
		go remembers.Run(context.Background())
		sampler = remembers
	}
	for hour := range hours {
		every := time.Minute
		if hour == hours-1 {
			every = 5 * time.Second
		}
		for end := h.now.Add(time.Hour); h.now.Before(end); h.now = h.now.Add(every) {
			_, _ = proto.Marshal(sampler.Sample(context.Background())) // as it is sent
		}
		time.Sleep(20 * time.Millisecond) // what was remembered is written meanwhile
	}
	fmt.Print(done)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it was looked at
	runtime.KeepAlive(heap)
}

// host is a simulated one, at a time of its own.
type host struct {
	guests int
	now    time.Time
	turn   int
}

// Sample makes a sample as an agent does, with figures that change.
func (h *host) Sample(context.Context) *berthv1.NodeTelemetry {
	h.turn++
	sample := &berthv1.NodeTelemetry{
		SampledAt: timestamppb.New(h.now), CpuBusyRatio: new(float64(h.turn%100) / 100),
		MemoryTotalBytes: new(int64(512 << 30)), MemoryAvailableBytes: new(int64(h.turn%256) << 30),
	}
	for i := range h.guests {
		sample.Domains = append(sample.Domains, &berthv1.DomainTelemetry{
			Uuid: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), CpuRatio: new(float64((h.turn+i)%80) / 20), Vcpus: new(int32(4)),
			RssBytes: new(int64(1+(h.turn+i)%32) << 28), VcpuDelayRatio: new(float64((h.turn+i)%50) / 1000),
		})
	}
	return sample
}
