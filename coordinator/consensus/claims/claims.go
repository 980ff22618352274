// Package claims judges what the members of Raft claim in what they send each other: who they are, that there is a new term, and that
// they lead it.
//
// Raft (v1.8.0) believes its members. A message with the present term makes anybody the leader and has the true one stop; any term is
// taken, also the last one that there is, behind which no election is possible for ever; anybody may have a member call an election. So one
// coordinator that was taken over could stop the others for good, also after it was removed. Members that keep to the protocol never do
// what is refused here, except that one may have to wait for its turn if it has called more elections than a bad network explains.
//
// What this does not end: a member may be elected, and who leads decides.
package claims

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// What one member may do to the terms. A network that loses messages has it call some elections in vain; a term is never skipped by more
// than there have been elections while a member was away.
const (
	// Turns are how many new terms a member may bring in a row.
	Turns = 30
	// Again is how long it takes until it may bring another one.
	Again = 20 * time.Second
	// Farthest is how far a term may be ahead of one's own. At one turn in Again the last of all terms is thousands of years away.
	Farthest = 1 << 32
)

// ErrRefused is that of all errors of this package.
var ErrRefused = errors.New("it claims what no coordinator may")

// errStarting is that of what comes before there is a Raft.
var errStarting = fmt.Errorf("%w: this coordinator is just starting", ErrRefused)

// Present is what a member knows of itself. The functions may be called from any goroutine.
type Present struct {
	// Term is Raft's; ok is false as long as there is no Raft, and nothing is let through then.
	Term func() (term uint64, ok bool)
	// Led is the term that this member leads; 0: none.
	Led func() uint64
	// MemberAt is the ID of the member whose address this is; empty: of none.
	MemberAt func(raft.ServerAddress) string
	// Refused is told of each claim that is refused: somebody has to look at the member that makes it.
	Refused func(error)
}

// Book is what one member remembers of the others' claims, for as long as it runs. It is safe for concurrent use.
type Book struct {
	present Present

	mu       sync.Mutex
	accounts map[raft.ServerID]*account
	term     uint64        // the newest that somebody has led, as far as was heard
	leader   raft.ServerID // who did
	heir     raft.ServerID // whom this member has told to take its place
	left     uint64        // the term in which it did
}

// account is what a member has left of its turns.
type account struct {
	brought uint64 // the last term that it has brought
	left    int
	since   time.Time // when it had so many
}

// New gives an empty book.
func New(present Present) *Book {
	return &Book{present: present, accounts: make(map[raft.ServerID]*account)}
}

func refused(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, arguments...))
}

// Request judges what a member has sent. That the ID in its header is the sender's has been looked at before (package sieve). With an
// error, Raft must not see the request.
func (b *Book) Request(command any) error {
	err := b.request(command)
	if err != nil && !errors.Is(err, errStarting) {
		b.present.Refused(err)
	}
	return err
}

func (b *Book) request(command any) error {
	with, is := command.(raft.WithRPCHeader)
	if !is {
		return refused("a request without a header")
	}
	header := with.GetRPCHeader()
	from := raft.ServerID(header.ID)
	if from == "" || len(header.Addr) == 0 {
		return refused("a request that does not say whose it is")
	}
	if version := header.ProtocolVersion; version < raft.ProtocolVersionMax-1 || version > raft.ProtocolVersionMax {
		return refused("a request of version %d", version) // which Raft refuses as well, and then nothing is to be kept of it
	}
	term, ok := b.present.Term()
	if !ok {
		return errStarting
	}
	switch request := command.(type) {
	case *raft.AppendEntriesRequest:
		return b.leads(from, header, request.Term, term)
	case *raft.InstallSnapshotRequest:
		return b.leads(from, header, request.Term, term)
	case *raft.RequestPreVoteRequest:
		return b.lives(from, header)
	case *raft.RequestVoteRequest:
		if err := b.lives(from, header); err != nil {
			return err
		}
		if led := b.present.Led(); request.LeadershipTransfer && led != 0 && !b.handed(from, led) {
			return refused("%s takes the place of this leader, which has not asked it to", from)
		}
		return b.brings(from, request.Term, term)
	case *raft.TimeoutNowRequest:
		return b.urges(from, term)
	}
	return refused("a request of an unknown kind")
}

// lives refuses a member that gives the address of another: Raft (v1.8.0) knows a leader by it.
func (b *Book) lives(from raft.ServerID, header raft.RPCHeader) error {
	if other := b.present.MemberAt(raft.ServerAddress(header.Addr)); other != "" && other != string(from) {
		return refused("%s gives the address of %s as its own", from, other)
	}
	return nil
}

// leads judges the claim of leading a term. One member leads each: the first that was heard, unless it is this one.
func (b *Book) leads(from raft.ServerID, header raft.RPCHeader, claimed, term uint64) error {
	if claimed < term {
		return nil // Raft tells it that it is too late
	}
	if claimed == b.present.Led() {
		return refused("%s speaks as the leader of term %d, which this one leads", from, claimed)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if claimed == b.term && from == b.leader {
		return nil
	}
	if claimed == b.term {
		return refused("%s speaks as the leader of term %d, which %s leads", from, claimed, b.leader)
	}
	if err := b.lives(from, header); err != nil {
		return err
	}
	if err := b.spend(from, claimed, term); err != nil {
		return err
	}
	if claimed > b.term {
		b.term, b.leader = claimed, from
	}
	return nil
}

// urges judges a request to call an election at once. A leader asks that of the member that is to follow it.
func (b *Book) urges(from raft.ServerID, term uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if from != b.leader || b.term != term {
		return refused("%s has this coordinator call an election, and does not lead", from)
	}
	return nil
}

// brings judges a term that comes in a request for a vote, or in an answer.
func (b *Book) brings(from raft.ServerID, brought, term uint64) error {
	if brought <= term {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spend(from, brought, term)
}

// spend takes a turn of a member for a term, unless it has had one for it. The caller holds the lock.
func (b *Book) spend(from raft.ServerID, brought, term uint64) error {
	if brought > term && brought-term > Farthest {
		return refused("%s claims term %d, and this is %d", from, brought, term)
	}
	now := time.Now()
	has := b.accounts[from]
	if has == nil {
		has = &account{left: Turns, since: now}
		b.accounts[from] = has
	}
	if has.brought == brought {
		return nil
	}
	if gained := int(now.Sub(has.since) / Again); gained > 0 {
		has.since = has.since.Add(time.Duration(gained) * Again)
		has.left = min(has.left+gained, Turns)
	}
	if has.left == 0 {
		return refused("%s has brought %d terms in a row, and may bring the next in %s",
			from, Turns, has.since.Add(Again).Sub(now).Round(time.Second))
	}
	if has.left == Turns {
		has.since = now
	}
	has.left--
	has.brought = brought
	return nil
}

// Answer judges the term of a member's answer to a request of this one's term.
func (b *Book) Answer(from raft.ServerID, answered, asked uint64) error {
	if answered <= asked {
		return nil
	}
	term, ok := b.present.Term()
	if !ok {
		return nil // this one has no Raft any more
	}
	if err := b.brings(from, answered, term); err != nil {
		b.present.Refused(err)
		return err
	}
	return nil
}

// Hand notes that this member is about to tell another one to take its place.
func (b *Book) Hand(to raft.ServerID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heir, b.left = to, b.present.Led()
}

func (b *Book) handed(to raft.ServerID, led uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heir == to && b.left == led
}
