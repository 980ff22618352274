package access

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

const maxTokenLife = time.Hour

var purposes = []string{pki.PurposeAgent, pki.PurposeCoordinator, pki.PurposeOperator}

// TokenCommand is the noun token.
func TokenCommand(a *term.App) *cobra.Command {
	return term.Noun("token COMMAND", "Let further machines and people in", `
A token lets one machine or person in, once and for a short time. It carries the fingerprint of the cluster's
authority, so that its user speaks to the right cluster.`,
		tokenCreateCommand(a))
}

func tokenCreateCommand(a *term.App) *cobra.Command {
	var (
		purpose, name string
		ttl           time.Duration
	)
	cmd := &cobra.Command{
		Use: "create --for agent|coordinator|operator", Short: "Make a token and print the line to run on the other machine",
		Args: term.Arguments(0),
		Long: `Make a token and print the line to run on the other machine: 'berth-agent join' for a hypervisor, 'berth coordinator
join' for a further coordinator, 'berth login' for a person. The token works once. It is shown here and nowhere else.`,
		Example: `  berth token create --for agent
  berth token create --for operator --name alice --ttl 10m
  ssh root@hv4 "$(berth token create --for agent --name hv4 --quiet)"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case purpose == "":
				return term.Usagef(cmd, "--for is missing: %s", strings.Join(purposes, ", "))
			case !slices.Contains(purposes, purpose):
				return term.Usagef(cmd, "--for %s: use %s", purpose, strings.Join(purposes, ", "))
			case ttl < time.Second || ttl > maxTokenLife:
				return term.Usagef(cmd, "--ttl %s: want 1s to %s", ttl, term.Span(maxTokenLife))
			}
			return tokenCreate(a, cmd, &berthv1.CreateTokenRequest{Purpose: purpose, Name: name, TtlSeconds: ttl.Seconds()})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&purpose, "for", "", "`PURPOSE`, what its user becomes: agent, coordinator or operator")
	cmd.Flags().StringVar(&name, "name", "", "only for the machine or person of this `NAME`")
	cmd.Flags().DurationVar(&ttl, "ttl", maxTokenLife, "`DURATION` that it is good for, at most 1h")
	term.Complete(cmd, "for", term.CompleteFixed(purposes...))
	term.Complete(cmd, "name", cobra.NoFileCompletions)
	term.Complete(cmd, "ttl", cobra.NoFileCompletions)
	return cmd
}

func tokenCreate(a *term.App, cmd *cobra.Command, request *berthv1.CreateTokenRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.CreateToken, request) // a lost token dies by itself
	if err != nil {
		return err
	}
	if !a.Quiet && !a.Format.Structured() {
		fmt.Fprintf(cmd.ErrOrStderr(), "run this line on the other machine until %s; it works once:\n", a.At(answer.GetExpiresAt()))
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{answer.GetToken()},
		Text: func(p *term.Page, _ bool) { p.Line("%s", answer.GetCommand()) },
	})
}
