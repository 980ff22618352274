package members

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/authorities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// MaxRequest is how long a certificate request may be, in bytes.
	MaxRequest   = 8 << 10
	maxAddresses = 32 // in one certificate
	maxMachineID = 128
)

// enrolment is one try to enrol, checked as far as that goes without looking at the cluster.
type enrolment struct {
	message   *berthv1.EnrolRequest
	hash      string // of the token's secret
	id        string // of what is being enrolled
	addresses []string
}

// Enrol lets a machine or person in against a token. The token is used up in the same command that makes the record, so
// that neither can be without the other. The certificate is signed before, so that a request that cannot be signed costs
// no token.
func (s *Calls) Enrol(
	ctx context.Context, request *connect.Request[berthv1.EnrolRequest],
) (*connect.Response[berthv1.EnrolResponse], error) {
	who, at := gate.CallerOf(ctx), s.Now()
	succeeded, allowed := s.tries.take(who.Address, at)
	if !allowed {
		return nil, rpc.Errorf(connect.CodeResourceExhausted, &berthv1.ErrorDetail{
			Code: rpc.Unavailable, Subject: "address/" + who.Address, NextStep: "wait a minute, and check the token before you try again",
		}, "too many failed enrolments from %s", who.Address)
	}
	try := enrolment{message: request.Msg, hash: pki.HashSecret(request.Msg.GetTokenSecret()), id: answer.NewID(at)}
	var certificate []byte
	p, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		token, err := usable(p, try)
		if err != nil {
			return state.Command{}, err
		}
		command := state.Command{Kind: "enrol " + string(token.Purpose), Expect: []state.Expectation{expectToken(token)}}
		if err := makerCounts(p, &command, &token); err != nil {
			return state.Command{}, err
		}
		role, err := try.record(ctx, p, token.Purpose, &command)
		if err != nil {
			return state.Command{}, err
		}
		identity := pki.Identity{Role: role, ID: try.id, Name: request.Msg.GetName(), ClusterID: s.Authority().ClusterID()}
		certificate, err = s.Authority().Sign(request.Msg.GetCsrPem(), identity, try.addresses, p.At, try.life(p))
		if err != nil {
			return state.Command{}, refused(try, err)
		}
		token.Use(try.id, request.Msg.GetName(), p.At)
		if err := keep(ctx, p, &command, certificate, &token); err != nil {
			return state.Command{}, err
		}
		command.Tokens = []model.Token{token}
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	succeeded()
	response, err := s.enrolled(p, try, certificate)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response), nil
}

func (s *Calls) enrolled(p *answer.Moment, try enrolment, certificate []byte) (*berthv1.EnrolResponse, error) {
	response := &berthv1.EnrolResponse{
		Id:             try.id,
		ClusterId:      s.Authority().ClusterID(),
		CertificatePem: certificate,
		CaPem:          s.Vault.Trusted(),
	}
	for _, member := range p.Members() {
		response.ApiAddresses = append(response.ApiAddresses, member.APIAddress)
		response.AgentAddresses = append(response.AgentAddresses, member.AgentAddress)
	}
	if _, isMember := p.Member(try.id); isMember {
		key, err := s.Authority().KeyPEM()
		if err != nil {
			return nil, err
		}
		response.CaKeyPem, response.CoordinatorKeys = key, s.coordinatorKeys(p.Snapshot)
		if err := s.handHypervisors(response); err != nil {
			return nil, err
		}
	}
	return response, nil
}

func refused(try enrolment, err error) *connect.Error {
	return refusal.Invalid("enrolment/"+try.message.GetName(), "correct it and run the join command again; the token is still good", err)
}

// usable finds the token and judges it.
func usable(p *answer.Moment, try enrolment) (model.Token, error) {
	const another = "create another one with 'berth token add'"
	deny := func(format string, args ...any) error {
		return refusal.New(rpc.Denied, "token", another, format, args...)
	}
	token, known := p.Token(try.hash)
	name := try.message.GetName()
	switch {
	case !known:
		return token, deny("the token is not known here")
	case token.Left() == 0 && token.Uses > 1:
		return token, deny("the token was used %d times, as often as it may be, at last at %s",
			len(token.Used), token.UsedAt.UTC().Format(time.RFC3339))
	case token.Left() == 0:
		return token, deny("the token was used already, at %s", token.UsedAt.UTC().Format(time.RFC3339))
	case !p.At.Before(token.ExpiresAt):
		return token, deny("the token expired at %s", token.ExpiresAt.UTC().Format(time.RFC3339))
	case !token.Fits(name):
		return token, deny("the token is for %s %q, not for %q", token.Purpose, token.Name, name)
	}
	if err := answer.CheckName(string(token.Purpose), name); err != nil {
		return token, refused(try, err)
	}
	if size := len(try.message.GetCsrPem()); size > MaxRequest {
		return token, refused(try, fmt.Errorf("a certificate request of %d bytes is larger than %d", size, MaxRequest))
	}
	return token, nil
}

// record adds to the command what the cluster will know of the newcomer, and tells the role of its certificate.
func (e *enrolment) record(
	ctx context.Context, p *answer.Moment, purpose model.Purpose, command *state.Command,
) (pki.Role, error) {
	name := e.message.GetName()
	switch purpose {
	case model.PurposeAgent:
		node, err := e.node(p)
		if err != nil {
			return "", err
		}
		if node.Revision > 0 { // it is on record, and its certificate has ended
			e.id = node.ID
			command.Events = []model.Event{
				p.Event(ctx, "node.enrolled", "node/"+name, "got a new certificate; its last one had ended"),
			}
			return pki.RoleAgent, nil
		}
		command.Expect = append(command.Expect, answer.ExpectNode(node))
		command.Nodes = []model.Node{node}
		command.Events = []model.Event{p.Event(ctx, "node.enrolled", "node/"+name, "joined as %s", e.id)}
		return pki.RoleAgent, nil
	case model.PurposeCoordinator:
		member, err := e.member(p)
		if err != nil {
			return "", err
		}
		command.Expect = append(command.Expect, expectMember(member))
		command.Members = []model.Member{member}
		command.Events = []model.Event{p.Event(ctx, "coordinator.enrolled", "coordinator/"+name, "enrolled as %s", e.id)}
		return pki.RolePeer, nil
	default:
		command.Events = []model.Event{p.Event(ctx, "operator.enrolled", "operator/"+name, "enrolled as %s", e.id)}
		return pki.RoleOperator, nil
	}
}

// node is the record of a new node, or the one that is there of the same machine if its certificate has ended. libvirt refuses to
// migrate between two nodes of one host UUID, and two nodes of one machine ID are one machine twice, or a copied disk image.
func (e *enrolment) node(p *answer.Moment) (model.Node, error) {
	node := model.Node{
		ID: e.id, Name: e.message.GetName(), Cluster: model.DefaultCluster,
		HostUUID: strings.ToLower(e.message.GetHostUuid()), MachineID: e.message.GetMachineId(), EnrolledAt: p.At,
	}
	if !answer.UUIDText.MatchString(node.HostUUID) {
		return node, refused(
			*e, fmt.Errorf("the host UUID %q is not a UUID: libvirt gives it, or host_uuid in libvirtd.conf sets it", node.HostUUID),
		)
	}
	if len(node.MachineID) > maxMachineID {
		return node, refused(*e, fmt.Errorf("a machine ID of %d characters is longer than %d", len(node.MachineID), maxMachineID))
	}
	again := func(other *model.Node) string {
		return fmt.Sprintf("if this is the same machine, run 'berth node delete %s' first", other.Name)
	}
	if other, known := p.NodeByName(node.Name); known {
		if other.HostUUID == node.HostUUID && other.MachineID == node.MachineID && lapsed(p, other.ID) {
			return other, nil
		}
		return node, refusal.New(rpc.Exists, "node/"+other.Name, again(&other)+"; else join under another name with --name",
			"there is a node %q already", other.Name)
	}
	if other, known := p.NodeByHostUUID(node.HostUUID); known {
		return node, refusal.New(rpc.Conflict, "node/"+other.Name,
			again(&other)+"; else give libvirtd.conf another host_uuid and restart libvirtd",
			"node %q has the same host UUID %s", other.Name, node.HostUUID)
	}
	if other, known := p.NodeByMachineID(node.MachineID); known {
		return node, refusal.New(rpc.Conflict, "node/"+other.Name,
			again(&other)+"; else make a new /etc/machine-id with 'systemd-machine-id-setup' after removing the copied one",
			"node %q has the same machine ID %s", other.Name, node.MachineID)
	}
	return node, nil
}

// lapsed tells that the last certificate of a node has ended, or that nobody trusts its authority any more. Then it needs a token to come
// back.
func lapsed(p *answer.Moment, node string) bool {
	identity, known := p.Identity(node)
	return known && (!ended(p, &identity).IsZero() || identity.Live() && authorities.Lost(p.Snapshot, &identity))
}

// member is the record of a new coordinator.
func (e *enrolment) member(p *answer.Moment) (model.Member, error) {
	member := model.Member{
		ID: e.id, Name: e.message.GetName(), RaftAddress: e.message.GetRaftAddress(),
		APIAddress: e.message.GetApiAddress(), AgentAddress: e.message.GetAgentAddress(), JoinedAt: p.At,
	}
	addresses, err := certificateAddresses(member, e.message.GetAddresses())
	if err != nil {
		return member, refused(*e, err)
	}
	e.addresses = addresses
	for _, other := range p.Members() {
		subject := "coordinator/" + other.Name
		again := fmt.Sprintf("if this is the same machine, run 'berth coordinator delete %s' first", other.Name)
		switch {
		case other.Name == member.Name:
			return member, refusal.New(rpc.Exists, subject, again+"; else join under another name with --name",
				"there is a coordinator %q already", other.Name)
		case other.RaftAddress == member.RaftAddress:
			return member, refusal.New(rpc.Conflict, subject, again+"; else give each coordinator an address of its own with --advertise",
				"coordinator %q has the same address %s", other.Name, member.RaftAddress)
		}
	}
	return member, nil
}

// certificateAddresses are the names by which others reach a member: those of its addresses, and those it asks for.
func certificateAddresses(member model.Member, asked []string) ([]string, error) {
	if len(asked) > maxAddresses {
		return nil, fmt.Errorf("%d addresses for a certificate are more than %d", len(asked), maxAddresses)
	}
	addresses := slices.Clone(asked)
	for _, address := range []string{member.RaftAddress, member.APIAddress, member.AgentAddress} {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("the address %q is not HOST:PORT", address)
		}
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return nil, fmt.Errorf("the address %q has no port from 1 to 65535", address)
		}
		addresses = append(addresses, host)
	}
	for _, host := range addresses {
		if err := answer.CheckHost(host); err != nil {
			return nil, err
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

// tries bounds the failed enrolments of each source address.
type tries struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

const (
	// TriesPerMinute is how many failed enrolments a source address may have in a minute.
	TriesPerMinute = 5
	maxLimiters    = 4096
)

// take reports whether the address may try now. Succeeded gives the try back.
func (t *tries) take(address string, at time.Time) (succeeded func(), allowed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limiter := t.limiters[address]
	if limiter == nil {
		t.forget(at)
		limiter = rate.NewLimiter(rate.Every(time.Minute/TriesPerMinute), TriesPerMinute)
		t.limiters[address] = limiter
	}
	reservation := limiter.ReserveN(at, 1)
	if reservation.DelayFrom(at) > 0 {
		reservation.CancelAt(at)
		return nil, false
	}
	return func() { reservation.CancelAt(at) }, true
}

// forget makes room: first for addresses that have not failed lately, then for all.
func (t *tries) forget(at time.Time) {
	if t.limiters == nil || len(t.limiters) >= 2*maxLimiters {
		t.limiters = make(map[string]*rate.Limiter)
	}
	if len(t.limiters) < maxLimiters {
		return
	}
	for address, limiter := range t.limiters {
		if limiter.TokensAt(at) >= TriesPerMinute {
			delete(t.limiters, address)
		}
	}
}
