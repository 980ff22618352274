package simagent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"connectrpc.com/connect"

	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Identity is what enrolment gave a node.
type Identity struct {
	NodeID    string
	ClusterID string
	Name      string
	HostUUID  string
	Files     pki.Files
	Addresses []string // host:port of the coordinators' agent listeners
}

// Enrol makes a node of the cluster to which the token belongs, through the coordinator whose API is at host:port. The
// certificate goes into dir.
func Enrol(ctx context.Context, coordinator, token, name, dir string) (Identity, error) {
	fail := func(err error) (Identity, error) {
		return Identity{}, fmt.Errorf("enrol simulated node %s: %w", name, err)
	}
	parsed, err := pki.ParseToken(token)
	if err != nil {
		return fail(err)
	}
	request, key, err := pki.NewRequest(name)
	if err != nil {
		return fail(err)
	}
	identity := Identity{Name: name, HostUUID: uuidOf(name), Files: pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "agent.pem"), Key: filepath.Join(dir, "agent.key"),
	}}
	client := rpc.NewHTTPClient(pki.PinnedClientConfig(parsed.CAFingerprint))
	defer client.CloseIdleConnections()
	answer, err := berthv1connect.NewEnrolmentServiceClient(client, "https://"+coordinator).Enrol(ctx,
		connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: parsed.Secret, Name: name, CsrPem: request, HostUuid: identity.HostUUID, MachineId: identity.HostUUID,
		}))
	if err != nil {
		return fail(err)
	}
	identity.NodeID, identity.ClusterID = answer.Msg.GetId(), answer.Msg.GetClusterId()
	identity.Addresses = answer.Msg.GetAgentAddresses()
	err = errors.Join(
		config.WriteFile(identity.Files.CA, answer.Msg.GetCaPem(), 0o644),
		config.WriteFile(identity.Files.Certificate, answer.Msg.GetCertificatePem(), 0o644),
		config.WriteFile(identity.Files.Key, key, 0o600),
	)
	if err != nil {
		return fail(err)
	}
	return identity, nil
}
