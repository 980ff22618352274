package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

const maxTokenLife = time.Hour

var purposes = []string{pki.PurposeAgent, pki.PurposeCoordinator, pki.PurposeOperator}

// TokenCommand is the noun token.
func TokenCommand(a *term.App) *cobra.Command {
	return term.Noun("token COMMAND", "Let further machines and people in", `
A token lets machines or people in, once or as often as was asked for, and for a short time. It carries the fingerprint
of the cluster's authority, so that its user speaks to the right cluster.`,
		tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
}

func tokenCreateCommand(a *term.App) *cobra.Command {
	var (
		purpose, name, permit string
		ttl                   time.Duration
		uses                  int32
	)
	cmd := &cobra.Command{
		Use: "add --for agent|coordinator|operator", Aliases: []string{"create"},
		Short: "Make a token and print the line to run on the other machine",
		Args:  term.Arguments(0),
		Long: `Make a token and print the line to run on the other machine: 'berth-agent join' for a hypervisor, 'berth coordinator
join' for a further coordinator, 'berth login' for a person. The token works once, or --uses times. It is shown here and
nowhere else. The line hands it over on standard input, because other accounts see what is on a command line.
An operator may put onto hosts what needs a permission only as --permit says ('berth identity set --help'). Whoever is
root of a coordinator has all, so a token for one takes an operator who has all.`,
		Example: `  berth token add --for agent
  berth token add --for agent --uses 20 --name 'hv*'
  berth token add --for operator --name alice --ttl 10m
  berth token add --for operator --name bob --permit host-devices`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case purpose == "":
				return term.Usagef(cmd, "--for is missing: %s", strings.Join(purposes, ", "))
			case !slices.Contains(purposes, purpose):
				return term.Usagef(cmd, "--for %s: use %s", purpose, strings.Join(purposes, ", "))
			case permit != "" && purpose != pki.PurposeOperator:
				return term.Usagef(cmd, "--permit is for operators only, and this token is for %s", purpose)
			case uses < 1 || uses > model.MaxTokenUses:
				return term.Usagef(cmd, "--uses %d: want 1 to %d", uses, model.MaxTokenUses)
			case ttl < time.Second || ttl > maxTokenLife:
				return term.Usagef(cmd, "--ttl %s: want 1s to %s", ttl, term.Span(maxTokenLife))
			}
			return tokenCreate(a, cmd, &berthv1.CreateTokenRequest{
				Purpose: purpose, Name: name, TtlSeconds: ttl.Seconds(), Uses: uses, Permit: permit,
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&purpose, "for", "", "`PURPOSE`, what its user becomes: agent, coordinator or operator")
	cmd.Flags().StringVar(&name, "name", "", "only for the machine or person of this `NAME`, or for names of a pattern such as 'hv*'")
	cmd.Flags().Int32Var(&uses, "uses", 1, "`HOW` often it is good")
	term.Complete(cmd, "uses", cobra.NoFileCompletions)
	cmd.Flags().DurationVar(&ttl, "ttl", maxTokenLife, "`DURATION` that it is good for, at most 1h")
	permitFlag(cmd, &permit)
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
		often := "it works once"
		if uses := request.GetUses(); uses > 1 {
			often = fmt.Sprintf("it works %d times", uses)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "run this line on the other machine until %s; %s:\n", a.At(answer.GetExpiresAt()), often)
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{answer.GetToken()},
		Text: func(p *term.Page, _ bool) { p.Line("%s", answer.GetCommand()) },
	})
}

func tokenListCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens, with the uses that they have left", Args: term.Arguments(0),
		Long: `List the tokens that the cluster remembers, until a day after they have expired. What is listed lets nobody in: only the
hash of a token is kept.`,
		Example: `  berth token list`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListTokens, &berthv1.ListTokensRequest{}, term.Everything)
			if err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(answer.GetTokens()), "no tokens")
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   term.Prefixed("token/", answer.GetTokens(), (*berthv1.Token).GetId),
				Text:    func(p *term.Page, _ bool) { p.Table(tokenHeadings, tokenRows(a, answer.GetTokens())) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func tokenRevokeCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token at once", Args: term.Arguments(1, "ID"),
		Long: `End a token at once: from now on it lets nobody in. Who has come in with it stays; 'berth identity revoke' ends that,
and all tokens that it has made. A restored snapshot brings no token back.`,
		Example: `  berth token revoke 0a1b2c3d`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.RevokeToken, &berthv1.RevokeTokenRequest{
				Id: strings.TrimPrefix(args[0], "token/"), RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			id := answer.GetToken().GetId()
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"token/" + id},
				Text: func(p *term.Page, _ bool) { p.Line("token %s is revoked: it lets nobody in any more", id) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.CompleteFrom(func(ctx context.Context, s *term.Session) (names []string, err error) {
			answer, err := term.AskAll(ctx, s, term.Client.ListTokens, &berthv1.ListTokensRequest{}, term.Everything)
			return term.Prefixed("", answer.GetTokens(), (*berthv1.Token).GetId), err
		})),
	}
}

var tokenHeadings = []string{"ID", "FOR", "NAME", "LEFT", "EXPIRES", "PERMIT", "MADE-BY", "USED-BY"}

func tokenRows(a *term.App, tokens []*berthv1.Token) [][]string {
	rows := make([][]string, 0, len(tokens))
	for _, token := range tokens {
		left := strconv.Itoa(int(token.GetUsesLeft())) + " of " + strconv.Itoa(int(token.GetUses()))
		rows = append(rows, []string{
			token.GetId(), token.GetPurpose(), cmp.Or(token.GetName(), term.None), left, a.At(token.GetExpiresAt()),
			cmp.Or(token.GetPermit(), term.None), token.GetCreatedBy(),
			cmp.Or(strings.Join(token.GetUsedBy(), ","), term.None),
		})
	}
	return rows
}
