package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"berth/agent/hoststat"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/libvirt"
	"berth/agent/jobs"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func joinCommand() *cobra.Command {
	var name, dataDir, libvirtURI string
	var force, assent, replace, plain bool
	cmd := &cobra.Command{
		Use:   "join HOST[:7420] TOKEN",
		Short: "Enrol this node with a cluster",
		Long: `Enrols this node: checks the coordinator against the fingerprint in the token, gets a certificate for this node, and
writes the configuration if there is none. The key never leaves the node. The token is good for one node.
Then it sets up what live migration needs of libvirt and QEMU, as 'berth-agent libvirt-tls setup' does: it shows what it will change,
and asks. Files that are not Berth's are left alone unless --replace is given.
TOKEN is the token, @FILE with it in the first line, or - for standard input: other accounts see what is on a command line.

Make a token on any machine with the berth command line: berth token add --for agent`,
		Example: "  berth-agent join coordinator1 berth1.agent.k5tq…",
		Args:    exactly("HOST", "TOKEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, _ := cmd.Flags().GetString("config")
			e := enroller{cmd: cmd, path: path, settings: defaults(), name: name, force: force}
			if err := config.Load(path, &e.settings); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if dataDir != "" {
				e.settings.DataDir = dataDir
				e.changes = append(e.changes, change{"data_dir", dataDir})
			}
			if libvirtURI != "" {
				e.settings.LibvirtURI = libvirtURI
				e.changes = append(e.changes, change{"libvirt_uri", libvirtURI})
			}
			if err := e.settings.check(); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			token, err := config.Secret(args[1], cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("the token: %w", err)
			}
			if err := e.join(args[0], token); err != nil || plain {
				return err
			}
			tls := libvirtTLSOf(cmd, e.settings)
			tls.assent, tls.replace = assent, replace
			return tls.afterJoin()
		},
	}
	addConfigFlag(cmd)
	cmd.Flags().StringVar(&name, "name", "", "name of the node (default: the host name)")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "where certificates and the journal go (default "+defaultDataDir+")")
	cmd.Flags().StringVar(&libvirtURI, "libvirt-uri", "", "libvirt to manage (default qemu:///system)")
	addAssentFlags(cmd, &assent, &replace)
	cmd.Flags().BoolVar(&plain, "no-libvirt-tls", false, "leave the TLS files of libvirt and QEMU as they are")
	cmd.Flags().BoolVar(&force, "force", false, "enrol again although this node was enrolled before")
	return cmd
}

// enroller is one run of join.
type enroller struct {
	cmd      *cobra.Command
	path     string // of the configuration
	settings Settings
	changes  []change // of the configuration
	name     string
	force    bool
}

func (e *enroller) join(host, text string) error {
	before, err := e.settings.enrolment()
	if err == nil && !e.force {
		return fmt.Errorf("this node is enrolled already, as %s (%s): remove it first with 'berth node delete %s', then use --force",
			before.Name, before.NodeID, before.Name)
	}
	token, err := pki.ParseToken(text)
	if err != nil {
		return err
	}
	if token.Purpose != pki.PurposeAgent {
		return fmt.Errorf("this token enrols a %s, not an agent: make one with 'berth token add --for agent'", token.Purpose)
	}
	address, err := rpc.Address(host, rpc.PortAPI)
	if err != nil {
		return err
	}
	// An agent that runs now has the old identity and would keep it.
	if err := jobs.Unused(e.settings.journalPath()); err != nil {
		return fmt.Errorf("%w: stop it first with 'systemctl stop berth-agent'", err)
	}
	answer, key, err := e.enrol(address, token)
	if err != nil {
		return err
	}
	if err := e.store(answer, key, before); err != nil {
		return fmt.Errorf("enrolled as %s, but it could not be stored: %w: remove the node with 'berth node delete %s' and join again",
			answer.GetId(), err, e.name)
	}
	fmt.Fprintf(e.cmd.OutOrStdout(), "node %s (%s) is enrolled\n\nnext:\n"+
		"  berth-agent doctor --config %s\n  systemctl enable --now berth-agent\n",
		e.name, answer.GetId(), e.path)
	return nil
}

func (e *enroller) enrol(address string, token pki.Token) (answer *berthv1.EnrolResponse, key []byte, err error) {
	ctx, cancel := context.WithTimeout(e.cmd.Context(), firstAnswer+30*time.Second)
	defer cancel()
	identity, err := hoststat.New().Identity(ctx)
	if err != nil {
		return nil, nil, err
	}
	if e.name == "" {
		e.name, _, _ = strings.Cut(identity.HostName, ".")
	}
	hostUUID, err := hostUUID(ctx, &e.settings)
	if err != nil {
		return nil, nil, fmt.Errorf("a node is enrolled by its libvirt's host UUID: %w: see to libvirt, then run the same command again; "+
			"the token is still good", err)
	}
	request, key, err := pki.NewRequest(e.name)
	if err != nil {
		return nil, nil, err
	}
	client := berthv1connect.NewEnrolmentServiceClient(
		rpc.NewHTTPClient(pki.PinnedClientConfig(token.CAFingerprint)), "https://"+address)
	response, err := client.Enrol(ctx, connect.NewRequest(&berthv1.EnrolRequest{
		TokenSecret: token.Secret, Name: e.name, CsrPem: request, HostUuid: hostUUID, MachineId: identity.MachineID,
		Renews: true,
	}))
	if err != nil {
		return nil, nil, explain(address, err)
	}
	return response.Msg, key, nil
}

// explain adds what to do to what the server or the network said.
func explain(address string, err error) error {
	var said *connect.Error
	if detail := rpc.Detail(err); detail != nil && errors.As(err, &said) {
		return fmt.Errorf("%s\nnext: %s", said.Message(), detail.GetNextStep())
	}
	return fmt.Errorf("the coordinator at %s does not let this node in: %w: check the address, that 'berth coordinator run' is up there, "+
		"and that its port is open", address, err)
}

// store writes what the node needs: key and certificates first, the identity last, because it is what says "enrolled".
func (e *enroller) store(answer *berthv1.EnrolResponse, key []byte, before enrolment) error {
	settings := &e.settings
	files := settings.files()
	if err := os.MkdirAll(filepath.Dir(files.CA), 0o700); err != nil {
		return err
	}
	if before.ClusterID != answer.GetClusterId() {
		// Terms and epochs of another cluster would have this node refuse every order of the new one.
		if err := os.Remove(settings.journalPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(e.path), 0o755); err != nil {
		return err
	}
	if err := amend(e.path, append(e.changes, change{"coordinators", answer.GetAgentAddresses()})); err != nil {
		return err
	}
	members, err := json.Marshal(answer.GetAgentAddresses())
	if err != nil {
		return err
	}
	identity, err := json.MarshalIndent(enrolment{NodeID: answer.GetId(), Name: e.name, ClusterID: answer.GetClusterId()}, "", "  ")
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path string
		data []byte
	}{
		{files.Key, key},
		{files.Certificate, answer.GetCertificatePem()},
		{files.CA, answer.GetCaPem()},
		{settings.membersPath(), members},
		{settings.identityPath(), append(identity, '\n')},
	} {
		if err := config.WriteFile(file.path, file.data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func hostUUID(ctx context.Context, settings *Settings) (string, error) {
	h := settings.libvirt(hclog.NewNullLogger())
	defer h.Close()
	if err := awaitLibvirt(ctx, h, 5*time.Second); err != nil {
		return "", err
	}
	return untilAnswered(ctx, firstAnswer, func(ctx context.Context) (string, error) {
		info, err := h.Host(ctx)
		return info.HostUUID, err
	})
}

// firstAnswer is how long libvirtd may take to answer for the first time. When it has just been installed or started it runs each QEMU
// of the host to see what that can do, and answers nobody meanwhile.
const firstAnswer = time.Minute

// untilAnswered asks again while libvirtd gives no answer.
func untilAnswered(ctx context.Context, patience time.Duration, ask func(context.Context) (string, error)) (string, error) {
	for deadline := time.Now().Add(patience); ; {
		answer, err := ask(ctx)
		if !errors.Is(err, hypervisor.ErrUnavailable) || time.Now().After(deadline) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(time.Second):
		}
	}
}

// awaitLibvirt waits for the connection that is being made in the background.
func awaitLibvirt(ctx context.Context, h *libvirt.Hypervisor, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		connected, err := h.Connected()
		if connected {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
