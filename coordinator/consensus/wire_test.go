package consensus

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"berth/shared/pki"
)

var (
	errRefused = errors.New("connection refused")
	errSilence = errors.New("no answer in time")
	errClosed  = errors.New("the link is closed")
)

// wire is a network in memory: messages are late, lost, doubled, held and cut off in one or both directions.
type wire struct {
	mu     sync.Mutex
	chance *rand.Rand
	ports  map[raft.ServerAddress]*port
	cut    map[[2]raft.ServerAddress]bool // from, to
	faults wireFaults
	leads  func(term uint64, id raft.ServerID) // told of everyone who speaks as a leader
}

// wireFaults is what can go wrong with a message.
type wireFaults struct {
	least, spread time.Duration // how long it takes
	late          float64       // how many take up to a hundred times as long
	lost, doubled float64
	held          float64       // how many wait for a cut to end; the others are lost
	silence       time.Duration // how long an answer is waited for
}

func newWire(seed uint64) *wire {
	return &wire{
		chance: rand.New(rand.NewPCG(seed, 1)), ports: make(map[raft.ServerAddress]*port),
		cut: make(map[[2]raft.ServerAddress]bool), leads: func(uint64, raft.ServerID) {},
	}
}

// port is one incarnation's end; it implements link.
type port struct {
	wire      *wire
	id        raft.ServerID
	at        raft.ServerAddress
	members   admission
	arrived   chan raft.RPC
	closed    chan struct{}
	closing   sync.Once
	heartbeat func(raft.RPC)
}

func (w *wire) open(id string, members admission) *port {
	p := &port{
		wire: w, id: raft.ServerID(id), at: raft.ServerAddress(id), members: members, arrived: make(chan raft.RPC), closed: make(chan struct{}),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ports[p.at] = p
	return p
}

func (p *port) Consumer() <-chan raft.RPC                               { return p.arrived }
func (p *port) LocalAddr() raft.ServerAddress                           { return p.at }
func (p *port) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }
func (p *port) DecodePeer(b []byte) raft.ServerAddress                  { return raft.ServerAddress(b) }
func (p *port) CloseStreams()                                           {}
func (p *port) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return nil
}

func (p *port) over() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

func (p *port) SetHeartbeatHandler(handle func(raft.RPC)) {
	p.wire.mu.Lock()
	defer p.wire.mu.Unlock()
	p.heartbeat = handle
}

// journey draws how a message fares.
func (w *wire) journey() (takes time.Duration, lost, doubled, held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	takes = w.faults.least + time.Duration(w.chance.Float64()*float64(w.faults.spread))
	if w.chance.Float64() < w.faults.late {
		takes *= time.Duration(2 + w.chance.IntN(99))
	}
	return takes, w.chance.Float64() < w.faults.lost, w.chance.Float64() < w.faults.doubled, w.chance.Float64() < w.faults.held
}

func (w *wire) isCut(from, to raft.ServerAddress) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut[[2]raft.ServerAddress{from, to}]
}

// cross takes a message from one to the other, and tells whether it arrives.
func (w *wire) cross(from, to raft.ServerAddress) (arrives, doubled bool) {
	takes, lost, doubled, held := w.journey()
	time.Sleep(takes)
	for waited := time.Duration(0); w.isCut(from, to); waited += 50 * time.Millisecond {
		if !held || waited > 20*time.Second {
			return false, false
		}
		time.Sleep(50 * time.Millisecond)
	}
	return !lost, doubled
}

type reply struct {
	response any
	err      error
}

// hand gives a message to the member that is at the address now and waits for the answer.
func (p *port) hand(to raft.ServerAddress, request any, data []byte) reply {
	p.wire.mu.Lock()
	target := p.wire.ports[to]
	var heartbeat func(raft.RPC)
	if target != nil {
		heartbeat = target.heartbeat
	}
	p.wire.mu.Unlock()
	if target == nil || target.over() {
		return reply{err: errRefused}
	}
	if err := target.members.admit(pki.Bearer{Identity: pki.Identity{Role: pki.RolePeer, ID: string(p.id)}}); err != nil {
		return reply{err: errRefused}
	}
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: request, RespChan: answer}
	if data != nil {
		rpc.Reader = bytes.NewReader(data)
	}
	if sent, ok := request.(*raft.AppendEntriesRequest); ok && sent.PrevLogEntry == 0 && sent.PrevLogTerm == 0 &&
		len(sent.Entries) == 0 && sent.LeaderCommitIndex == 0 && heartbeat != nil {
		heartbeat(rpc)
	} else {
		select {
		case target.arrived <- rpc:
		case <-target.closed:
			return reply{err: errRefused}
		case <-time.After(20 * time.Second):
			return reply{err: errSilence}
		}
	}
	select {
	case given := <-answer:
		if target.over() {
			return reply{err: errRefused}
		}
		return reply{given.Response, given.Error}
	case <-target.closed:
		return reply{err: errRefused}
	case <-time.After(20 * time.Second):
		return reply{err: errSilence}
	}
}

// carry is a message's whole way and its answer's. It goes on when the sender has given up, or is dead.
func (p *port) carry(to raft.ServerAddress, copied func() any, data []byte) <-chan reply {
	answer := make(chan reply, 1)
	go func() {
		arrives, doubled := p.wire.cross(p.at, to)
		if !arrives {
			return
		}
		if doubled && data == nil {
			go func() {
				if arrives, _ := p.wire.cross(p.at, to); arrives {
					p.hand(to, copied(), nil)
				}
			}()
		}
		given := p.hand(to, copied(), data)
		if arrives, _ := p.wire.cross(to, p.at); arrives {
			answer <- given
		}
	}()
	return answer
}

func (p *port) call(to raft.ServerAddress, copied func() any, data []byte) (any, error) {
	if p.over() {
		return nil, errClosed
	}
	p.tell(copied())
	limit := time.NewTimer(p.wire.faults.silence)
	defer limit.Stop()
	select {
	case given := <-p.carry(to, copied, data):
		return given.response, given.err
	case <-limit.C:
		return nil, errSilence
	case <-p.closed:
		return nil, errClosed
	}
}

// tell says who speaks as the leader of which term.
func (p *port) tell(request any) {
	switch r := request.(type) {
	case *raft.AppendEntriesRequest:
		p.wire.leads(r.Term, p.id)
	case *raft.InstallSnapshotRequest:
		p.wire.leads(r.Term, p.id)
	}
}

// copyOf is what comes out of the encoding on the other side: nothing is shared but bytes that nobody writes to.
func copyOf[T any](from *T) func() any {
	taken := *from
	if entries, ok := any(&taken).(*raft.AppendEntriesRequest); ok {
		entries.Entries = copyEntries(entries.Entries)
	}
	return func() any {
		fresh := taken
		if entries, ok := any(&fresh).(*raft.AppendEntriesRequest); ok {
			entries.Entries = copyEntries(entries.Entries)
		}
		return &fresh
	}
}

func copyEntries(entries []*raft.Log) []*raft.Log {
	copied := make([]*raft.Log, len(entries))
	for i, entry := range entries {
		fresh := *entry
		copied[i] = &fresh
	}
	return copied
}

func (p *port) AppendEntries(_ raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	return answered(a)(p.call(to, copyOf(q), nil))
}

func (p *port) RequestVote(_ raft.ServerID, to raft.ServerAddress, q *raft.RequestVoteRequest, a *raft.RequestVoteResponse) error {
	return answered(a)(p.call(to, copyOf(q), nil))
}

func (p *port) RequestPreVote(_ raft.ServerID, to raft.ServerAddress, q *raft.RequestPreVoteRequest, a *raft.RequestPreVoteResponse) error {
	return answered(a)(p.call(to, copyOf(q), nil))
}

func (p *port) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, q *raft.TimeoutNowRequest, a *raft.TimeoutNowResponse) error {
	return answered(a)(p.call(to, copyOf(q), nil))
}

func (p *port) InstallSnapshot(
	_ raft.ServerID, to raft.ServerAddress, q *raft.InstallSnapshotRequest, a *raft.InstallSnapshotResponse, from io.Reader,
) error {
	data, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	return answered(a)(p.call(to, copyOf(q), data))
}

func answered[T any](into *T) func(any, error) error {
	return func(response any, err error) error {
		if given, ok := response.(*T); ok && err == nil {
			*into = *given
		}
		return err
	}
}

// AppendEntriesPipeline implements raft.Transport: messages follow each other without waiting for answers, in order.
func (p *port) AppendEntriesPipeline(_ raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	if p.over() {
		return nil, errClosed
	}
	l := &pipeline{port: p, to: to, done: make(chan raft.AppendFuture, 256), sent: make(chan *inFlight, 64), closed: make(chan struct{})}
	go l.run()
	return l, nil
}

type pipeline struct {
	port    *port
	to      raft.ServerAddress
	sent    chan *inFlight
	done    chan raft.AppendFuture
	closed  chan struct{}
	closing sync.Once
}

// inFlight is a raft.AppendFuture.
type inFlight struct {
	start    time.Time
	request  *raft.AppendEntriesRequest
	copied   func() any
	response *raft.AppendEntriesResponse
	answer   chan reply
	finished chan struct{}
	err      error
}

func (f *inFlight) Error() error                          { <-f.finished; return f.err }
func (f *inFlight) Start() time.Time                      { return f.start }
func (f *inFlight) Request() *raft.AppendEntriesRequest   { return f.request }
func (f *inFlight) Response() *raft.AppendEntriesResponse { return f.response }

func (l *pipeline) AppendEntries(q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	l.port.tell(q)
	f := &inFlight{
		start: time.Now(), request: q, copied: copyOf(q), response: a, answer: make(chan reply, 1), finished: make(chan struct{}),
	}
	select {
	case l.sent <- f:
		return f, nil
	case <-l.closed:
		return nil, raft.ErrPipelineShutdown
	case <-l.port.closed:
		return nil, errClosed
	}
}

func (l *pipeline) Consumer() <-chan raft.AppendFuture { return l.done }

func (l *pipeline) Close() error { l.closing.Do(func() { close(l.closed) }); return nil }

// run is one connection: when a message is lost, everything behind it is too.
func (l *pipeline) run() {
	waiting := make(chan *inFlight, 64)
	defer close(waiting)
	go l.answers(waiting)
	whole := true
	for {
		select {
		case f := <-l.sent:
			if whole {
				whole, _ = l.port.wire.cross(l.port.at, l.to)
			}
			if whole {
				handed := make(chan struct{})
				go func() {
					close(handed)
					f.answer <- l.port.hand(l.to, f.copied(), nil)
				}()
				<-handed
			}
			select {
			case waiting <- f:
			case <-l.closed:
				return
			case <-l.port.closed:
				return
			}
		case <-l.closed:
			return
		case <-l.port.closed:
			return
		}
	}
}

func (l *pipeline) answers(waiting <-chan *inFlight) {
	silence := l.port.wire.faults.silence
	for f := range waiting {
		f.err = errSilence
		select {
		case given := <-f.answer:
			arrives := given.err == nil
			if arrives {
				arrives, _ = l.port.wire.cross(l.to, l.port.at)
			}
			if arrives {
				f.err = answered(f.response)(given.response, given.err)
			}
		case <-time.After(silence):
			silence = 0 // the rest of it is lost, too
		case <-l.closed:
		case <-l.port.closed:
		}
		close(f.finished)
		select {
		case l.done <- f:
		case <-l.closed:
			return
		case <-l.port.closed:
			return
		}
	}
}
