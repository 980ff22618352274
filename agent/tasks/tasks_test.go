package tasks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	vmID  = "11111111-2222-4333-8444-555555555555"
	image = "berth-0img.qcow2"
)

// bench is one node with a pool of 1 MiB, in virtual time.
type bench struct {
	*testing.T
	node   *fake.Hypervisor
	tasks  *Tasks
	tunnel *pipes
}

func inBubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		node := fake.NewWire().Host("n1")
		node.AddPool("local", 1<<20)
		test(&bench{T: t, node: node, tasks: &Tasks{Hypervisor: node, Logger: hclog.NewNullLogger()}, tunnel: newPipes()})
	})
}

// pipes are a tunnel and its other end.
type pipes struct {
	toHere, fromHere *io.PipeReader
	there, here      *io.PipeWriter
	close            sync.Once
}

func newPipes() *pipes {
	p := &pipes{}
	p.toHere, p.there = io.Pipe()
	p.fromHere, p.here = io.Pipe()
	return p
}

func (p *pipes) Read(into []byte) (int, error)  { return p.toHere.Read(into) }
func (p *pipes) Write(data []byte) (int, error) { return p.here.Write(data) }
func (p *pipes) CloseWrite() error              { return p.here.Close() }
func (p *pipes) Close() error {
	p.close.Do(func() {
		_ = p.toHere.CloseWithError(errors.New("closed"))
		_ = p.here.Close()
	})
	return nil
}

// dig hands out the tunnel for its ticket.
func (b *bench) dig(ctx context.Context, ticket string) (Tunnel, error) {
	if ticket != "ticket" {
		return nil, errors.New("the ticket is not good")
	}
	context.AfterFunc(ctx, func() { _ = b.tunnel.there.CloseWithError(ctx.Err()) })
	return b.tunnel, nil
}

func (b *bench) do(task *berthv1.Task) *berthv1.TaskResult {
	b.Helper()
	task.Id = "t1"
	result := b.tasks.Do(b.Context(), task, b.dig)
	if result.GetId() != "t1" || result.GetDone() != (result.GetError() == "") || result.GetDone() != (result.GetErrorCode() == "") {
		b.Errorf("the answer is %v", result)
	}
	if errorcode.TaskWord(result.GetCode()) != result.GetErrorCode() {
		b.Errorf("code %s with the word %q", result.GetCode(), result.GetErrorCode())
	}
	return result
}

// qcow2 is the beginning of a file of the format, as the fake reads it.
func qcow2(capacity byte) []byte {
	file := make([]byte, 64<<10)
	copy(file, "QFI\xfb")
	file[29] = capacity // times 64 KiB
	return file
}

func fetchTask(content []byte, change func(*berthv1.FetchTask)) *berthv1.Task {
	sum := sha256.Sum256(content)
	order := &berthv1.FetchTask{
		Volume:    &berthv1.Volume{DiskName: "debian", Pool: "local", Name: image, Format: "qcow2", CapacityBytes: 16 << 16},
		SizeBytes: int64(len(content)), Sha256: hex.EncodeToString(sum[:]), Ticket: "ticket",
	}
	if change != nil {
		change(order)
	}
	return &berthv1.Task{Action: &berthv1.Task_Fetch{Fetch: order}}
}

// send is the coordinator's end of a tunnel that carries a file.
func (b *bench) send(content []byte, end error) {
	go func() {
		_, _ = b.tunnel.there.Write(content)
		_ = b.tunnel.there.CloseWithError(end)
	}()
}

func TestFetch(t *testing.T) {
	inBubble(t, func(b *bench) {
		for range 2 { // the second time in the place of the first
			b.tunnel = newPipes()
			content := qcow2(16)
			b.send(content, nil)
			result := b.do(fetchTask(content, nil))
			if !result.GetDone() || result.GetAllocatedBytes() <= int64(len(content)) {
				b.Errorf("got %v", result)
			}
			if got := b.node.Content("local", image); !bytes.Equal(got, content) {
				b.Errorf("the volume has %d bytes", len(got))
			}
		}
	})
}

func TestAFetchThatFailsLeavesNothing(t *testing.T) {
	good := qcow2(16)
	for name, c := range map[string]struct {
		content []byte
		end     error
		prepare func(b *bench)
		change  func(*berthv1.FetchTask)
		code    string
		says    string
	}{
		"another checksum": {good, nil, nil, func(f *berthv1.FetchTask) { f.Sha256 = strings.Repeat("0", 64) }, "invalid", "SHA-256"},
		"longer than said": {good, nil, nil, func(f *berthv1.FetchTask) { f.SizeBytes-- }, "invalid", "longer"},
		"another size":     {qcow2(17), nil, nil, nil, "invalid", "a guest would see"},
		"another format":   {make([]byte, 100), nil, nil, nil, "invalid", "raw, not qcow2"},
		"it breaks off": {
			good[:1000], errors.New("the tunnel broke"), nil, func(f *berthv1.FetchTask) { f.SizeBytes = 64 << 10 }, "internal", "broke",
		},
		"it ends early":      {good[:1000], nil, nil, func(f *berthv1.FetchTask) { f.SizeBytes = 64 << 10 }, "internal", "EOF"},
		"the ticket is used": {nil, nil, nil, func(f *berthv1.FetchTask) { f.Ticket = "old" }, "internal", "ticket"},
		"the pool is full":   {good, nil, func(b *bench) { b.node.AddPool("local", 1000) }, nil, "no_space", "debian in pool local"},
		"the pool is gone":   {good, nil, nil, func(f *berthv1.FetchTask) { f.Volume.Pool = "gone" }, "no_pool", "gone"},
		"it cannot be seen": {
			good, nil, func(b *bench) { b.node.Inject("lookup-volume", fake.Fault{Err: hypervisor.ErrUnavailable}) }, nil, "unavailable",
			"debian",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				if c.prepare != nil {
					c.prepare(b)
				}
				b.send(c.content, c.end)
				result := b.do(fetchTask(c.content, c.change))
				if result.GetErrorCode() != c.code || !strings.Contains(result.GetError(), c.says) || result.GetAllocatedBytes() != 0 {
					b.Errorf("got %v, want %s and %q", result, c.code, c.says)
				}
				if left := b.node.Volumes("local"); len(left) != 0 {
					b.Errorf("left: %v", left)
				}
				_ = b.tunnel.Close()
			})
		})
	}
}

// slow takes its time over the first volume that it really removes.
type slow struct {
	*fake.Hypervisor
	once sync.Once
}

func (s *slow) DeleteVolume(ctx context.Context, pool, name string) error {
	if len(s.Volumes(pool)) > 0 {
		s.once.Do(func() { time.Sleep(5 * time.Second) })
	}
	return s.Hypervisor.DeleteVolume(ctx, pool, name)
}

// When the session ends, so does the fetch, and it cleans up although nobody waits for it. The next one waits for that.
func TestAFetchThatIsCutOffCleansUpBeforeTheNext(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.tasks.Hypervisor = &slow{Hypervisor: b.node}
		content := qcow2(16)
		ctx, cancel := context.WithCancel(b.Context())
		b.node.Inject("lookup-volume", fake.Fault{Hang: true, Times: 1}) // it is whole, and being looked at
		first := make(chan *berthv1.TaskResult, 1)
		b.send(content, nil)
		go func() { first <- b.tasks.Do(ctx, fetchTask(content, nil), b.dig) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		b.tunnel = newPipes()
		b.send(content, nil)
		if result := b.do(fetchTask(content, nil)); !result.GetDone() {
			b.Errorf("the second: %v", result)
		}
		if result := <-first; result.GetDone() {
			b.Errorf("the first: %v", result)
		}
		time.Sleep(time.Minute)
		if got := b.node.Content("local", image); !bytes.Equal(got, content) {
			b.Error("the first one removed what the second had made")
		}
	})
}

// boot starts a domain with a volume, under epoch 5.
func (b *bench) boot() {
	b.Helper()
	wanted := hypervisor.NewVolume{Pool: "local", Name: "disk", Format: "qcow2", CapacityBytes: 1 << 20}
	if err := b.node.CreateVolume(b.Context(), wanted); err != nil {
		b.Fatal(err)
	}
	const xml = `<domain type="kvm"><name>web</name><uuid>` + vmID +
		`</uuid><metadata><berth:vm xmlns:berth="https://berth.dev/domain/1" epoch="5"/></metadata>` +
		`<memory>1024</memory><devices><disk type="volume" device="disk"><source pool="local" volume="disk"/><target dev="vda"/>` +
		`</disk></devices></domain>`
	if err := b.node.Start(b.Context(), xml); err != nil {
		b.Fatal(err)
	}
}

func TestGrow(t *testing.T) {
	grow := func(name, vm string) *berthv1.Task {
		volume := &berthv1.Volume{DiskName: "root", Pool: "local", Name: name, CapacityBytes: 2 << 20}
		return &berthv1.Task{Action: &berthv1.Task_Grow{Grow: &berthv1.GrowTask{Volume: volume, VmId: vm}}}
	}
	inBubble(t, func(b *bench) {
		b.boot()
		for _, c := range []struct{ name, vm, code string }{
			{"disk", "", "busy"},
			{"other", "", "no_volume"},
			{"other", vmID, "no_volume"},
			{"disk", "22222222-2222-4333-8444-555555555555", "not_found"},
			{"disk", vmID, ""},
			{"disk", vmID, ""},
		} {
			if result := b.do(grow(c.name, c.vm)); result.GetErrorCode() != c.code {
				b.Errorf("%+v: %v", c, result)
			}
		}
		if err := b.node.Destroy(b.Context(), vmID, 5); err != nil {
			b.Fatal(err)
		}
		if result := b.do(grow("disk", "")); !result.GetDone() {
			b.Errorf("%v", result)
		}
		if v, err := b.node.LookupVolume(b.Context(), "local", "disk"); err != nil || v.CapacityBytes != 2<<20 {
			b.Errorf("%+v, %v", v, err)
		}
	})
}

func TestRemove(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.boot()
		if err := b.node.CreateVolume(
			b.Context(), hypervisor.NewVolume{Pool: "local", Name: "free", Format: "raw", CapacityBytes: 1},
		); err != nil {
			b.Fatal(err)
		}
		remove := &berthv1.Task{Action: &berthv1.Task_Remove{Remove: &berthv1.RemoveTask{Volumes: []*berthv1.Volume{
			{Pool: "local", Name: "none"}, {DiskName: "root", Pool: "local", Name: "disk"}, {Pool: "local", Name: "free"},
		}}}}
		result := b.do(remove)
		if result.GetErrorCode() != "busy" || !strings.Contains(result.GetError(), "disk root in pool local") {
			b.Errorf("%v", result)
		}
		if left := b.node.Volumes("local"); len(left) != 1 || left[0] != "disk" {
			b.Errorf("left: %v", left)
		}
		if result := b.do(&berthv1.Task{}); result.GetErrorCode() != "unsupported" {
			b.Errorf("no task at all: %v", result)
		}
	})
}

func consoleTask(epoch uint64, force bool) *berthv1.Task {
	return &berthv1.Task{Action: &berthv1.Task_Console{Console: &berthv1.ConsoleTask{
		VmId: vmID, Epoch: epoch, Ticket: "ticket", Force: force,
	}}}
}

func TestConsole(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"the caller hangs up":        func(b *bench) { _ = b.tunnel.there.Close() },
		"the guest ends":             func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) },
		"somebody else takes it":     func(b *bench) { _, _ = b.node.OpenConsole(b.Context(), vmID, true) },
		"the caller's tunnel breaks": func(b *bench) { _ = b.tunnel.there.CloseWithError(errors.New("broke")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.boot()
				ended := make(chan *berthv1.TaskResult, 1)
				go func() { ended <- b.do(consoleTask(5, false)) }()
				if _, err := b.tunnel.there.Write([]byte("hello")); err != nil {
					b.Fatal(err)
				}
				said := make([]byte, 5)
				if _, err := io.ReadFull(b.tunnel.fromHere, said); err != nil || string(said) != "hello" {
					b.Errorf("%q, %v", said, err)
				}
				end(b)
				if rest, err := io.ReadAll(b.tunnel.fromHere); err != nil || len(rest) != 0 {
					b.Errorf("after the end: %q, %v", rest, err)
				}
				if result := <-ended; !result.GetDone() {
					b.Errorf("%v", result)
				}
				_ = b.tunnel.Close()
			})
		})
	}
}

// What needs an order's turn is for the jobs.
func TestTasksOfTheJobs(t *testing.T) {
	inBubble(t, func(b *bench) {
		var asked []string
		job := func(name string, err error) func(context.Context, string, uint64) error {
			return func(_ context.Context, vm string, epoch uint64) error {
				asked = append(asked, fmt.Sprintf("%s %s %d", name, vm, epoch))
				return err
			}
		}
		b.tasks.Refuse, b.tasks.Discard = job("refuse", nil), job("discard", hypervisor.ErrInvalidState)
		if result := b.do(&berthv1.Task{Action: &berthv1.Task_Refuse{Refuse: &berthv1.RefuseTask{VmId: vmID, Epoch: 3}}}); !result.GetDone() {
			b.Errorf("refuse: %v", result)
		}
		if result := b.do(&berthv1.Task{Action: &berthv1.Task_Discard{
			Discard: &berthv1.DiscardTask{VmId: vmID, Epoch: 4},
		}}); result.GetErrorCode() != "invalid_state" {
			b.Errorf("discard: %v", result)
		}
		if want := []string{"refuse " + vmID + " 3", "discard " + vmID + " 4"}; !slices.Equal(asked, want) {
			b.Errorf("asked for %q", asked)
		}
	})
}

func TestConsoleRefuses(t *testing.T) {
	inBubble(t, func(b *bench) {
		if result := b.do(consoleTask(5, false)); result.GetErrorCode() != "not_found" {
			b.Errorf("no VM: %v", result)
		}
		b.boot()
		if result := b.do(consoleTask(4, false)); result.GetErrorCode() != "other_epoch" {
			b.Errorf("an older copy: %v", result)
		}
		taken, err := b.node.OpenConsole(b.Context(), vmID, false)
		if err != nil {
			b.Fatal(err)
		}
		if result := b.do(consoleTask(5, false)); result.GetErrorCode() != "busy" {
			b.Errorf("taken: %v", result)
		}
		_ = b.tunnel.there.Close()
		if result := b.do(consoleTask(5, true)); !result.GetDone() {
			b.Errorf("taken by force: %v", result)
		}
		if _, err := taken.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			b.Errorf("whoever had it reads %v", err)
		}
		used := consoleTask(5, true)
		used.GetConsole().Ticket = "old"
		if result := b.do(used); result.GetErrorCode() != "internal" {
			b.Errorf("a used ticket: %v", result)
		}
		if _, err := b.node.OpenConsole(b.Context(), vmID, false); err != nil {
			b.Errorf("the console was not given back: %v", err)
		}
	})
}

// An agent tells of a week what it is asked for. One that keeps none says so.
func TestAWeekIsTold(t *testing.T) {
	inBubble(t, func(b *bench) {
		task := func(guest string) *berthv1.Task {
			return &berthv1.Task{Id: "t1", Action: &berthv1.Task_Profile{Profile: &berthv1.ProfileTask{VmId: guest}}}
		}
		without := b.tasks.Do(b.Context(), task(vmID), nil)
		if without.GetDone() || without.GetCode() != berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSUPPORTED {
			t.Errorf("without profiles: %v", without)
		}
		b.tasks.Week = func(guest string, now time.Time) []*berthv1.ProfileHour {
			return []*berthv1.ProfileHour{{CpuRatio: new(float64(len(guest))), BeganAt: timestamppb.New(now)}}
		}
		for _, guest := range []string{"", vmID} {
			said := b.tasks.Do(b.Context(), task(guest), nil)
			if hours := said.GetProfile(); !said.GetDone() || len(hours) != 1 || hours[0].GetCpuRatio() != float64(len(guest)) ||
				!hours[0].GetBeganAt().AsTime().Equal(time.Now()) {
				t.Errorf("of %q: %v", guest, said)
			}
		}
		b.tasks.Minutes = func(guest string, now time.Time) []*berthv1.ProfileHour {
			return []*berthv1.ProfileHour{{CpuRatio: new(float64(len(guest))), BeganAt: timestamppb.New(now)}, {}}
		}
		if said := b.tasks.Do(b.Context(), task(vmID), nil); len(said.GetProfile()) != 1 || len(said.GetMinutes()) != 2 ||
			said.GetMinutes()[0].GetCpuRatio() != float64(len(vmID)) {
			t.Errorf("with minutes: %v", said)
		}
	})
}
