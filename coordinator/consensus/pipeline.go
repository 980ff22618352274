package consensus

import (
	"sync"

	"github.com/hashicorp/raft"
)

// drained is a connection on which a leader sends entries to a member and does not wait for each answer.
//
// Raft (v1.8.0) listens to no more answers after one that is a refusal or that did not come in time, and may send twice after that:
// what it does next is drawn. The answer to the first finds nobody, and the second waits for that, for ever. Such a member gets
// heartbeats and no entry until another member leads. So here all answers are taken, whether Raft listens or not.
type drained struct {
	raft.AppendPipeline
	judge   func(answer raft.AppendFuture) error
	answers chan raft.AppendFuture
	closing sync.Once
	closed  chan struct{}
}

// AppendEntriesPipeline implements raft.Transport.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	below, err := t.Link.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	judge := func(answer raft.AppendFuture) error {
		return t.Book.Answer(id, answer.Response().Term, answer.Request().Term)
	}
	p := &drained{AppendPipeline: below, judge: judge, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go p.receive()
	return p, nil
}

// receive hands on the answers up to the one after which Raft listens no more, and takes those behind it.
func (p *drained) receive() {
	for listens := true; ; {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			if !listens {
				continue
			}
			if p.judge(answer) != nil { // a refusal ends the pipeline, and not the leadership
				*answer.Response() = raft.AppendEntriesResponse{Term: answer.Request().Term}
			}
			listens = answer.Response().Success && answer.Response().Term <= answer.Request().Term
			select {
			case p.answers <- answer:
			case <-p.closed:
				return
			}
		case <-p.closed:
			return
		}
	}
}

// Consumer implements raft.AppendPipeline.
func (p *drained) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close implements raft.AppendPipeline.
func (p *drained) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.AppendPipeline.Close()
}
