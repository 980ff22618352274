package cli

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"berth/coordinator/cli/clientconfig"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	contextVariable     = "BERTH_CONTEXT"
	coordinatorVariable = "BERTH_COORDINATOR"
)

const loginStep = "log in with 'berth login HOST TOKEN'; an administrator makes the token with " +
	"'berth token create --for operator'. On a coordinator, root has " + clientconfig.SystemPath + " from 'berth coordinator init'"

// target is which cluster is meant, and who we are there.
type target struct {
	name    string // of the context
	file    string
	context clientconfig.Context
}

// origin says where the addresses come from.
func (t target) origin() string { return fmt.Sprintf("context %q in %s", t.name, t.file) }

// target finds the context: flags before the environment before files.
func (a *app) target() (target, error) {
	config, file, err := clientconfig.Find(clientconfig.Places(a.clientConfig, a.env))
	switch {
	case errors.Is(err, clientconfig.ErrNone):
		return target{}, failf(rpc.Invalid, loginStep, "%w", err)
	case err != nil:
		return target{}, failf(rpc.Invalid, "correct the file", "%w", err)
	}
	context, name, err := config.Context(or(a.context, a.env(contextVariable)), file)
	if err != nil {
		return target{}, failf(rpc.Invalid, "see 'berth context list'", "%w", err)
	}
	return target{name: name, file: file, context: context}, nil
}

// addresses are the coordinators to ask, with their ports, and where they come from.
func (a *app) addresses(t target) ([]string, string, error) {
	texts, origin := t.context.Coordinators, t.origin()
	if given := a.env(coordinatorVariable); given != "" {
		texts, origin = strings.Split(given, ","), coordinatorVariable
	}
	if len(a.coordinators) > 0 {
		texts, origin = a.coordinators, "--coordinator"
	}
	addresses := make([]string, 0, len(texts))
	for _, text := range texts {
		address, err := rpc.Address(strings.TrimSpace(text), rpc.PortAPI)
		if err != nil {
			return nil, "", failf(rpc.Invalid, "correct the coordinator's address", "%s: %w", origin, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, origin, nil
}

// connect makes a session with the cluster. It does not speak to anybody yet.
func (a *app) connect() (*session, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	addresses, origin, err := a.addresses(t)
	if err != nil {
		return nil, err
	}
	settings, err := pki.ClientConfig(t.context.Files(), pki.RolePeer)
	if err != nil {
		next := loginStep
		if errors.Is(err, fs.ErrPermission) {
			next = "run this as root, or " + loginStep
		}
		return nil, failf(rpc.Denied, next, "%s: %w", t.origin(), err)
	}
	if err := a.checkExpiry(t.context.Certificate); err != nil {
		return nil, err
	}
	client := rpc.NewHTTPClient(settings)
	s := &session{addresses: addresses, origin: origin, patience: a.patience, tell: a.note, budget: newBudget()}
	for _, address := range addresses {
		s.clients = append(s.clients, berthv1connect.NewBerthServiceClient(client, "https://"+address))
	}
	s.close = client.CloseIdleConnections
	return s, nil
}

// note tells people what is being waited for. Programs that read the answer as JSON are told nothing.
func (a *app) note(text string) {
	if !a.quiet && !a.format.structured() {
		fmt.Fprintln(a.notes, "berth: "+text)
	}
}

// checkExpiry says at once what the other side would only refuse.
func (a *app) checkExpiry(path string) error {
	certificate, err := readCertificate(path)
	if err != nil {
		return failf(rpc.Denied, loginStep, "%w", err)
	}
	if end := certificate.NotAfter; a.now().After(end) {
		return failf(rpc.Denied, loginStep, "the certificate %s expired on %s", path, end.In(a.now().Location()).Format(time.DateOnly))
	}
	return nil
}

func readCertificate(path string) (*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s is no certificate", path)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certificate, nil
}
