package agents

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/authorities"
	"berth/coordinator/state"
	"berth/shared/destination"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// MaxRequest is how long a request for a certificate may be, in bytes.
const MaxRequest = 8 << 10

// certifier answers what is asked for the nodes' libvirt and QEMU.
type certifier struct{ server *Server }

// CertifyHypervisor gives a node the certificates of its libvirt and its QEMU, and the names of all nodes. Who it is for comes from the
// connection and the records. It implements berthv1connect.AgentServiceHandler.
func (c certifier) CertifyHypervisor(
	ctx context.Context, request *connect.Request[berthv1.CertifyHypervisorRequest],
) (*connect.Response[berthv1.CertifyHypervisorResponse], error) {
	s := c.server
	caller, err := s.agentOf(ctx)
	if err != nil {
		return nil, err
	}
	// Another member may not have heard yet that the node is new, or gone.
	if !leads(s) {
		return nil, notLeading()
	}
	snapshot := s.Records.Snapshot()
	node, known := snapshot.Node(caller.ID)
	if !known {
		return nil, s.enrolled(caller.ID, "node/"+caller.Name)
	}
	who, _ := rpc.Bearer(ctx)
	if err := s.FollowHypervisor(ctx, who, uses(request.Msg)); err != nil {
		return nil, err
	}
	lists := authorities.OfHypervisors(s.Records.Snapshot()) // with what that has led to, if it is applied already
	from := addressOf(request.Peer())
	addresses := hypervisorAddresses(node.Name, request.Msg.GetMigrationUri(), from)
	response := &berthv1.CertifyHypervisorResponse{Names: s.names.of(snapshot)}
	for _, part := range []struct {
		purpose         pki.Purpose
		request         []byte
		addresses       []string
		ca, certificate *[]byte
	}{
		{pki.Control, request.Msg.GetControlCsrPem(), addresses, &response.ControlCaPem, &response.ControlCertificatePem},
		{
			pki.Data, request.Msg.GetDataCsrPem(), c.dataAddresses(addresses, caller.ID, request.Msg.GetDataAddress()),
			&response.DataCaPem, &response.DataCertificatePem,
		},
	} {
		authority, trusted, known := s.Hypervisors.Signer(part.purpose, lists.For(part.purpose))
		if !known {
			return nil, notReady(node.Name, authorities.Called(part.purpose))
		}
		*part.ca = trusted
		if len(part.request) == 0 {
			continue
		}
		if len(part.request) > MaxRequest {
			return nil, invalid("node/"+node.Name, "a certificate request of %d bytes is larger than %d", len(part.request), MaxRequest)
		}
		if *part.certificate, err = authority.Sign(part.request, node.Name, part.addresses, time.Now()); err != nil {
			return nil, invalid("node/"+node.Name, "the %s request: %s", part.purpose, err)
		}
		s.Log.Info("a hypervisor was issued a certificate", "node", node.Name, "purpose", string(part.purpose), "addresses",
			strings.Join(part.addresses, " "))
	}
	return connect.NewResponse(response), nil
}

// uses is what a node says of the authorities that its libvirt and QEMU use.
func uses(message *berthv1.CertifyHypervisorRequest) map[string]authorities.Use {
	return map[string]authorities.Use{
		authorities.Libvirt: {Trusts: message.GetControlTrusts(), By: message.GetControlAuthority()},
		authorities.QEMU:    {Trusts: message.GetDataTrusts(), By: message.GetDataAuthority()},
	}
}

// notReady says that this member cannot sign yet: it gets the key from another one.
func notReady(node, name string) *connect.Error {
	return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{
		Code: rpc.Unavailable, Subject: "node/" + node, NextStep: "ask again in a minute; see 'berth ca list' on a coordinator",
	}, "this coordinator does not have the key of the authority yet that signs for %s", name)
}

// leads tells whether this member leads.
func leads(s *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term != 0
}

// Renew gives a node another certificate for its key. It implements berthv1connect.AgentServiceHandler.
func (c certifier) Renew(
	ctx context.Context, request *connect.Request[berthv1.RenewRequest],
) (*connect.Response[berthv1.RenewResponse], error) {
	s := c.server
	if _, err := s.agentOf(ctx); err != nil {
		return nil, err
	}
	if !leads(s) {
		return nil, notLeading()
	}
	who, _ := rpc.Bearer(ctx)
	response, err := s.RenewNode(ctx, who, request.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response), nil
}

// hypervisorAddresses are where the coordinators have guests sent to: see package destination.
func hypervisorAddresses(name, uri, from string) []string {
	addresses := []string{name}
	if host := destination.Host(name, uri, from); host != name {
		addresses = append(addresses, host)
	}
	if destination.CheckData(from) == nil && from != "" && !slices.Contains(addresses, from) {
		addresses = append(addresses, from)
	}
	return addresses
}

// dataAddresses adds the address that a node wants memory at, unless another node calls from there.
func (c certifier) dataAddresses(addresses []string, node, asked string) []string {
	if asked == "" || destination.CheckData(asked) != nil || slices.Contains(addresses, asked) {
		return addresses
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.node != node && x.from == asked {
			return addresses
		}
	}
	return append(slices.Clone(addresses), asked)
}

// names are those of all nodes. Every node of a fleet asks for them, so they are gathered once for as long as no node comes, goes or
// changes. The zero value is ready.
type names struct {
	mu     sync.Mutex
	at     *state.Snapshot // as of which they are; nil: they were not gathered yet
	sorted []string
}

// of are the names of all nodes of a snapshot, in order. Nobody changes the list.
func (n *names) of(snapshot *state.Snapshot) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at != nil {
		changed, known := snapshot.Since(n.at)
		if known && !slices.ContainsFunc(changed, func(one state.Change) bool { return one.Table == state.Nodes }) {
			n.at = snapshot
			return n.sorted
		}
	}
	sorted := make([]string, 0, snapshot.CountNodes())
	for node := range snapshot.SharedNodes() {
		sorted = append(sorted, node.Name)
	}
	slices.Sort(sorted)
	n.at, n.sorted = snapshot, sorted
	return sorted
}
