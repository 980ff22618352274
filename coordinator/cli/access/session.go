package access

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// ConsoleCommand is the command console.
func ConsoleCommand(a *term.App) *cobra.Command {
	var readOnly, printOnly bool
	cmd := &cobra.Command{
		Use: "console", Short: "Open the console in a browser", Args: term.Arguments(0),
		Long: `Open the console in a browser: an address is made that is good once, for a minute, and opens a session with your rights.
The session ends after 12 hours, with 'berth session revoke', and at once when your own certificate is revoked. Without
a display the address is printed: whoever opens it first is you. A browser that does not trust the cluster's
authority asks before it shows anything; compare the fingerprint that is printed.`,
		Example: `  berth console
  berth console --read-only --print`,
		RunE: func(cmd *cobra.Command, _ []string) error { return openConsole(a, cmd, readOnly, printOnly) },

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "a session in which nothing can be changed")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address, also where there is a display")
	return cmd
}

func openConsole(a *term.App, cmd *cobra.Command, readOnly, printOnly bool) error {
	answer, err := term.AskOnce(a, cmd, term.Client.OfferSession, &berthv1.OfferSessionRequest{ReadOnly: readOnly})
	if err != nil {
		return err
	}
	if !printOnly && !a.Format.Structured() && a.Env("DISPLAY")+a.Env("WAYLAND_DISPLAY") != "" {
		if err := browse(cmd.Context(), a, answer.GetAddress()); err == nil {
			a.Note(cmd, "berth: a browser opens the console; its certificate has the fingerprint "+answer.GetFingerprint())
			return nil
		}
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"session/" + answer.GetSession().GetId()},
		Text: func(p *term.Page, _ bool) {
			p.Line("%s", answer.GetAddress())
			p.Line("good once, until %s; the certificate there has the fingerprint", a.At(answer.GetSession().GetUntil()))
			p.Line("%s", answer.GetFingerprint())
		},
	})
}

// browse has the desktop show an address. Other accounts see what is on a command line, so the address stands in a file that only this
// one reads, and that leads on.
func browse(ctx context.Context, a *term.App, address string) error {
	folder := cmp.Or(a.Env("XDG_RUNTIME_DIR"), a.Env("HOME"))
	if !filepath.IsAbs(folder) {
		return os.ErrNotExist
	}
	file := filepath.Join(folder, "berth-console.html")
	page := `<!doctype html><meta http-equiv="refresh" content="0;url=` + html.EscapeString(address) + `">`
	_ = os.Remove(file) // one of an earlier time, whoever could read that
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return err
	}
	return exec.CommandContext(ctx, "xdg-open", file).Run()
}

// SessionCommand is the noun session.
func SessionCommand(a *term.App) *cobra.Command {
	return term.Noun("session COMMAND", "See and end sessions of the console", `
A session is what a browser has instead of a certificate. 'berth console' makes one: with the rights of the operator who
asks, or to look only. It ends after 12 hours, with its operator's certificate, and when somebody revokes it.`,
		sessionListCommand(a), sessionRevokeCommand(a))
}

func sessionListCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List sessions that are open, and links that nobody has used yet", Args: term.Arguments(0),
		Example: `  berth session list`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListSessions, &berthv1.ListSessionsRequest{}, term.Everything)
			if err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(answer.GetSessions()), "no sessions")
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("session/", answer.GetSessions(), (*berthv1.Session).GetId),
				Text: func(p *term.Page, wide bool) { sessionTable(p, a, answer.GetSessions(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func sessionTable(p *term.Page, a *term.App, all []*berthv1.Session, wide bool) {
	headings := []string{"ID", "OPERATOR", "ROLE", "OPENED", "UNTIL", "FROM"}
	if wide {
		headings = append(headings, "BROWSER")
	}
	rows := make([][]string, 0, len(all))
	for _, one := range all {
		row := []string{
			one.GetId(), one.GetOperator(), one.GetRole(), a.At(one.GetOpenedAt()), a.At(one.GetUntil()), cmp.Or(one.GetFrom(), term.None),
		}
		if wide {
			row = append(row, cmp.Or(one.GetBrowser(), term.None))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

func sessionRevokeCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a session, or a link, at once", Args: term.Arguments(1, "ID"),
		Long: `End a session, or a link that nobody has used yet, at once: its browser has to log in again. What was done in it stays
done. 'berth identity revoke' ends all sessions of an operator, with his certificate.`,
		Example: `  berth session revoke 3nqk7d2m0c1aa`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.RevokeSession, &berthv1.RevokeSessionRequest{
				Id: strings.TrimPrefix(args[0], "session/"), RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			one := answer.GetSession()
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"session/" + one.GetId()},
				Text: func(p *term.Page, _ bool) {
					p.Line("%s", fmt.Sprintf("the session %s of operator/%s has ended", one.GetId(), one.GetOperator()))
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.CompleteFrom(func(ctx context.Context, s *term.Session) (names []string, err error) {
			answer, err := term.AskAll(ctx, s, term.Client.ListSessions, &berthv1.ListSessionsRequest{}, term.Everything)
			return term.Prefixed("", answer.GetSessions(), (*berthv1.Session).GetId), err
		})),
	}
}
