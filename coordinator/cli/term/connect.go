package term

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clientconfig"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// The environment may name the context, and the coordinators to ask.
const (
	ContextVariable     = "BERTH_CONTEXT"
	CoordinatorVariable = "BERTH_COORDINATOR"
)

// LoginStep is the next step of a person without a valid certificate.
const LoginStep = "log in with 'berth login HOST TOKEN'; an administrator makes the token with " +
	"'berth token add --for operator'. On a coordinator, root needs no token: 'berth coordinator login'"

// target is which cluster is meant, and who we are there.
type target struct {
	name    string // of the context
	file    string
	context clientconfig.Context
}

// origin says where the addresses come from.
func (t target) origin() string { return fmt.Sprintf("context %q in %s", t.name, t.file) }

// target finds the context: flags before the environment before files.
func (a *App) target() (target, error) {
	config, file, err := clientconfig.Find(clientconfig.Places(a.ClientConfig, a.Env))
	switch {
	case errors.Is(err, clientconfig.ErrNone):
		return target{}, Failf(rpc.Invalid, LoginStep, "%w", err)
	case err != nil:
		return target{}, Failf(rpc.Invalid, "correct the file", "%w", err)
	}
	context, name, err := config.Context(cmp.Or(a.Context, a.Env(ContextVariable)), file)
	if err != nil {
		return target{}, Failf(rpc.Invalid, "see 'berth context list'", "%w", err)
	}
	return target{name: name, file: file, context: context}, nil
}

// addresses are the coordinators to ask, with their ports, and where they come from.
func (a *App) addresses(t target) ([]string, string, error) {
	texts, origin := t.context.Coordinators, t.origin()
	if given := a.Env(CoordinatorVariable); given != "" {
		texts, origin = strings.Split(given, ","), CoordinatorVariable
	}
	if len(a.coordinators) > 0 {
		texts, origin = a.coordinators, "--coordinator"
	}
	addresses := make([]string, 0, len(texts))
	for _, text := range texts {
		address, err := rpc.Address(strings.TrimSpace(text), rpc.PortAPI)
		if err != nil {
			return nil, "", Failf(rpc.Invalid, "correct the coordinator's address", "%s: %w", origin, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, origin, nil
}

// Connect makes a session with the cluster. It does not speak to anybody yet.
func (a *App) Connect() (*Session, error) {
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
		next := LoginStep
		if errors.Is(err, fs.ErrPermission) {
			next = "run this as root, or " + LoginStep
		}
		return nil, Failf(rpc.Denied, next, "%s: %w", t.origin(), err)
	}
	if err := a.checkExpiry(t.context.Certificate); err != nil {
		return nil, err
	}
	client := rpc.NewNames(a.cached("addresses.yaml")).Client(settings)
	s := &Session{
		addresses: addresses, origin: origin, patience: a.Patience, busy: a.Busy, limit: a.Limit, tell: a.note, budget: newBudget(),
	}
	s.traces = a.traced()
	if pair, err := pki.LoadPair(t.context.Files()); err == nil {
		s.cluster = pair.Identity.ClusterID
	}
	trusted := func(authorities []string) { a.renewBeside(t.context.Files(), s, authorities) }
	for _, address := range addresses {
		s.clients = append(
			s.clients, berthv1connect.NewBerthServiceClient(client, "https://"+address, connect.WithInterceptors(procedureNotes{trusted: trusted})),
		)
	}
	s.Close = client.CloseIdleConnections
	a.renewBeside(t.context.Files(), s, nil)
	return s, nil
}

// note tells people what is being waited for. Programs that read the answer as JSON are told nothing.
func (a *App) note(text string) {
	if !a.Quiet && !a.Format.Structured() {
		fmt.Fprintln(a.Notes, "berth: "+text)
	}
}

// cached is where a file is that may go at any time; empty: there is no such folder.
func (a *App) cached(name string) string {
	folder := a.Env("XDG_CACHE_HOME")
	if folder == "" && a.Env("HOME") != "" {
		folder = filepath.Join(a.Env("HOME"), ".cache")
	}
	if !filepath.IsAbs(folder) {
		return ""
	}
	return filepath.Join(folder, "berth", name)
}

// checkExpiry says at once what the other side would only refuse.
func (a *App) checkExpiry(path string) error {
	certificate, err := ReadCertificate(path)
	if err != nil {
		return Failf(rpc.Denied, LoginStep, "%w", err)
	}
	if end := certificate.NotAfter; a.Now().After(end) {
		return Failf(rpc.Denied, LoginStep, "the certificate %s expired on %s", path, end.In(a.Now().Location()).Format(time.DateOnly))
	}
	return nil
}

// ReadCertificate reads the first certificate of a PEM file.
func ReadCertificate(path string) (*x509.Certificate, error) {
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
