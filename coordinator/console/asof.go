package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// leaderless tells whether a call failed because this coordinator has no leader, or cannot reach it. Then a page shows what was last
// known.
func leaderless(err error) bool {
	code := rpc.Detail(err).GetCode()
	return code == rpc.NoLeader || code == rpc.Unreachable
}

// past is as of when a page tells, and why it tells nothing newer. Nil: it is of the present.
type past struct {
	*berthv1.LastKnown
}

// date makes a page one of the past, if what it shows is.
func (p *page) date(known *berthv1.LastKnown) *page {
	if known != nil {
		p.Past = &past{known}
	}
	return p
}

// Says is the past in words, as the command line has them.
func (p *past) Says() string {
	by := cmp.Or(p.GetAnsweredBy(), "this coordinator")
	if p.GetAt() == nil {
		return "There is no quorum: " + by + " began without a leader, and knows its records only once there is one."
	}
	at := "As of " + p.GetAt().AsTime().UTC().Format(clock) + ", " + p.age() + " ago: there is no quorum, and this is "
	if p.GetRecordsOnly() {
		return at + "what the records of " + by + " say. It has heard no leader since it began; which nodes are up is unknown."
	}
	return at + "what " + by + " last knew."
}

func (p *past) age() string { return lasting(time.Duration(p.GetAgeSeconds() * float64(time.Second))) }

// Ignorant tells whether not even the records are known.
func (p *page) Ignorant() bool { return p.Past != nil && p.Past.GetAt() == nil }

// made is when what a page shows was so.
func (p *page) made(now time.Time) time.Time {
	if p.Past != nil && p.Past.GetAt() != nil {
		return p.Past.GetAt().AsTime().UTC()
	}
	return now.UTC()
}

// count is how many of all are as only a leader hears. Without one it is unknown, with what it was and how long ago.
func (v mapView) count(are, all int32, as string, age *float64) string {
	switch known := v.Status.GetLastKnown(); {
	case known == nil:
		return fmt.Sprintf("%d of %d", are, all)
	case known.GetAt() == nil:
		return unknown
	case age == nil:
		return fmt.Sprintf("unknown, of %d", all)
	default:
		return fmt.Sprintf("unknown, of %d (%d %s %s ago)", all, are, as, lasting(time.Duration(*age*float64(time.Second))))
	}
}

// NodesUp is how many nodes are up.
func (v mapView) NodesUp() string {
	return v.count(v.Status.GetNodesUp(), v.Status.GetNodesTotal(), "up", v.Status.HeardSeconds)
}

// VMsRunning is how many VMs run. A coordinator that has heard no leader counts by its records.
func (v mapView) VMsRunning() string {
	var age *float64
	if known := v.Status.GetLastKnown(); known != nil {
		age = &known.AgeSeconds
	}
	return v.count(v.Status.GetVmsRunning(), v.Status.GetVmsTotal(), "running", age)
}

// status is that of the present, or else what this coordinator still knows.
func status(ctx context.Context, v *visit) (*berthv1.StatusResponse, error) {
	answer, err := v.API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil && leaderless(err) {
		answer, err = v.API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{Stale: true}))
	}
	return body(answer, err)
}

// lastNodes are all nodes as they were last known.
func lastNodes(ctx context.Context, v *visit) ([]*berthv1.Node, *berthv1.LastKnown, error) {
	var known *berthv1.LastKnown
	all, err := rpc.ReadAll(&berthv1.ListNodesRequest{}, rpc.Everything,
		func(q *berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
			some, err := body(v.API.LastKnownNodes(ctx, connect.NewRequest(q)))
			if known == nil {
				known = some.GetLastKnown()
			}
			return some, err
		})
	return all.GetNodes(), known, err
}

// listVMs is one page of VMs, of the present or else as they were last known.
func listVMs(v *visit, asked *berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
	answer, err := v.API.ListVMs(v.ctx, connect.NewRequest(asked))
	if err != nil && leaderless(err) {
		answer, err = v.API.LastKnownVMs(v.ctx, connect.NewRequest(asked))
	}
	return body(answer, err)
}

// lastNode is one node as it was last known, by its name or ID.
func lastNode(v *visit, ref string) (*berthv1.Node, *berthv1.LastKnown, error) {
	nodes, known, err := lastNodes(v.ctx, v)
	for _, node := range nodes {
		if node.GetName() == ref || node.GetId() == ref {
			return node, known, nil
		}
	}
	return nil, nil, cmp.Or(err, error(connect.NewError(connect.CodeNotFound, errors.New("there was no node "+ref))))
}

// lastGuest is one VM as it was last known, by its name or ID.
func lastGuest(v *visit, ref string) (*berthv1.VM, *berthv1.LastKnown, error) {
	var known *berthv1.LastKnown
	all, err := rpc.ReadAll(&berthv1.ListVMsRequest{}, rpc.Everything,
		func(q *berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
			some, err := body(v.API.LastKnownVMs(v.ctx, connect.NewRequest(q)))
			if known == nil {
				known = some.GetLastKnown()
			}
			return some, err
		})
	for _, vm := range all.GetVms() {
		if vm.GetName() == ref || vm.GetId() == ref {
			return vm, known, nil
		}
	}
	return nil, nil, cmp.Or(err, error(connect.NewError(connect.CodeNotFound, errors.New("there was no VM "+ref))))
}
