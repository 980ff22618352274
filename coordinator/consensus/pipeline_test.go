package consensus

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// A member that refuses entries once, as one does whose log is behind, is sent more by a leader that has not yet acted on that: nothing
// waits for an answer that nobody takes. The transport is Raft's own.
func TestNothingWaitsBehindARefusal(t *testing.T) {
	here, there := onLoopback(t), onLoopback(t)
	go func() {
		for {
			select {
			case rpc := <-there.Consumer():
				rpc.Respond(&raft.AppendEntriesResponse{Term: 2}, nil)
			case <-t.Context().Done():
				return
			}
		}
	}()
	link := newTransport(judging(here), func() (uint64, uint64) { return 0, 2 }, nil)
	sending, err := link.AppendEntriesPipeline("m2", there.LocalAddr())
	if err != nil {
		t.Fatal(err)
	}
	send := func(count int) error {
		for range count {
			if _, err := sending.AppendEntries(&raft.AppendEntriesRequest{Term: 2}, new(raft.AppendEntriesResponse)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := send(1); err != nil {
		t.Fatal(err)
	}
	if answer := <-sending.Consumer(); answer.Response().Success {
		t.Fatal("the member took it")
	}
	// Raft listens no more from here on.
	sent := make(chan error, 1)
	go func() { sent <- send(5) }()
	select {
	case err := <-sent:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("what is sent after a refusal waits for ever")
	}
	for range 2 {
		if err := sending.Close(); err != nil {
			t.Error(err)
		}
	}
}

// onLoopback is Raft's transport over TCP.
func onLoopback(t *testing.T) *raft.NetworkTransport {
	t.Helper()
	transport, err := raft.NewTCPTransport("127.0.0.1:0", nil, pooled, rpcLimit, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = transport.Close() })
	return transport
}
