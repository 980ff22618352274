package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Agent is such a node. The exported fields are set before Run.
type Agent struct {
	NodeID, ClusterID string
	Files             pki.Files
	Addresses         []string // host:port of the coordinators' agent listeners

	said   atomic.Int64
	mu     sync.Mutex
	others []string // VMs of other nodes, by UUID
}

// Saw tells it of a VM of another node, about which it lies from then on.
func (a *Agent) Saw(uuid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.others = append(a.others, uuid)
}

// Said is how many messages and streams it has sent.
func (a *Agent) Said() int64 { return a.said.Load() }

// Run goes on until the context ends. The error says that there is no such certificate.
func (a *Agent) Run(ctx context.Context) error {
	secure, err := pki.ClientConfig(a.Files, pki.RolePeer)
	if err != nil {
		return fmt.Errorf("hostile agent: %w", err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, address := range a.Addresses {
		for _, mischief := range []func(context.Context, *http.Client, string){a.speak, a.speak, a.burst, a.burst} {
			all.Go(func() {
				client := rpc.NewHTTPClient(secure)
				defer client.CloseIdleConnections()
				for ctx.Err() == nil {
					mischief(ctx, client, "https://"+address)
					select {
					case <-ctx.Done():
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
	}
	return nil
}

// lies are domains that it does not have: those of others, with epochs at the end of the numbers, and names that steer terminals.
func (a *Agent) lies() []*berthv1.Domain {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*berthv1.Domain
	for i, uuid := range a.others {
		all = append(all, &berthv1.Domain{
			Uuid: uuid, Name: fmt.Sprintf("load%d\x1b[2J'; rm -rf /; '", i), State: berthv1.DomainState_DOMAIN_STATE_RUNNING,
			Managed: true, Epoch: math.MaxUint64 - uint64(i), StateReason: strings.Repeat("x", 4<<10),
		})
	}
	return all
}

// speak opens a session as it should be, and lies in it without an end.
func (a *Agent) speak(ctx context.Context, client *http.Client, url string) {
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
	messages := []*berthv1.SessionRequest{a.hello()}
	for sequence := uint64(1); ctx.Err() == nil; sequence++ {
		if len(messages) == 0 {
			messages = a.nonsense(sequence)
		}
		messages[0].Sequence = sequence
		if stream.Send(messages[0]) != nil {
			return
		}
		messages = messages[1:]
		a.said.Add(1)
	}
}

func (a *Agent) hello() *berthv1.SessionRequest {
	return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		NodeId: a.NodeID, ClusterId: a.ClusterID, Incarnation: fmt.Sprint("boot/", time.Now().UnixNano()),
	}}}
}

// nonsense is a round of lies.
func (a *Agent) nonsense(round uint64) []*berthv1.SessionRequest {
	lies := a.lies()
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
func (a *Agent) burst(ctx context.Context, client *http.Client, url string) {
	empty := bytes.Repeat([]byte{0x12, 0}, 1<<20) // a million domains of two bytes each
	many := binary.AppendUvarint([]byte{0x1a}, uint64(len(empty)))
	many = append(many, empty...)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(many)
	_ = writer.Close()
	first := a.hello()
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
		a.said.Add(1)
	}
}

func frame(flags byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data))), data...)
}
