package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/bench/report"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/units"
)

// figure is one thing that is measured at each size: seconds of CPU, or bytes.
type figure struct {
	name   string
	what   string
	unit   func(float64) string
	wanted float64                                             // at most, at 10,000 nodes; 0: nothing is wanted of it
	take   func(ctx context.Context, s *site) (float64, error) // nil: it is taken with the storms
}

var figures = []figure{
	{"VIEW", "the view for the next decision after one report, CPU", report.Seconds, 50e-6, takeView},
	{"COLUMNS", "the same with the columns that it reads, CPU", report.Seconds, 0, takeColumns},
	{"START", "a start to its end, CPU of the leader without log and network", report.Seconds, 1e-3, takeStart},
	{"DISK", "the same of a VM with a disk", report.Seconds, 1e-3, takeDisk},
	{"LOG", "bytes of log of a start", plainBytes, 2e3, takeLog},
	{"PLAIN", "the same before its entries are packed", plainBytes, 0, takePlain},
	{"SHARED", "bytes of log of each of 16 starts that share entries", plainBytes, 0, takeShared},
	{"STATUS", "status, CPU", report.Seconds, 10e-3, takeStatus},
	{"NODES", "a page of nodes, CPU", report.Seconds, 50e-3, takeNodes},
	{"PAGE", "a page of VMs, CPU", report.Seconds, 10e-3, takePage},
	{"LIST", "all pages of VMs, CPU", report.Seconds, 1.5, takeList},
	{"MAP", "the map of the console with all calls, CPU", report.Seconds, 3, takeMap},
	{"DRAIN", "drain --dry-run, CPU", report.Seconds, 0.3, takeDrain},
	{"CAPACITY", "capacity, CPU", report.Seconds, 0.3, takeCapacity},
	{"IDLE", "an idle second of the leader, reports not counted, CPU", report.Seconds, 10e-3, takeIdle},
	{"GARBAGE", "what it takes from the heap in that second", report.Megabytes, 1e6, takeGarbage},
	{"HEAP", "heap at rest", report.Megabytes, 0, takeHeap},
	{"SAVE", "a snapshot of the state, CPU", report.Seconds, 0, takeSave},
	{"BYTES", "size of the snapshot", report.Megabytes, 60e6, takeBytes},
	{"LOAD", "a restore of it, CPU", report.Seconds, 3, takeLoad},
	{"ENROL", "enrolment of one node more, CPU", report.Seconds, 0.5e-3, takeEnrol},
}

// cpu is what doing something so often takes of the processors, each time, in seconds. It is done once before.
func (s *site) cpu(times int, do func(i int) error) (float64, error) {
	if err := do(0); err != nil {
		return 0, err
	}
	runtime.GC()
	if err := s.profile.begin(); err != nil {
		return 0, err
	}
	begun := spent()
	for i := range times {
		if err := do(i + 1); err != nil {
			return 0, errors.Join(err, s.profile.end())
		}
	}
	took := spent() - begun
	return took.Seconds() / float64(times), s.profile.end()
}

// spent is the CPU time of this process.
func spent() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func takeView(_ context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(2000, func(i int) error {
		s.agents.report(i)
		s.inventory.View(s.store.Snapshot(), time.Now())
		return nil
	})
}

func takeColumns(_ context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(1000, func(i int) error {
		s.agents.report(i)
		s.inventory.View(s.store.Snapshot(), time.Now()).Columns(model.DefaultCluster)
		return nil
	})
}

// start starts a VM and waits for its end.
func (s *site) start(ctx context.Context, name string, withDisk bool) error {
	var disks []model.Disk
	if withDisk {
		disks = []model.Disk{{Path: "/srv/vms/" + name + ".qcow2", Format: "qcow2", Bus: "virtio"}}
	}
	started, err := s.control.StartVM(ctx, lifecycle.StartVM{
		Name: name, VM: &model.VM{Name: name, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/boot/vmlinuz", Disks: disks}},
		RequestID: name, Caller: "operator/scale",
	})
	if err != nil {
		return err
	}
	for {
		snapshot := s.store.Snapshot()
		if op, _ := snapshot.Operation(started.Operation.ID); !op.Live() {
			if op.Result != "done" {
				return fmt.Errorf("%s: %s", op.Result, op.Message)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-snapshot.Changed():
		}
	}
}

// takeStart takes starts in rounds: between them, which does not count, all nodes tell how they are, so that none is too old to be chosen.
func takeStart(ctx context.Context, s *site) (float64, error) { return s.starts(ctx, "start", false) }

// takeDisk is the same of VMs that write to a disk, so that it has to be known that nobody else does.
func takeDisk(ctx context.Context, s *site) (float64, error) {
	return s.starts(ctx, "disk", true)
}

func (s *site) starts(ctx context.Context, what string, withDisk bool) (float64, error) {
	const rounds, starts = 5, 20
	sum := 0.0
	for round := range rounds {
		s.settle()
		took, err := s.cpu(starts, func(i int) error { return s.start(ctx, fmt.Sprint(what, "-", round, "-", i), withDisk) })
		if err != nil {
			return 0, err
		}
		sum += took
	}
	return sum / rounds, nil
}

// plainBytes writes an amount that is small beside the others.
func plainBytes(b float64) string { return fmt.Sprintf("%.0f B", b) }

func takeLog(ctx context.Context, s *site) (float64, error) {
	packed, _, err := s.logged(ctx, "log")
	return packed, err
}

func takePlain(ctx context.Context, s *site) (float64, error) {
	_, plain, err := s.logged(ctx, "plain")
	return plain, err
}

// logged is the bytes of log of a start, packed and before.
func (s *site) logged(ctx context.Context, name string) (packed, plain float64, err error) {
	const starts = 20
	s.settle()
	before, plainBefore := s.log.bytes, s.log.plain
	for i := range starts {
		if err := s.start(ctx, fmt.Sprint(name, "-", i), false); err != nil {
			return 0, 0, err
		}
	}
	return float64(s.log.bytes-before) / starts, float64(s.log.plain-plainBefore) / starts, nil
}

// takeShared packs what starts have written one by one as a leader with as many callers would have put it into the log.
func takeShared(ctx context.Context, s *site) (float64, error) {
	const starts = 16
	s.log.keep = true
	_, _, err := s.logged(ctx, "shared")
	s.log.keep = false
	if err != nil {
		return 0, err
	}
	entries := make(map[bool][][]byte) // the begins of starts and their ends
	for _, data := range s.log.kept {
		command, err := state.DecodeCommand(data)
		if err != nil {
			return 0, err
		}
		if ends := len(command.Decisions) == 0; len(entries[ends]) < starts {
			entries[ends] = append(entries[ends], data)
		}
	}
	s.log.kept = nil
	total := 0
	for _, commands := range entries {
		total += len(state.Entry(commands, state.FeatureLevel))
	}
	return float64(total) / starts, nil
}

func takeStatus(ctx context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(20, func(i int) error {
		s.agents.report(i)
		_, err := s.api.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		return err
	})
}

func takeNodes(ctx context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(10, func(i int) error {
		s.agents.report(i)
		_, err := s.api.ListNodes(ctx, connect.NewRequest(&berthv1.ListNodesRequest{}))
		return err
	})
}

func takePage(ctx context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(20, func(i int) error {
		s.agents.report(i)
		_, err := s.api.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{}))
		return err
	})
}

func takeList(ctx context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(1, func(int) error {
		token := ""
		for {
			page, err := s.api.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{PageToken: token}))
			if err != nil {
				return err
			}
			if token = page.Msg.GetNextPageToken(); token == "" {
				return nil
			}
		}
	})
}

func takeDrain(ctx context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(3, func(i int) error {
		_, err := s.api.DrainNode(ctx, connect.NewRequest(&berthv1.DrainNodeRequest{Node: nodeID(i), DryRun: true}))
		return err
	})
}

func takeCapacity(ctx context.Context, s *site) (float64, error) {
	s.settle()
	return s.cpu(3, func(int) error {
		_, err := s.api.Capacity(ctx, connect.NewRequest(&berthv1.CapacityRequest{MemoryBytes: 4 << 30, Vcpus: 2}))
		return err
	})
}

// idleSeconds is how long an idle leader is watched: as long as its slowest loop takes. No node falls silent meanwhile: at each size they
// may be silent for longer.
const idleSeconds = 5

func takeIdle(_ context.Context, s *site) (float64, error) {
	s.settle()
	begun := spent()
	time.Sleep(idleSeconds * time.Second)
	return (spent() - begun).Seconds() / idleSeconds, nil
}

func takeGarbage(_ context.Context, s *site) (float64, error) {
	s.settle()
	begun := allocated()
	time.Sleep(idleSeconds * time.Second)
	return float64(allocated()-begun) / idleSeconds, nil
}

// rests is how long a leader takes at most to take in what nodes tell: its slower loops look once a second.
const rests = 1500 * time.Millisecond

// settle has every node tell how it is, and waits until the leader has taken that in, so that it does not count as work for what is
// measured next. What the leader does only once, when it begins to lead, it has done by then.
func (s *site) settle() {
	const begins = 12 // seconds
	for second := 0; !s.rested && second < begins; second++ {
		s.agents.reportAll()
		time.Sleep(time.Second)
	}
	s.rested = true
	s.agents.reportAll()
	time.Sleep(rests)
	runtime.GC()
}

// allocated is how many bytes this process has ever taken from its heap.
func allocated() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.TotalAlloc
}

func takeHeap(context.Context, *site) (float64, error) {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.HeapAlloc), nil
}

func (s *site) saved() (*bytes.Buffer, error) {
	var out bytes.Buffer
	return &out, s.store.Snapshot().Save(&out)
}

func takeSave(_ context.Context, s *site) (float64, error) {
	return s.cpu(1, func(int) error { _, err := s.saved(); return err })
}

func takeBytes(_ context.Context, s *site) (float64, error) {
	out, err := s.saved()
	return float64(out.Len()), err
}

func takeLoad(_ context.Context, s *site) (float64, error) {
	out, err := s.saved()
	if err != nil {
		return 0, err
	}
	return s.cpu(1, func(int) error { _, err := state.Load(bytes.NewReader(out.Bytes())); return err })
}

// takeEnrol enrols machines that nothing is known of, with one token. A decision would be made after each: its view has the new node.
func takeEnrol(ctx context.Context, s *site) (float64, error) {
	const machines = 100
	made, err := s.api.CreateToken(ctx, connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: "agent", Uses: machines + 1}))
	if err != nil {
		return 0, err
	}
	token, err := pki.ParseToken(made.Msg.GetToken())
	if err != nil {
		return 0, err
	}
	requests := make([]*berthv1.EnrolRequest, machines+1)
	for i := range requests {
		name := fmt.Sprintf("new-%03d", i)
		request, _, err := pki.NewRequest(name)
		if err != nil {
			return 0, err
		}
		requests[i] = &berthv1.EnrolRequest{
			TokenSecret: token.Secret, Name: name, CsrPem: request, MachineId: "machine-" + name,
			HostUuid: fmt.Sprintf("00000000-0000-4000-8000-%012d", i),
		}
	}
	s.settle()
	return s.cpu(machines, func(i int) error {
		_, err := s.api.Enrol(ctx, connect.NewRequest(requests[i]))
		s.inventory.View(s.store.Snapshot(), time.Now())
		return err
	})
}
