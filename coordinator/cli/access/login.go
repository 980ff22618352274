package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/term"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// LoginCommand is the command login.
func LoginCommand(a *term.App) *cobra.Command {
	var (
		name string
		web  bool
	)
	cmd := &cobra.Command{
		Use: "login HOST[:PORT] TOKEN", Short: "Become an operator of a cluster",
		Args: func(cmd *cobra.Command, args []string) error {
			if web {
				return term.Arguments(0)(cmd, args)
			}
			return term.Arguments(2, "HOST", "TOKEN")(cmd, args)
		},
		Long: `Become an operator of a cluster: a key is made here and never leaves this machine, a coordinator signs the certificate,
and a context with both is written and made the current one. An administrator makes the token with
'berth token add --for operator'. TOKEN may be @FILE or - to be read from a file or the standard input: other
accounts see what is on a command line. With --web you are an operator already, and get an address that logs a browser
in, as with 'berth console --print'.`,
		Example: `  berth login coord1.example.com berth1.operator...
  berth login coord1 - --context prod < token.txt
  berth login --web`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if web {
				return openConsole(a, cmd, false, true)
			}
			address, err := rpc.Address(args[0], rpc.PortAPI)
			if err != nil {
				return term.Usage(cmd, err)
			}
			text, err := config.Secret(args[1], cmd.InOrStdin())
			if err != nil {
				return fmt.Errorf("the token: %w", err)
			}
			token, err := pki.ParseToken(text)
			if err != nil {
				return term.Failf(rpc.Invalid, "copy the whole token, it is one word in four parts", "%w", err)
			}
			if token.Purpose != pki.PurposeOperator {
				return term.Failf(rpc.Invalid, "make one with 'berth token add --for operator'",
					"this token is for %s, not for an operator", term.Article(token.Purpose))
			}
			return login(a, cmd, address, token, name)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` that you are known by in the cluster (default that of your account)")
	cmd.Flags().BoolVar(&web, "web", false, "print an address that logs a browser in to the console, once, within a minute")
	term.Complete(cmd, "name", cobra.NoFileCompletions)
	return cmd
}

func login(a *term.App, cmd *cobra.Command, address string, token pki.Token, name string) error {
	if name == "" {
		account, err := user.Current()
		if err != nil {
			return term.Usagef(cmd, "--name is missing, and the name of your account cannot be found: %w", err)
		}
		name = account.Username
	}
	csr, key, err := pki.NewRequest(name)
	if err != nil {
		return err
	}
	answer, err := enrol(cmd.Context(), address, token, &berthv1.EnrolRequest{
		TokenSecret: token.Secret, Name: name, CsrPem: csr, Renews: true,
	})
	if err != nil {
		return err
	}
	coordinators := answer.GetApiAddresses()
	if len(coordinators) == 0 {
		coordinators = []string{address}
	}
	path := clientconfig.Places(a.ClientConfig, a.Env)[0]
	wanted := cmp.Or(a.Context, a.Env(term.ContextVariable))
	if wanted == "" {
		wanted = contextFor(a, path, answer.GetClusterId())
	}
	err = clientconfig.Store(path, wanted, coordinators, clientconfig.Credentials{
		CA: answer.GetCaPem(), Certificate: answer.GetCertificatePem(), Key: key,
	})
	if err != nil {
		return fmt.Errorf("keep the certificate: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "logged in as operator/%s; context %q in %s is the current one\n", name, wanted, path)
	return nil
}

// contextFor chooses the name of a cluster's context: the one that it has already, else "default", else its ID.
func contextFor(a *term.App, path, clusterID string) string {
	const usual = "default"
	config, err := clientconfig.Load(path)
	if err != nil {
		return usual // a broken file is refused when the context is stored
	}
	for _, name := range config.Names() {
		if viewContext(a, config, name, path).ClusterID == clusterID {
			return name
		}
	}
	if _, taken := config.Contexts[usual]; taken {
		return clusterID
	}
	return usual
}

func enrol(ctx context.Context, address string, token pki.Token, request *berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, term.CallLimit, term.ErrSlow)
	defer cancel()
	httpClient := rpc.NewHTTPClient(pki.PinnedClientConfig(token.CAFingerprint))
	defer httpClient.CloseIdleConnections()
	answer, err := berthv1connect.NewEnrolmentServiceClient(httpClient, "https://"+address).Enrol(ctx, connect.NewRequest(request))
	switch {
	case err == nil:
		return answer.Msg, nil
	case rpc.Detail(err) != nil:
		return nil, err
	case errors.Is(err, pki.ErrPeer):
		return nil, term.Failf(rpc.Denied, "check the address, or get a token from that cluster", "%s: %s", address, term.Reason(err))
	}
	return nil, term.Failf(rpc.Unreachable, "check the address, and that a coordinator runs there and can be reached from here",
		"no coordinator answers at %s: %s", address, term.Reason(err))
}
