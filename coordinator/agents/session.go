package agents

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/lead"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// helloWithin is how long a new stream may take to say who it is.
	helloWithin = 10 * time.Second
	// queueLength is how many messages may wait for a slow agent. What does not fit ends the session: the agent comes
	// back, and orders are sent again.
	queueLength = 256
	// farewell is how long the last messages may take.
	farewell = time.Second
)

// duplex is the stream, as connect.BidiStream has it.
type duplex interface {
	Receive() (*berthv1.SessionRequest, error)
	Send(response *berthv1.SessionResponse) error
}

// session is one agent's stream.
type session struct {
	node      string
	name      string // of the node, for people
	from      string // the IP address that it calls from
	boot      string // of the node's host
	machine   model.Machine
	removed   *removed // of a node that is not on record; nil: it is
	knows     []string // capabilities that its agent has told
	release   string
	term      uint64
	pace      model.Pace
	reports   *inventory.Session
	told      []string // addresses of the coordinators
	trusted   []string // IDs of the authorities that it was told
	interrupt func()

	queue chan *berthv1.SessionResponse
	once  sync.Once
	ended chan struct{} // closed by end
	cause error         // why; set before ended is closed, nil when there was no session to end

	taken atomic.Uint64 // sequence of the last sample that was taken in; 0: none was
	armed atomic.Bool   // its node's watchdog is, as it last said
	// needed is when something has needed its node's watchdog last, in nanoseconds since 1970; 0: it was not asked yet.
	needed atomic.Int64

	mu    sync.Mutex
	tasks map[string]chan *berthv1.TaskResult // that somebody waits for, by ID
}

// end stops the session for a reason. Only the first call counts. It does not wait.
func (x *session) end(cause error) {
	x.once.Do(func() {
		x.cause = cause
		close(x.ended)
		x.interrupt()
	})
}

// send puts a message in the queue. It is false when the session has ended or the agent is too slow, which ends it.
func (x *session) send(message *berthv1.SessionResponse) bool {
	select {
	case <-x.ended:
		return false
	default:
	}
	select {
	case x.queue <- message:
		return true
	default:
		x.end(tooSlow())
		return false
	}
}

// write sends what is in the queue until the session ends.
func (x *session) write(stream duplex) {
	for {
		select {
		case message := <-x.queue:
			if err := stream.Send(message); err != nil {
				x.end(err)
				return
			}
		case <-x.ended:
			return
		}
	}
}

// serve runs the session of an agent whose certificate is good. Interrupt makes a blocked Receive return at once and a
// blocked Send soon. The context ends when the agent hangs up.
func (s *Server) serve(ctx context.Context, caller pki.Identity, from string, stream duplex, interrupt func()) error {
	x := &session{
		node: caller.ID, name: caller.Name, from: from, interrupt: interrupt,
		queue: make(chan *berthv1.SessionResponse, queueLength), ended: make(chan struct{}),
	}
	// Once the request is served, its stream must not be touched: after this, end does nothing.
	defer x.once.Do(func() { close(x.ended) })
	silence := time.AfterFunc(helloWithin, func() { x.end(silent()) })
	defer silence.Stop()
	first, err := stream.Receive()
	if err != nil {
		x.end(err)
		return x.result()
	}
	silence.Stop() // an agent that has said hello waits for an answer
	if err := s.check(caller, first.GetHello()); err != nil {
		return err
	}
	x.boot = inventory.BootOf(first.GetHello().GetIncarnation())
	x.machine = model.Machine{Hardware: first.GetHello().GetHardware(), Source: first.GetHello().GetHardwareSource(), Boot: x.boot}
	x.knows, x.release = first.GetHello().GetCapabilities(), first.GetHello().GetVersion()
	redirect, err := s.settle(ctx, x, first.GetHello(), first.GetSequence())
	switch {
	case errors.Is(err, inventory.ErrStaleSession):
		return replaced()
	case err != nil:
		return err
	case redirect != nil:
		return stream.Send(redirect)
	}
	log := s.Log.With("node", caller.Name, "node_id", x.node)
	log.Info("session opened", "version", first.GetHello().GetVersion(), "incarnation", first.GetHello().GetIncarnation())
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := lead.Survive(log, "writing to node "+caller.Name, func() error { x.write(stream); return nil }); err != nil {
			x.end(err)
		}
	})
	patience := x.pace.Unreachable()
	if x.removed != nil {
		log.Warn("a node that was removed speaks: it is given no orders")
		patience = 2 * removedSample
	} else {
		s.Connected(x.node)
	}
	for {
		silence.Reset(patience)
		message, err := stream.Receive()
		if err != nil {
			x.end(err)
			break
		}
		if err := lead.Survive(log, "taking in what node "+caller.Name+" says", func() error { return s.take(x, message) }); err != nil {
			x.end(err)
			break
		}
	}
	writing.Wait()
	s.forget(x)
	if x.removed == nil {
		x.reports.Close(reasonOf(x.cause))
	}
	log.Info("session closed", "reason", reasonOf(x.cause))
	return x.result()
}

// check judges a hello against the certificate.
func (s *Server) check(caller pki.Identity, hello *berthv1.Hello) error {
	subject := "node/" + caller.Name
	switch {
	case hello == nil:
		return invalid(subject, "the first message of a session is not a hello")
	case hello.GetIncarnation() == "":
		return invalid(subject, "the hello has no incarnation")
	case hello.GetClusterId() != s.ClusterID:
		return denied(subject, "point the agent at the coordinators of its own cluster, or enrol it here",
			"the agent belongs to cluster %q, this is cluster %q", hello.GetClusterId(), s.ClusterID)
	case hello.GetNodeId() != caller.ID:
		return denied(subject, "enrol the node again with a new token",
			"the agent says that it is node %q, its certificate says %q", hello.GetNodeId(), caller.ID)
	}
	return nil
}

// enrolled refuses a node that has been removed. Only what the leader knows is good for that.
func (s *Server) enrolled(node, subject string) error {
	if _, known := s.Records.Snapshot().Node(node); known {
		return nil
	}
	return denied(subject, "enrol the node again with a new token", "node %s is not enrolled in this cluster", node)
}

// take handles one message of an open session. An error ends the session.
func (s *Server) take(x *session, message *berthv1.SessionRequest) error {
	if message.GetHello() != nil {
		return invalid("node/"+x.node, "a second hello in one session")
	}
	if x.removed != nil {
		x.removed.listen(message, time.Now())
		return s.stillRemoved(x)
	}
	if !x.reports.Report(message) {
		s.Log.Debug("message is not newer than what is known", "node_id", x.node, "sequence", message.GetSequence())
		return nil
	}
	switch m := message.GetMessage().(type) {
	case *berthv1.SessionRequest_Result:
		if node, known := s.Records.Snapshot().Node(x.node); known && s.doubted(x, &node) {
			return nil // it may be another machine's word
		}
		s.Answered(Answer(x.node, x.boot, m.Result))
	case *berthv1.SessionRequest_Telemetry:
		x.armed.Store(m.Telemetry.GetWatchdogSeconds() > 0)
		x.taken.Store(message.GetSequence())
		s.tellMembers(x)
	case *berthv1.SessionRequest_TaskResult:
		x.finish(m.TaskResult)
	case *berthv1.SessionRequest_InventoryDigest:
		if !x.reports.Has(m.InventoryDigest.GetDigest()) {
			x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Resync{
				Resync: &berthv1.ResyncRequest{Reason: "it is not as it was known"},
			}})
		}
		return s.enrolled(x.node, "node/"+x.node)
	case *berthv1.SessionRequest_Inventory:
		return s.enrolled(x.node, "node/"+x.node) // a removed node is gone at its next inventory at the latest
	}
	return nil
}

// result is what the stream ends with: nil when the agent closed it.
func (x *session) result() error {
	<-x.ended
	if isOver(x.cause) {
		return nil
	}
	var answered *connect.Error
	if errors.As(x.cause, &answered) {
		return x.cause
	}
	return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{
		Code: rpc.Unavailable, Subject: "node/" + x.node, NextStep: "connect again",
	}, "session ended: %w", x.cause)
}
