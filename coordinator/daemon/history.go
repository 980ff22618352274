package daemon

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/history"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/units"
)

// Retention is how much of the past a member keeps: until it is older than Age, or larger than Size.
type Retention struct {
	Age  time.Duration `yaml:"age,omitempty"`  // default: defaultHistoryAge
	Size string        `yaml:"size,omitempty"` // default: defaultHistorySize

	bytes units.Bytes
}

// The defaults and ranges of Retention.
const (
	defaultHistoryAge = 90 * 24 * time.Hour
	leastHistoryAge   = 24 * time.Hour
	mostHistoryAge    = 10 * 365 * 24 * time.Hour

	defaultHistorySize = 5 << 30
	leastHistorySize   = 64 << 20
)

func (r *Retention) complete() error {
	if r.Age == 0 {
		r.Age = defaultHistoryAge
	}
	if r.Age < leastHistoryAge || r.Age > mostHistoryAge {
		return fmt.Errorf("%w: key history.age: %v is out of range: want %v to %v", ErrConfig, r.Age, leastHistoryAge, mostHistoryAge)
	}
	r.bytes = defaultHistorySize
	if r.Size != "" {
		size, err := units.ParseBytes(r.Size)
		if err != nil {
			return fmt.Errorf("%w: key history.size: %w", ErrConfig, err)
		}
		r.bytes = size
	}
	if r.bytes < leastHistorySize {
		return fmt.Errorf("%w: key history.size: %v is too little: want %v at least", ErrConfig, r.bytes, units.Bytes(leastHistorySize))
	}
	return nil
}

func (d *daemon) historyConfig() history.Config {
	return history.Config{
		Dir: d.home.history(), Limits: history.Limits{Age: d.config.History.Age, Size: d.config.History.bytes},
		State: func() *state.Snapshot { return d.store.Snapshot() },
		Last:  func() uint64 { return d.consensus.Stats().LastIndex },
		Peers: d.historyPeers, Now: time.Now, Log: d.log.Named("history"),
	}
}

// historyPeers are the other members of the cluster.
func (d *daemon) historyPeers() []history.Peer {
	var peers []history.Peer
	for _, member := range d.store.Snapshot().Members() {
		if member.ID != d.who.ID && member.APIAddress != "" {
			peers = append(peers, historyPeer{berthv1connect.NewMemberServiceClient(d.peers, "https://"+member.APIAddress)})
		}
	}
	return peers
}

type historyPeer struct {
	client berthv1connect.MemberServiceClient
}

// Page implements history.Peer.
func (p historyPeer) Page(ctx context.Context, after, through uint64) (history.Page, error) {
	answer, err := p.client.FetchHistory(ctx, connect.NewRequest(&berthv1.FetchHistoryRequest{After: after, Through: through}))
	if err != nil {
		return history.Page{}, err
	}
	return history.Page{Block: answer.Msg.GetBlock(), Begins: answer.Msg.GetBegins()}, nil
}
