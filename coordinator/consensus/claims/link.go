package claims

import (
	"io"

	"github.com/hashicorp/raft"
)

// Link is what carries Raft's messages.
type Link interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
	CloseStreams()
}

// Judged is a link on which a book judges what the others answer.
type Judged struct {
	Link
	Book *Book
}

// AppendEntries implements raft.Transport.
func (j Judged) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse,
) error {
	if err := j.Link.AppendEntries(id, target, request, answer); err != nil {
		return err
	}
	return j.Book.Answer(id, answer.Term, request.Term)
}

// RequestVote implements raft.Transport.
func (j Judged) RequestVote(
	id raft.ServerID, target raft.ServerAddress, request *raft.RequestVoteRequest, answer *raft.RequestVoteResponse,
) error {
	if err := j.Link.RequestVote(id, target, request, answer); err != nil {
		return err
	}
	return j.Book.Answer(id, answer.Term, request.Term)
}

// RequestPreVote implements raft.WithPreVote.
func (j Judged) RequestPreVote(
	id raft.ServerID, target raft.ServerAddress, request *raft.RequestPreVoteRequest, answer *raft.RequestPreVoteResponse,
) error {
	if err := j.Link.RequestPreVote(id, target, request, answer); err != nil {
		return err
	}
	return j.Book.Answer(id, answer.Term, request.Term)
}

// TimeoutNow implements raft.Transport.
func (j Judged) TimeoutNow(
	id raft.ServerID, target raft.ServerAddress, request *raft.TimeoutNowRequest, answer *raft.TimeoutNowResponse,
) error {
	j.Book.Hand(id)
	return j.Link.TimeoutNow(id, target, request, answer)
}

// Refuses tells whether Raft must not see a request, and answers it then. The content of a snapshot is read all the same, because the next
// request is behind it.
func (b *Book) Refuses(rpc raft.RPC) bool {
	err := b.Request(rpc.Command)
	switch {
	case err == nil:
		return false
	case rpc.Reader == nil:
		rpc.Respond(nil, err)
	default:
		go func() { // others must not wait for that; it ends with the connection at the latest
			_, _ = io.Copy(io.Discard, rpc.Reader)
			rpc.Respond(nil, err)
		}()
	}
	return true
}
