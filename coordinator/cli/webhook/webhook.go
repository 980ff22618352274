package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Command is the noun webhook.
func Command(a *term.App) *cobra.Command {
	return term.Noun("webhook COMMAND", "Send what happens to other programs", `
The leader sends events and the ends of operations to the URLs that are given here, as signed JSON by POST. What is
about one VM or node is sent in order, at least once: what comes twice has the same ID. What a receiver does not take is
tried again for a day, and kept on a list then.`,
		addCommand(a), listCommand(a), showCommand(a), testCommand(a), deleteCommand(a), deadCommand(a), retryCommand(a))
}

func addCommand(a *term.App) *cobra.Command {
	request := &berthv1.AddWebhookRequest{}
	var ca, secret string
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Send what happens from now on to a URL", Args: term.Arguments(2, "NAME", "URL"),
		Long: `Send what happens from now on to a URL. The secret that deliveries are signed with is printed here and nowhere else: the
receiver needs it. The headers webhook-id, webhook-timestamp and webhook-signature are those of the Standard Webhooks,
for which most languages have a library. Redirections are not followed, and addresses of the coordinator's own machine
or link are refused, as are those that clouds keep for their metadata.`,
		Example: `  berth webhook add tickets https://tickets.example.com/berth
  berth webhook add pager https://pager.example.com/in --kind 'node.*' --kind vm.lost
  berth webhook add own https://hooks.internal/berth --ca ca.pem --secret-file secret`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Name, request.Url, request.RequestId = args[0], args[1], term.RequestID()
			if ca != "" {
				text, err := os.ReadFile(ca)
				if err != nil {
					return term.Failf(rpc.Invalid, "name a file that can be read", "--ca: %w", err)
				}
				request.CaPem = string(text)
			}
			request.Secret = newSecret()
			if secret != "" {
				text, err := os.ReadFile(secret)
				if err != nil {
					return term.Failf(rpc.Invalid, "name a file that can be read", "--secret-file: %w", err)
				}
				request.Secret = strings.TrimSpace(string(text))
			}
			answer, err := term.AskOnce(a, cmd, term.Client.AddWebhook, request)
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"webhook/" + answer.GetWebhook().GetName()},
				Text: func(p *term.Page, _ bool) {
					p.Line("webhook %s is added: try it with 'berth webhook test %s'", args[0], args[0])
					if secret == "" {
						p.Line("secret: %s", answer.GetSecret())
					}
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&request.Kinds, "kind", nil, "only what is of `KIND`, such as vm.started, 'node.*' or 'operation.*'; may be repeated")
	flags.StringVar(&ca, "ca", "", "`FILE` with the certificates of the receiver's authority, PEM, if it has one of its own")
	flags.StringVar(&secret, "secret-file", "", "`FILE` with the secret: base64 of 24 to 64 bytes")
	flags.BoolVar(&request.AllowHttp, "allow-http", false, "the URL may begin with http: everybody on the way can read what is sent")
	flags.BoolVar(&request.AllowLocal, "allow-local", false, "the receiver may be on the coordinator's own machine or link")
	term.Complete(cmd, "kind", cobra.NoFileCompletions)
	term.Complete(cmd, "ca", term.CompleteFiles)
	term.Complete(cmd, "secret-file", term.CompleteFiles)
	return cmd
}

// newSecret is made here, so that a request that is sent again has the same.
func newSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the process instead
	return "whsec_" + base64.StdEncoding.EncodeToString(bits[:])
}

func listCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List webhooks, with how the sending goes", Args: term.Arguments(0),
		Long: `List webhooks, with how the sending goes since the present leader leads. WAITING is what was read and not taken yet.`,
		Example: `  berth webhook list
  berth webhook list -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListWebhooks, &berthv1.ListWebhooksRequest{}, term.Everything)
			if err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(answer.GetWebhooks()), "no webhooks")
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("webhook/", answer.GetWebhooks(), (*berthv1.Webhook).GetName),
				Text: func(p *term.Page, wide bool) {
					headings := []string{"NAME", "STATE", "TAKEN", "WAITING", "DEAD", "URL"}
					if wide {
						headings = append(headings, "KINDS", "BEHIND", "ADDED-BY")
					}
					rows := make([][]string, 0, len(answer.GetWebhooks()))
					for _, w := range answer.GetWebhooks() {
						row := []string{
							w.GetName(), state(w), strconv.FormatUint(w.GetTaken(), 10), strconv.Itoa(int(w.GetWaiting())), strconv.Itoa(int(w.GetDead())),
							w.GetUrl(),
						}
						if wide {
							row = append(row, kinds(w), strconv.FormatUint(w.GetBehind(), 10), w.GetCreatedBy())
						}
						rows = append(rows, row)
					}
					p.Table(headings, rows)
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func state(w *berthv1.Webhook) string {
	switch {
	case w.GetFailingSince() != nil:
		return "failing"
	case w.GetProblem() != "":
		return "stopped"
	}
	return "ok"
}

func kinds(w *berthv1.Webhook) string { return cmp.Or(strings.Join(w.GetKinds(), ","), "all") }

func showCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a webhook, with how the sending goes", Args: term.Arguments(1, "NAME"),
		Long:    `Show a webhook, with how the sending goes since the present leader leads. The secret is never shown.`,
		Example: `  berth webhook show tickets`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetWebhook, &berthv1.GetWebhookRequest{Name: plain(args[0])})
			if err != nil {
				return err
			}
			w := answer.GetWebhook()
			return a.Print(cmd, term.Result{Message: answer, Names: []string{"webhook/" + w.GetName()}, Text: func(p *term.Page, _ bool) {
				fields := [][2]string{
					{"name", w.GetName()},
					{"url", w.GetUrl()},
					{"kinds", kinds(w)},
					{"state", state(w)},
					{"problem", w.GetProblem()},
				}
				if w.GetFailingSince() != nil {
					fields = append(fields, [2]string{"failing since", a.At(w.GetFailingSince())})
				}
				fields = append(fields, [][2]string{
					{"taken", strconv.FormatUint(w.GetTaken(), 10)},
					{"waiting", strconv.Itoa(int(w.GetWaiting()))},
					{"given up", fmt.Sprintf("%d on the list, %d no more", w.GetDead(), w.GetDropped())},
					{"lost entries", strconv.FormatUint(w.GetLost(), 10)},
					{"on record", fmt.Sprintf("all up to entry %d of the log", w.GetAfter())},
					{"added", fmt.Sprintf("by %s, %s", w.GetCreatedBy(), a.At(w.GetCreatedAt()))},
				}...)
				p.Fields("", fields...)
			}})
		},
		ValidArgsFunction: names(a),
	}
}

func testCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Send something that did not happen, and tell what the receiver says", Args: term.Arguments(1, "NAME"),
		Long: `Send something that did not happen, of kind webhook.test, once and whatever the webhook's kinds are. It tells what the
receiver has answered; the exit code is 1 if that was not one of the 200s.`,
		Example: `  berth webhook test tickets`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.TestWebhook, &berthv1.TestWebhookRequest{Name: plain(args[0])})
			if err != nil {
				return err
			}
			if !answer.GetTaken() {
				return term.Failf(rpc.Unreachable, "mend the receiver, or delete the webhook and add it anew",
					"the receiver of webhook %s has not taken the test: %s", args[0], answer.GetProblem())
			}
			return a.Print(cmd, term.Result{Message: answer, Names: []string{"webhook/" + plain(args[0])}, Text: func(p *term.Page, _ bool) {
				p.Line("taken after %.2g s: %s", answer.GetSeconds(), answer.GetDeliveryId())
			}})
		},
		ValidArgsFunction: names(a),
	}
}

func deleteCommand(a *term.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Send nothing more to a URL", Args: term.Arguments(1, "NAME"),
		Long:    `Send nothing more to a URL. What was not taken yet is never sent, and the list of what was given up goes.`,
		Example: `  berth webhook delete tickets --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := plain(args[0])
			if err := term.Confirm(cmd, yes, fmt.Sprintf("Delete webhook/%s, with what it has not sent yet?", name)); err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.DeleteWebhook, &berthv1.DeleteWebhookRequest{Name: name, RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{Message: answer, Names: []string{"webhook/" + name}, Text: func(p *term.Page, _ bool) {
				p.Line("webhook %s is deleted", name)
			}})
		},
		ValidArgsFunction: names(a),
	}
	term.ConfirmFlag(cmd, &yes)
	return cmd
}

func deadCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "dead NAME", Short: "List what the receiver has not taken", Args: term.Arguments(1, "NAME"),
		Long: `List what the receiver has not taken and what is not tried any more, with the reason: the last 200 of them. That is what
was refused eight times while the receiver took other deliveries, and what was tried for a day.`,
		Example: `  berth webhook dead tickets`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetWebhook, &berthv1.GetWebhookRequest{Name: plain(args[0])})
			if err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(answer.GetDead()), "nothing was given up")
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("", answer.GetDead(), (*berthv1.DeadDelivery).GetId),
				Text: func(p *term.Page, _ bool) {
					rows := make([][]string, 0, len(answer.GetDead()))
					for _, d := range answer.GetDead() {
						reason := d.GetReason()
						if d.GetRetrying() {
							reason = "tried again; before: " + reason
						}
						rows = append(rows, []string{a.At(d.GetAt()), d.GetId(), d.GetKind(), d.GetSubject(), strconv.Itoa(int(d.GetTries())), reason})
					}
					p.Table([]string{"GIVEN-UP", "ID", "KIND", "SUBJECT", "TRIES", "REASON"}, rows)
				},
			})
		},
		ValidArgsFunction: names(a),
	}
}

func retryCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "retry NAME [ID...]", Short: "Try again what was given up", Args: term.Arguments(1, "NAME", "ID..."),
		Long: `Try again what was given up: all of it, or the deliveries with these IDs. They are read from the history, which has them
for 90 days, and come after what has been sent since. What is not taken within three tries is given up again.`,
		Example: `  berth webhook retry tickets
  berth webhook retry tickets msg_0123456789abcdef01234567`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.RetryDeliveries, &berthv1.RetryDeliveriesRequest{
				Name: plain(args[0]), Ids: args[1:], RequestId: term.RequestID(),
			})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{Message: answer, Names: []string{"webhook/" + plain(args[0])}, Text: func(p *term.Page, _ bool) {
				p.Line("deliveries that are tried again: %d", answer.GetRetried())
			}})
		},
		ValidArgsFunction: names(a),
	}
}

func plain(name string) string { return strings.TrimPrefix(name, "webhook/") }

func names(a *term.App) cobra.CompletionFunc {
	return term.CompleteFirst(a.CompleteFrom(func(ctx context.Context, s *term.Session) ([]string, error) {
		answer, err := term.AskAll(ctx, s, term.Client.ListWebhooks, &berthv1.ListWebhooksRequest{}, term.Everything)
		return term.Prefixed("", answer.GetWebhooks(), (*berthv1.Webhook).GetName), err
	}))
}
