package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// enrolTimeout bounds one enrolment, an election on the other side included.
const enrolTimeout = 30 * time.Second

// ErrToken reports a token for something else than a coordinator.
var ErrToken = errors.New("not a token for a coordinator")

// JoinOptions say how to join a cluster. Empty fields are read from the configuration file, or have its defaults.
type JoinOptions struct {
	Address    string // HOST or HOST:PORT of any member's API
	Token      string
	ConfigPath string // default: DefaultConfigPath
	Flags      Config // only Name, Advertise and DataDir count
	// ClientConfig is where an operator's client configuration for this machine goes; empty: none is made.
	ClientConfig string
}

// Joined is what Join made.
type Joined struct {
	Config     Config
	ConfigPath string
	ConfigMade bool // or added to
	ClusterID  string
	Members    []string // API addresses of all members
	Operator   string   // context in the client configuration; empty: none was made
	NoOperator error    // why none could be made
}

// Join enrols this machine as a member of an existing cluster. It only brings the certificates: Run has the member taken
// into the Raft configuration. After an error the data directory is empty again.
func Join(ctx context.Context, options JoinOptions) (Joined, error) {
	token, err := pki.ParseToken(options.Token)
	if err != nil {
		return Joined{}, err
	}
	if token.Purpose != pki.PurposeCoordinator {
		return Joined{}, fmt.Errorf("%w but for an %s: make one with 'berth token add --for coordinator'", ErrToken, token.Purpose)
	}
	address, err := rpc.Address(options.Address, rpc.PortAPI)
	if err != nil {
		return Joined{}, err
	}
	settled, err := prepare(ctx, &options.ConfigPath, options.Flags)
	if err != nil {
		return Joined{}, err
	}
	joined := Joined{Config: settled.Config, ConfigPath: options.ConfigPath}
	home := place{settled.DataDir}
	undo, err := home.claim()
	if err != nil {
		return joined, err
	}
	who, err := enrol(ctx, home, settled.Config, address, token)
	if err != nil {
		undo()
		return joined, err
	}
	joined.ClusterID, joined.Members = who.ClusterID, who.Contacts
	if joined.ConfigMade, err = settled.save(); err != nil {
		return joined, fmt.Errorf("this machine has joined, but its configuration could not be written: %w", err)
	}
	if options.ClientConfig != "" {
		joined.Operator, joined.NoOperator = letOperatorIn(ctx, home, address, options.ClientConfig)
	}
	return joined, nil
}

// letOperatorIn gives root of a new coordinator a client configuration with all members, unless there is one of this cluster. The
// operator is enrolled as anybody else, with a token that the new member asks for.
func letOperatorIn(ctx context.Context, home place, address, path string) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, enrolTimeout)
	defer cancel()
	who, err := home.identity()
	if err != nil {
		return "", err
	}
	if there, err := contextOf(path, who.ClusterID); there != "" || err != nil {
		return there, err
	}
	if name, err = freeContext(path, who.ClusterID); err != nil {
		return "", err
	}
	return name, makeOperator(ctx, home, address, path, name, operatorOf(who.Name))
}

// makeOperator enrols an operator with a token that this machine's coordinator asks for, and writes a context for it.
func makeOperator(ctx context.Context, home place, address, path, name, operator string) error {
	settings, err := pki.ClientConfig(home.tls(), pki.RolePeer)
	if err != nil {
		return err
	}
	client := rpc.NewHTTPClient(settings)
	defer client.CloseIdleConnections()
	made, err := berthv1connect.NewBerthServiceClient(client, "https://"+address).CreateToken(ctx,
		connect.NewRequest(&berthv1.CreateTokenRequest{
			Purpose: pki.PurposeOperator, Name: operator, TtlSeconds: enrolTimeout.Seconds(), Permit: model.PermitAll,
		}))
	if err != nil {
		return err
	}
	token, err := pki.ParseToken(made.Msg.GetToken())
	if err != nil {
		return err
	}
	request, key, err := pki.NewRequest(operator)
	if err != nil {
		return err
	}
	answer, err := berthv1connect.NewEnrolmentServiceClient(client, "https://"+address).Enrol(ctx,
		connect.NewRequest(&berthv1.EnrolRequest{TokenSecret: token.Secret, Name: operator, CsrPem: request, Renews: true}))
	if err != nil {
		return err
	}
	return clientconfig.Store(path, name, answer.Msg.GetApiAddresses(), clientconfig.Credentials{
		CA: answer.Msg.GetCaPem(), Certificate: answer.Msg.GetCertificatePem(), Key: key,
	})
}

// operatorOf is the name of root of a further coordinator. Live operators have different names, so that history tells them apart.
func operatorOf(coordinator string) string { return firstOperator + "-" + coordinator }

// enrol gets this member's certificate and puts it into its place.
func enrol(ctx context.Context, home place, c Config, address string, token pki.Token) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, enrolTimeout)
	defer cancel()
	request, key, err := pki.NewRequest(c.Name)
	if err != nil {
		return identity{}, err
	}
	client := rpc.NewHTTPClient(pki.PinnedClientConfig(token.CAFingerprint))
	defer client.CloseIdleConnections()
	api, agent, raft := c.addresses()
	response, err := berthv1connect.NewEnrolmentServiceClient(client, "https://"+address).Enrol(ctx,
		connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: token.Secret, Name: c.Name, CsrPem: request, Addresses: certificateAddresses(c),
			ApiAddress: api, AgentAddress: agent, RaftAddress: raft, Renews: true,
		}))
	if err != nil {
		return identity{}, fmt.Errorf("enrol at %s: %w", address, err)
	}
	answer := response.Msg
	who := identity{ClusterID: answer.GetClusterId(), ID: answer.GetId(), Name: c.Name, Invited: answer.GetCoordinatorKeys()}
	for _, contact := range append([]string{address}, answer.GetApiAddresses()...) {
		if contact != api && !slices.Contains(who.Contacts, contact) {
			who.Contacts = append(who.Contacts, contact)
		}
	}
	err = home.saveKeys(answer.GetCertificatePem(), key, answer.GetCaPem(), answer.GetCaKeyPem())
	if err == nil {
		keys := home.file("tls")
		err = errors.Join(
			keyring.Save(keys, pki.Control, answer.GetControlAuthorityPem(), answer.GetControlTrustedPem()),
			keyring.Save(keys, pki.Data, answer.GetDataAuthorityPem(), answer.GetDataTrustedPem()),
		)
	}
	if err == nil {
		err = home.saveIdentity(who)
	}
	if err != nil {
		return who, fmt.Errorf("the cluster has taken %s in, but its certificate could not be kept here; "+
			"run 'berth coordinator delete %s' before the next try, which needs another token: %w", c.Name, c.Name, err)
	}
	return who, nil
}
