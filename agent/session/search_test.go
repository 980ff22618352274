package session

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

type stream = connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse]

// network is a network in memory, so that the time of a test is virtual. An address without a machine refuses.
type network map[string]*machine

// machine is the net.Listener of a coordinator.
type machine struct {
	dialled chan net.Conn
	open    context.Context
	close   context.CancelFunc
}

// Accept implements net.Listener.
func (m *machine) Accept() (net.Conn, error) {
	select {
	case conn := <-m.dialled:
		return conn, nil
	case <-m.open.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *machine) Close() error {
	m.close()
	return nil
}

// Addr implements net.Listener.
func (m *machine) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7421} }

// dial connects to a machine of the network.
func (n network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	m := n[address]
	if m == nil {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	select {
	case m.dialled <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve puts a coordinator at an address, which does what serve says with each stream. It gives a client for the network.
func (n network) serve(t *testing.T, address string, serve func(context.Context, *stream) error) *http.Client {
	t.Helper()
	m := &machine{dialled: make(chan net.Conn)}
	m.open, m.close = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewAgentServiceHandler(&leader{serve: serve}))
	server := httptest.NewUnstartedServer(mux)
	server.Listener.Close()
	server.Listener = m
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	n[address] = m
	client := server.Client()
	client.Transport.(*http.Transport).DialContext = n.dial
	return client
}

// Two of three coordinators are dead, and the third knows no leader for a long time. Once it knows one, the agent is there
// within moments: how long the search took makes no difference.
func TestIsBackAtOnceHoweverLongThereWasNoLeader(t *testing.T) {
	const (
		held  = 3 * time.Second        // a coordinator lets the agent wait for a leader
		asked = 200 * time.Millisecond // between its looks for one
	)
	for _, outage := range []time.Duration{0, 10 * time.Second, time.Minute, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var leads atomic.Bool
			there := make(chan time.Time, 1)
			coordinators := network{}
			client := coordinators.serve(t, "127.0.0.1:1", func(ctx context.Context, stream *stream) error {
				if _, err := stream.Receive(); err != nil {
					return err
				}
				for waited := time.Duration(0); !leads.Load(); waited += asked {
					if waited >= held {
						return stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Redirect{
							Redirect: &berthv1.Redirect{},
						}})
					}
					time.Sleep(asked)
				}
				there <- time.Now()
				if err := stream.Send(welcome()); err != nil {
					return err
				}
				<-ctx.Done()
				return nil
			})
			a := run(t, client, nil, "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
			time.Sleep(outage)
			leads.Store(true)
			led := time.Now()
			// The longest way: it has just been sent away, and has both dead ones before it.
			if took, most := (<-there).Sub(led), 3*quickPause+asked; took > most {
				t.Errorf("after %s without a leader the agent took %s to be back, want at most %s", outage, took, most)
			}
			a.stop()
		})
	}
}

// Every coordinator has its turn: two dead ones cannot hide the one that is alive.
func TestAsksAllInTurn(t *testing.T) {
	s := New(Config{Addresses: []string{"a", "b", "c"}})
	firsts := make(map[string]bool)
	for range 64 {
		asked := []string{s.choose(), s.choose(), s.choose()}
		if asked[0] == asked[1] || asked[1] == asked[2] || asked[0] == asked[2] || s.choose() != asked[0] {
			t.Fatalf("asked %v, want each of the three once before the first again", asked)
		}
		firsts[asked[0]] = true
		s.round = nil // another agent
	}
	if len(firsts) != 3 {
		t.Errorf("all agents begin with %v, want each with one of its own", firsts)
	}
	s.remember([]string{"d", "e"})
	if got := s.choose() + s.choose(); got != "de" && got != "ed" {
		t.Errorf("asked %s, want the coordinators that are there now", got)
	}
}
