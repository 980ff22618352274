package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"berth/agent/hoststat"
	"berth/agent/hypervisor/libvirt"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const apiPort = "7420"

func joinCommand() *cobra.Command {
	var name, dataDir, libvirtURI string
	var force bool
	cmd := &cobra.Command{
		Use:   "join HOST[:7420] TOKEN",
		Short: "Enrol this node with a cluster",
		Long: `Enrols this node: checks the coordinator against the fingerprint in the token, gets a certificate for this node, and
writes the configuration if there is none. The key never leaves the node. The token is good for one node.

Make a token on any machine with the berth command line: berth token create --for agent`,
		Example: "  berth-agent join coordinator1 berth1.agent.k5tq…",
		Args:    exactly("HOST", "TOKEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, _ := cmd.Flags().GetString("config")
			settings := defaults()
			if err := config.Load(path, &settings); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if dataDir != "" {
				settings.DataDir = dataDir
			}
			if libvirtURI != "" {
				settings.LibvirtURI = libvirtURI
			}
			if err := settings.check(); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return join(cmd, &settings, path, args[0], args[1], name, force)
		},
	}
	addConfigFlag(cmd)
	cmd.Flags().StringVar(&name, "name", "", "name of the node (default: the host name)")
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "where certificates and the journal go (default "+defaultDataDir+")")
	cmd.Flags().StringVar(&libvirtURI, "libvirt-uri", "", "libvirt to manage (default qemu:///system)")
	cmd.Flags().BoolVar(&force, "force", false, "enrol again although this node was enrolled before")
	return cmd
}

func join(cmd *cobra.Command, settings *Settings, path, address, text, name string, force bool) error {
	if before, err := settings.enrolment(); err == nil && !force {
		return fmt.Errorf("this node is enrolled already, as %s (%s): remove it first with 'berth node remove %s', then use --force",
			before.Name, before.NodeID, before.Name)
	}
	token, err := pki.ParseToken(text)
	if err != nil {
		return err
	}
	if token.Purpose != pki.PurposeAgent {
		return fmt.Errorf("this token enrols a %s, not an agent: make one with 'berth token create --for agent'", token.Purpose)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), apiPort)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
	defer cancel()

	identity, err := hoststat.New().Identity(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		name, _, _ = strings.Cut(identity.HostName, ".")
	}
	hostUUID, err := hostUUID(ctx, settings.LibvirtURI)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: libvirt does not answer yet, so its host UUID is not checked: %v\n", err)
	}
	request, key, err := pki.NewRequest(name)
	if err != nil {
		return err
	}
	client := berthv1connect.NewEnrolmentServiceClient(
		rpc.NewHTTPClient(pki.PinnedClientConfig(token.CAFingerprint)), "https://"+address)
	answer, err := client.Enrol(ctx, connect.NewRequest(&berthv1.EnrolRequest{
		TokenSecret: token.Secret, Name: name, CsrPem: request, HostUuid: hostUUID, MachineId: identity.MachineID,
	}))
	if err != nil {
		return explain(address, err)
	}
	settings.Coordinators = answer.Msg.GetAgentAddresses()
	if err := store(settings, path, answer.Msg, name, key); err != nil {
		return fmt.Errorf("enrolled as %s, but it could not be stored: %w: remove the node with 'berth node remove %s' and join again",
			answer.Msg.GetId(), err, name)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "node %s (%s) is enrolled\n\nnext:\n  berth-agent doctor --config %s\n  systemctl enable --now berth-agent\n",
		name, answer.Msg.GetId(), path)
	return nil
}

// explain adds what to do to what the server or the network said.
func explain(address string, err error) error {
	var said *connect.Error
	if detail := rpc.Detail(err); detail != nil && errors.As(err, &said) {
		return fmt.Errorf("%s\nnext: %s", said.Message(), detail.GetNextStep())
	}
	return fmt.Errorf("the coordinator at %s does not let this node in: %w: check the address, that 'berth coordinator run' is up there, "+
		"and that port %s is open", address, err, apiPort)
}

// store writes what the node needs: key and certificates first, the identity last, because it is what says "enrolled".
func store(settings *Settings, path string, answer *berthv1.EnrolResponse, name string, key []byte) error {
	files := settings.files()
	if err := os.MkdirAll(filepath.Dir(files.CA), 0o700); err != nil {
		return err
	}
	identity, err := json.MarshalIndent(enrolment{NodeID: answer.GetId(), Name: name, ClusterID: answer.GetClusterId()}, "", "  ")
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
		{settings.identityPath(), append(identity, '\n')},
	} {
		if err := config.WriteFile(file.path, file.data, 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return config.Write(path, settings, 0o644)
}

func hostUUID(ctx context.Context, uri string) (string, error) {
	h := libvirt.Open(uri, hclog.NewNullLogger())
	defer h.Close()
	if err := awaitLibvirt(ctx, h, 5*time.Second); err != nil {
		return "", err
	}
	info, err := h.Host(ctx)
	return info.HostUUID, err
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
