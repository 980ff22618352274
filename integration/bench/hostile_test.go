package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// hostile is a node whose host was taken over. It does everything that it can think of, as fast as it is let.
type hostile struct {
	simagent.Identity
	said atomic.Int64 // messages and streams

	mu     sync.Mutex
	others []string // VMs of other nodes, by UUID
}

// saw tells it of a VM of another node.
func (h *hostile) saw(uuid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others = append(h.others, uuid)
}

// lies are domains that it does not have: those of others, with epochs at the end of the numbers, and names that steer terminals.
func (h *hostile) lies() []*berthv1.Domain {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*berthv1.Domain
	for i, uuid := range h.others {
		all = append(all, &berthv1.Domain{
			Uuid: uuid, Name: fmt.Sprintf("load%d\x1b[2J'; rm -rf /; '", i), State: berthv1.DomainState_DOMAIN_STATE_RUNNING,
			Managed: true, Epoch: math.MaxUint64 - uint64(i), StateReason: strings.Repeat("x", 4<<10),
		})
	}
	return all
}

// run goes on until the context ends.
func (h *hostile) run(ctx context.Context, t *testing.T) {
	t.Helper()
	secure, err := pki.ClientConfig(h.Files, pki.RolePeer)
	check(t, err)
	var all sync.WaitGroup
	defer all.Wait()
	for _, address := range h.Addresses {
		for _, mischief := range []func(context.Context, *http.Client, string){h.speak, h.speak, h.burst, h.burst} {
			all.Go(func() {
				client := rpc.NewHTTPClient(secure)
				defer client.CloseIdleConnections()
				for ctx.Err() == nil {
					mischief(ctx, client, "https://"+address)
					_ = testbed.Pause(ctx, time.Millisecond)
				}
			})
		}
	}
}

// speak opens a session as it should be, and lies in it without an end.
func (h *hostile) speak(ctx context.Context, client *http.Client, url string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := berthv1connect.NewAgentServiceClient(client, url).Session(ctx)
	go func() { // what it is told is read and thrown away
		for {
			if _, err := stream.Receive(); err != nil {
				cancel()
				return
			}
		}
	}()
	messages := []*berthv1.SessionRequest{h.hello()}
	for sequence := uint64(1); ctx.Err() == nil; sequence++ {
		if len(messages) == 0 {
			messages = h.nonsense(sequence)
		}
		messages[0].Sequence = sequence
		if stream.Send(messages[0]) != nil {
			return
		}
		messages = messages[1:]
		h.said.Add(1)
	}
}

func (h *hostile) hello() *berthv1.SessionRequest {
	return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		NodeId: h.NodeID, ClusterId: h.ClusterID, Incarnation: fmt.Sprint("boot/", time.Now().UnixNano()),
	}}}
}

// nonsense is a round of lies.
func (h *hostile) nonsense(round uint64) []*berthv1.SessionRequest {
	lies := h.lies()
	all := []*berthv1.SessionRequest{
		{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node:    &berthv1.NodeInventory{HostName: "\x1b]0;owned\x07", MigrationUri: "qemu+ext://127.0.0.1/system?command=/bin/sh"},
			Domains: lies,
		}}},
		{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{
			Sequence: round, Ailing: strings.Repeat("ill\n", 1<<10),
		}}},
		{Message: &berthv1.SessionRequest_Libvirt{Libvirt: &berthv1.LibvirtStatus{Error: fmt.Sprint("it is broken ", round)}}},
	}
	for _, lie := range lies[max(0, len(lies)-20):] {
		lie.Ending = &berthv1.Ending{WatchedSeconds: 9, EndedSeconds: 1}
		all = append(all,
			&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{
				DomainChange: &berthv1.DomainChange{Domain: lie, Event: "crashed"},
			}},
			&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{
				OperationId: lie.GetUuid(), Step: 1, Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, Error: "no", Domain: lie,
			}}},
			&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Progress{
				Progress: &berthv1.CommandProgress{OperationId: lie.GetUuid(), Step: 1},
			}},
		)
	}
	return all
}

// burst sends what is too large, or becomes so when it is unpacked or decoded, before and after a hello.
func (h *hostile) burst(ctx context.Context, client *http.Client, url string) {
	empty := bytes.Repeat([]byte{0x12, 0}, 1<<20) // a million domains of two bytes each
	many := binary.AppendUvarint([]byte{0x1a}, uint64(len(empty)))
	many = append(many, empty...)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(many)
	_ = writer.Close()
	first := h.hello()
	first.Sequence = 1
	hello, _ := proto.Marshal(first)
	for _, body := range [][]byte{
		frame(0, many), frame(1, packed.Bytes()),
		{0, 0xff, 0xff, 0xff, 0xff},
		append(frame(0, hello), frame(1, packed.Bytes())...), append(frame(0, hello), frame(0, many)...),
	} {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		procedure := url + berthv1connect.AgentServiceSessionProcedure
		request, err := http.NewRequestWithContext(limited, http.MethodPost, procedure, bytes.NewReader(body))
		if err == nil {
			request.Header.Set("Content-Type", "application/connect+proto")
			request.Header.Set("Connect-Protocol-Version", "1")
			request.Header.Set("Connect-Content-Encoding", "gzip")
			if answer, err := client.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		}
		cancel()
		h.said.Add(1)
	}
}

func frame(flags byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data))), data...)
}

// One node of a hundred belongs to somebody else by now. Each start on the others is accepted and comes to its end.
func TestAHostileAgentStopsNoStarts(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "berth"))
	check(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: 'make build' makes it", err)
	}
	nodes, _ := strconv.Atoi(os.Getenv(agentsVariable))
	if nodes <= 0 {
		nodes = 100
	}
	check(t, testbed.RaiseFileLimit(uint64(filesPerAgent*nodes+5000)))
	ctx := t.Context()
	c, err := testbed.RaiseCoordinators(ctx, program, t.TempDir(), 3)
	check(t, err)
	defer func() { check(t, c.Close()) }()
	f, err := testbed.EnrolFleet(ctx, c, nodes-1)
	check(t, err)
	defer f.Close()
	token, err := c.Token(ctx, pki.PurposeAgent, "evil")
	check(t, err)
	identity, err := simagent.Enrol(ctx, c.Members[0].Listen.API, token, "evil", filepath.Join(c.Dir, "evil"))
	check(t, err)
	h := &hostile{Identity: identity}

	s := &starts{fleet: f, hostile: h}
	s.run(ctx, t, c, time.Second) // what is new is slow
	alone := s.run(ctx, t, c, shape)
	running, end := context.WithCancel(ctx)
	var mischief sync.WaitGroup
	mischief.Go(func() { h.run(running, t) })
	beside := s.run(ctx, t, c, shape)
	end()
	mischief.Wait()
	if h.said.Load() < 100 {
		t.Errorf("it has said only %d things", h.said.Load())
	}
	goal(t, "hostile agent", beside >= 0.5*alone, "goodput beside it >= 50 %",
		"%d nodes: %s starts alone, %s beside a hostile one that says %d things (%.0f %%)",
		nodes, report.PerSecond(alone), report.PerSecond(beside), h.said.Load(), 100*beside/alone)
}

// starts are VMs that are started one after the other by a few clients.
type starts struct {
	fleet   *testbed.Fleet
	hostile *hostile
	number  atomic.Int64
}

// run starts VMs for as long as that, and returns how many a second ran. Each has to.
func (s *starts) run(ctx context.Context, t *testing.T, c *testbed.Coordinators, lasting time.Duration) float64 {
	t.Helper()
	lead, err := c.Leader(ctx)
	check(t, err)
	callers, err := clientsOf(c, lead, fewClients)
	check(t, err)
	defer callers.close()
	var all sync.WaitGroup
	var ran atomic.Int64
	begun := time.Now()
	for _, api := range callers.apis {
		all.Go(func() {
			for time.Since(begun) < lasting {
				uuid, err := s.start(ctx, api)
				if err != nil {
					t.Errorf("a start failed: %v", err)
					return
				}
				s.hostile.saw(uuid)
				ran.Add(1)
			}
		})
	}
	all.Wait()
	return float64(ran.Load()) / time.Since(begun).Seconds()
}

// start starts one VM and waits until it runs, on one node.
func (s *starts) start(ctx context.Context, api berthv1connect.BerthServiceClient) (uuid string, err error) {
	name := fmt.Sprintf("start%d", s.number.Add(1))
	answer, err := testbed.Patiently(ctx, func() (*connect.Response[berthv1.StartVMResponse], error) {
		return api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
			Name: name, RequestId: name, Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
		}))
	})
	if err != nil {
		return "", err
	}
	if _, err := testbed.AwaitEnd(ctx, api, answer.Msg.GetOperation().GetId()); err != nil {
		return "", err
	}
	uuid = answer.Msg.GetVm().GetId()
	return uuid, s.fleet.RunsOnce(uuid)
}
