package daemon

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/state"
	"berth/shared/buildinfo"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
	"berth/shared/rpc"
)

const (
	memberLook   = 500 * time.Millisecond
	askTimeout   = 10 * time.Second
	maxAskPause  = 15 * time.Second
	lonelyBefore = 20 * time.Second // without a leader, before this member asks whether it still is one
)

// stayMember asks the leader to take this member in, as long as it is not in the Raft configuration under its present
// address. It also asks when it has heard no leader for long: it may have been removed, and nobody tells it.
func (d *daemon) stayMember(ctx context.Context) {
	heard := time.Now()
	wait := time.Second
	for pause.For(ctx, memberLook) {
		if _, known := d.consensus.Leader(); known {
			heard = time.Now()
		}
		if d.isPart() && time.Since(heard) < lonelyBefore && !d.consensus.Missed() {
			wait = time.Second
			continue
		}
		if d.askIn(ctx) {
			heard = time.Now()
			wait = time.Second
			continue
		}
		if !pause.For(ctx, wait) {
			return
		}
		wait = min(2*wait, maxAskPause)
	}
}

// isPart tells whether this member's Raft configuration has it, and everybody knows its right addresses.
func (d *daemon) isPart() bool {
	api, agent, raft := d.config.addresses()
	if recorded, known := d.store.Snapshot().Member(d.who.ID); known && (recorded.APIAddress != api || recorded.AgentAddress != agent) {
		return false
	}
	for _, server := range d.consensus.Configuration() {
		if server.ID == d.who.ID {
			return server.Address == raft
		}
	}
	return false
}

// askIn asks one member after the other, each of which forwards to the leader. It is true when the leader agreed.
func (d *daemon) askIn(ctx context.Context) bool {
	request := &berthv1.JoinRequest{FeatureLevel: state.FeatureLevel, Version: buildinfo.Version()}
	request.ApiAddress, request.AgentAddress, request.RaftAddress = d.config.addresses()
	for _, contact := range d.contacts() {
		if ctx.Err() != nil {
			return false
		}
		err := d.ask(ctx, contact, request)
		if err == nil {
			d.log.Info("the leader has taken this coordinator in", "asked", contact)
			return true
		}
		if detail := rpc.Detail(err); detail.GetCode() == rpc.Denied { // the others would say the same
			d.log.Error("this coordinator is not taken in", "asked", contact, "reason", err, "next_step", detail.GetNextStep())
			return false
		}
		d.log.Info("this coordinator is not taken in yet", "asked", contact, "reason", err)
	}
	return false
}

func (d *daemon) ask(ctx context.Context, contact string, request *berthv1.JoinRequest) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	// Whoever is asked may have a key that is not on record here yet. What it answers is nothing that a coordinator may not say.
	answer, err := berthv1connect.NewMemberServiceClient(d.asking, "https://"+contact).Join(ctx, connect.NewRequest(request))
	if err == nil {
		d.consensus.Told(answer.Msg.GetCoordinatorKeys())
	}
	return err
}

// contacts are the API addresses of the other members: those known today, and those of the day when this one joined.
func (d *daemon) contacts() []string {
	var contacts []string
	for _, member := range d.store.Snapshot().Members() {
		if member.ID != d.who.ID && member.APIAddress != "" {
			contacts = append(contacts, member.APIAddress)
		}
	}
	for _, contact := range d.who.Contacts {
		if !slices.Contains(contacts, contact) {
			contacts = append(contacts, contact)
		}
	}
	return contacts
}
