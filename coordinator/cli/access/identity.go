package access

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/term"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
)

// IdentityCommand is the noun identity.
func IdentityCommand(a *term.App) *cobra.Command {
	return term.Noun("identity COMMAND", "See and revoke whose certificates count, and say what operators may", `
An identity is a coordinator, a node or an operator that may speak to the cluster. Its certificate counts only as long
as its key is on record here: a certificate alone, also one that was signed by the cluster's own authority, makes
nobody. Certificates are good for 30 days and renew themselves. NAME is a name, KIND/NAME where several have it
(operator/alice), or an ID.`,
		identityListCommand(a), identityShowCommand(a), identitySetCommand(a), identityRevokeCommand(a), identityConfirmCommand(a))
}

// identityNames completes with kind/name of those that count.
func identityNames(a *term.App) cobra.CompletionFunc {
	return term.CompleteFirst(a.CompleteFrom(func(ctx context.Context, s *term.Session) (names []string, err error) {
		answer, err := term.AskAll(ctx, s, term.Client.ListIdentities, &berthv1.ListIdentitiesRequest{}, term.Everything)
		return term.Prefixed("", answer.GetIdentities(), identityRef), err
	}))
}

func identityRef(i *berthv1.Identity) string { return i.GetKind() + "/" + i.GetName() }

func standing(i *berthv1.Identity) string {
	switch {
	case i.GetRevokedAt() != nil:
		return "revoked"
	case i.GetUnconfirmed() != "":
		return "unconfirmed"
	case len(i.GetKeys()) == 0:
		return "not-seen"
	}
	return "counts"
}

func identityListCommand(a *term.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List whose certificates count", Args: term.Arguments(0),
		Long: `List whose certificates count. "unconfirmed" came back with a backup, and may have been revoked since that was made:
it has no permission until you confirm it; else revoke it. "not-seen" is on record and has not called since records
began. PERMIT is what an operator may put onto hosts of clusters that permit it too; "unsaid" is all, as before it could
be said ('berth identity set').`,
		Example: `  berth identity list
  berth identity list --all -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListIdentities, &berthv1.ListIdentitiesRequest{All: all}, term.Everything)
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("identity/", answer.GetIdentities(), identityRef),
				Text: func(p *term.Page, wide bool) { identityTable(p, a, answer.GetIdentities(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were revoked")
	return cmd
}

func identityTable(p *term.Page, a *term.App, all []*berthv1.Identity, wide bool) {
	headings := []string{"IDENTITY", "STANDING", "VALID-UNTIL", "PERMIT"}
	if wide {
		headings = append(headings, "KEYS", "REVOKED-BY", "ID")
	}
	rows := make([][]string, 0, len(all))
	for _, i := range all {
		row := []string{identityRef(i), standing(i), until(a, i), cmp.Or(permitOf(i), term.None)}
		if wide {
			row = append(row, fmt.Sprint(len(i.GetKeys())), cmp.Or(i.GetRevokedBy(), term.None), i.GetId())
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

// permitOf is what an operator has now.
func permitOf(i *berthv1.Identity) string {
	if has := i.GetPermit(); has != "" && has != guard.None && i.GetUnconfirmed() != "" {
		return guard.None + " (" + has + " once confirmed)"
	}
	return i.GetPermit()
}

func until(a *term.App, i *berthv1.Identity) string {
	if i.GetValidUntil() == nil {
		return term.None
	}
	return day(a, i.GetValidUntil())
}

// day is the date of a time: certificates are good for many days.
func day(a *term.App, t *timestamppb.Timestamp) string {
	date, _, _ := strings.Cut(a.At(t), " ")
	return date
}

func identityShowCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one identity with its keys", Args: term.Arguments(1, "NAME"),
		Example: `  berth identity show operator/alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetIdentity, &berthv1.GetIdentityRequest{Identity: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"identity/" + identityRef(answer.GetIdentity())},
				Text: func(p *term.Page, _ bool) { identityText(p, a, answer.GetIdentity()) },
			})
		},
		ValidArgsFunction: identityNames(a),
	}
}

func identityText(p *term.Page, a *term.App, i *berthv1.Identity) {
	fields := [][2]string{
		{"identity", identityRef(i)}, {"ID", i.GetId()}, {"role", i.GetRole()}, {"standing", standing(i)}, {"created", a.At(i.GetCreatedAt())},
	}
	if i.GetPermit() != "" {
		fields = append(fields, [2]string{"permit", permitOf(i)})
	}
	if i.GetUnconfirmed() != "" {
		fields = append(fields, [2]string{"unconfirmed", i.GetUnconfirmed()})
	}
	if i.GetRevokedAt() != nil {
		fields = append(fields, [2]string{"revoked", a.At(i.GetRevokedAt()) + " by " + cmp.Or(i.GetRevokedBy(), term.None)},
			[2]string{"reason", cmp.Or(i.GetRevokedReason(), term.None)})
	}
	p.Fields("", fields...)
	rows := make([][]string, 0, len(i.GetKeys()))
	for _, key := range i.GetKeys() {
		rows = append(rows, []string{key.GetHash(), day(a, key.GetAddedAt()), day(a, key.GetValidUntil())})
	}
	if len(rows) > 0 {
		p.Blank()
		p.Table([]string{"KEY", "ADDED", "VALID-UNTIL"}, rows)
	}
}

func identitySetCommand(a *term.App) *cobra.Command {
	var permit string
	cmd := &cobra.Command{
		Use: "set NAME --permit LIST", Short: "Say what an operator may put onto hosts", Args: term.Arguments(1, "NAME"),
		Long: term.Wrap(`Say which permissions an operator has: all, none, or a list with commas between, instead of those that it had. They
let it give documents, paths, bridges and devices beyond what needs no permission, in clusters that permit the same
('berth cluster set NAME --permit LIST'). It counts from the next call on. An operator gives only what it has, and nothing to itself.
Whoever is root of a coordinator has all ('berth init', 'berth coordinator login').

Permissions: `+guard.Listed(guard.Permissions())+`. 'berth cluster set --help' says what each lets through.`, helpWidth),
		Example: `  berth identity set operator/alice --permit host-devices,host-paths
  berth identity set operator/alice --permit none`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if permit == "" {
				return term.Usagef(cmd, "--permit is missing: all, none, or a list of permissions")
			}
			answer, err := term.AskOnce(a, cmd, term.Client.SetIdentity, &berthv1.SetIdentityRequest{
				Identity: args[0], Permit: permit, RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			return told(a, cmd, answer, answer.GetIdentity(), "may put onto hosts: "+permitOf(answer.GetIdentity()))
		},
		ValidArgsFunction: identityNames(a),
	}
	permitFlag(cmd, &permit)
	return cmd
}

// helpWidth is how wide the words of help are where the terminal is not known.
const helpWidth = 118

// permitFlag is what an operator may put onto hosts.
func permitFlag(cmd *cobra.Command, permit *string) {
	cmd.Flags().StringVar(permit, "permit", "", "what it may put onto hosts: all, none, or a `LIST` of permissions with commas between")
	words := []string{guard.All, guard.None}
	for _, one := range guard.Permissions() {
		words = append(words, string(one))
	}
	term.Complete(cmd, "permit", term.CompleteFixed(words...))
}

func identityRevokeCommand(a *term.App) *cobra.Command {
	var (
		reason string
		yes    bool
	)
	cmd := &cobra.Command{
		Use: "revoke NAME", Short: "End all rights of an identity, within a second and for ever", Args: term.Arguments(1, "NAME"),
		Long: `End all rights of an identity. Its next call is refused by every coordinator, without a leader too, and what it has open
ends within a second. This is never taken back: who was revoked needs a new token. A coordinator is revoked by
'berth coordinator delete'. A node that is revoked and not removed is a node that does not report any more: its guests
run on, and count as those of a silent node.`,
		Example: `  berth identity revoke operator/alice --reason lost`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := term.Confirm(cmd, yes, fmt.Sprintf("Revoke %s for ever?", args[0])); err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.RevokeIdentity, &berthv1.RevokeIdentityRequest{
				Identity: args[0], Reason: reason, RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			return told(a, cmd, answer, answer.GetIdentity(), "revoked: its certificates count no more")
		},
		ValidArgsFunction: identityNames(a),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that the history keeps")
	term.Complete(cmd, "reason", cobra.NoFileCompletions)
	term.ConfirmFlag(cmd, &yes)
	return cmd
}

func identityConfirmCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "confirm NAME", Short: "Say that an identity out of a backup is good", Args: term.Arguments(1, "NAME"),
		Long: `Say that an identity which came back with a backup was not revoked since that was made. It counts before that, too,
but an operator has no permission and lets nobody in. Confirmed, it has the permissions that it had then, so it takes an
operator who has them, another one. 'berth identity set NAME --permit LIST' says first that it is to have others.`,
		Example: `  berth identity confirm node/hv3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.ConfirmIdentity, &berthv1.ConfirmIdentityRequest{
				Identity: args[0], RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			return told(a, cmd, answer, answer.GetIdentity(), "confirmed")
		},
		ValidArgsFunction: identityNames(a),
	}
}

// told says what has become of an identity.
func told(a *term.App, cmd *cobra.Command, answer proto.Message, identity *berthv1.Identity, what string) error {
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"identity/" + identityRef(identity)},
		Text: func(p *term.Page, _ bool) { p.Line("%s %s", identityRef(identity), what) },
	})
}
