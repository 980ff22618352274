package daemon

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/consensus"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/shared/pki"
)

// firstOperator is the name of the person that a new cluster knows.
const firstOperator = "admin"

// InitOptions say how to make a cluster. Empty fields are read from the configuration file, or have its defaults.
type InitOptions struct {
	ConfigPath   string // default: DefaultConfigPath
	Flags        Config // only Name, Advertise and DataDir count
	ClientConfig string // default: clientconfig.SystemPath
}

// Made is what Init made.
type Made struct {
	Config       Config
	ConfigPath   string
	ConfigMade   bool // or added to
	ClusterID    string
	ClientConfig string
	Context      string // in the client configuration
}

// Init makes a new cluster of one coordinator in an empty data directory: authority, certificates, an operator's client
// configuration, and a Raft store with this member alone. After an error the data directory is empty again.
func Init(ctx context.Context, options InitOptions) (Made, error) {
	settled, err := prepare(ctx, &options.ConfigPath, options.Flags)
	if err != nil {
		return Made{}, err
	}
	if options.ClientConfig == "" {
		options.ClientConfig = clientconfig.SystemPath
	}
	made := Made{
		Config: settled.Config, ConfigPath: options.ConfigPath, ClusterID: newClusterID(), ClientConfig: options.ClientConfig,
	}
	if made.Context, err = freeContext(options.ClientConfig, made.ClusterID); err != nil {
		return made, err
	}
	home := place{settled.DataDir}
	undo, err := home.claim()
	if err != nil {
		return made, err
	}
	if err := made.found(home, &settled); err != nil {
		undo()
		return made, err
	}
	return made, nil
}

// prepare reads what init and join go by, and refuses what could not work later.
func prepare(ctx context.Context, path *string, flags Config) (settled, error) {
	if *path == "" {
		*path = DefaultConfigPath
	}
	s, err := settle(*path, flags)
	if err != nil {
		return s, err
	}
	return s, s.checkAdvertise(ctx)
}

// found puts a new cluster into an empty place, and then writes the files outside of it.
func (m *Made) found(home place, settled *settled) error {
	now := time.Now()
	authority, err := pki.NewAuthority(m.ClusterID, now)
	if err != nil {
		return err
	}
	authorityKey, err := authority.KeyPEM()
	if err != nil {
		return err
	}
	who := identity{ClusterID: m.ClusterID, ID: newID(), Name: settled.Name}
	certificate, key, err := issue(authority, pki.Identity{
		Role: pki.RolePeer, ID: who.ID, Name: who.Name, ClusterID: who.ClusterID,
	}, certificateAddresses(settled.Config), now)
	if err != nil {
		return err
	}
	if err := home.saveKeys(certificate, key, authority.CertificatePEM(), authorityKey); err != nil {
		return fmt.Errorf("write the certificates: %w", err)
	}
	if err := keyring.Found(home.file("tls"), m.ClusterID, now); err != nil {
		return fmt.Errorf("make the authorities of hypervisors: %w", err)
	}
	raft := raftConfig(home, who, settled.Config, hclog.NewNullLogger())
	raft.Fatal = func(error) {} // what fails here is returned as well
	if err := consensus.Bootstrap(raft); err != nil {
		return fmt.Errorf("make the Raft store: %w", err)
	}
	operator, err := m.operator(authority, now)
	if err != nil {
		return err
	}
	who.Founders = []string{string(certificate), string(operator.Certificate)}
	if err := home.saveIdentity(who); err != nil {
		return err
	}
	if m.ConfigMade, err = settled.save(); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return m.letIn(settled.Config, operator)
}

// operator makes the first operator. Its certificate counts once it is among the founders.
func (m *Made) operator(authority *pki.Authority, now time.Time) (clientconfig.Credentials, error) {
	certificate, key, err := issue(authority, pki.Identity{
		Role: pki.RoleOperator, ID: newID(), Name: firstOperator, ClusterID: m.ClusterID,
	}, nil, now)
	return clientconfig.Credentials{CA: authority.CertificatePEM(), Certificate: certificate, Key: key}, err
}

// letIn writes the first operator's client configuration.
func (m *Made) letIn(c Config, operator clientconfig.Credentials) error {
	api, _, _ := c.addresses()
	if err := clientconfig.Store(m.ClientConfig, m.Context, []string{api}, operator); err != nil {
		return fmt.Errorf("write the client configuration: %w", err)
	}
	return nil
}

func issue(a *pki.Authority, who pki.Identity, addresses []string, now time.Time) (certificate, key []byte, err error) {
	request, key, err := pki.NewRequest(who.Name)
	if err != nil {
		return nil, nil, err
	}
	certificate, err = a.Sign(request, who, addresses, now, pki.CertificateLife)
	return certificate, key, err
}

// certificateAddresses are the names that this member's certificate is good for: the one that others use, and those by
// which somebody on the machine itself may reach it.
func certificateAddresses(c Config) []string {
	addresses := []string{c.Advertise, "localhost", net.IPv4(127, 0, 0, 1).String(), net.IPv6loopback.String()}
	if host, err := os.Hostname(); err == nil {
		addresses = append(addresses, host)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// freeContext is a name for the new cluster in a client configuration that may have others already.
func freeContext(path, clusterID string) (string, error) {
	existing, err := clientconfig.Load(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "default", nil
	case err != nil:
		return "", err
	}
	if _, taken := existing.Contexts["default"]; taken {
		return clusterID, nil
	}
	return "default", nil
}

// newClusterID makes an ID that no other cluster has: 130 random bits.
func newClusterID() string { return strings.ToLower(crand.Text()) }

// newID makes an ID within a cluster.
func newID() string { return model.NewID(time.Now(), rand.Uint64()) }
