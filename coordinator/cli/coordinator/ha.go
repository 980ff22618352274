package coordinator

import (
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// HACommand is the noun ha.
func HACommand(a *term.App) *cobra.Command {
	return term.Noun("ha COMMAND", "Pause high availability, and let it go on", `
High availability fences silent nodes and starts their VMs elsewhere. While somebody works on the network or on the
coordinators it can be paused: then nothing is fenced or restarted by itself, and no watchdog resets a node.`,
		pauseCommand(a), resumeCommand(a))
}

func pauseCommand(a *term.App) *cobra.Command {
	var reason string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "pause", Short: "Fence and restart nothing by itself for a while", Args: term.Arguments(0),
		Long: `Fence and restart nothing by itself for a while. Watchdogs are disarmed within about a minute: 'berth status' counts the
armed ones; leave a leader running until then. What somebody asks for by hand is still done: 'berth node fence',
'berth vm start'.`,
		Example: `  berth ha pause --for 2h --reason "new switches"
  berth ha pause --reason "the coordinators move"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return term.Usagef(cmd, "--reason is missing: say why, for everybody who looks at the status")
			}
			return pause(a, cmd, &berthv1.PauseHARequest{On: true, Reason: reason, Seconds: lasts.Seconds(), RequestId: term.RequestID()})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that others see")
	cmd.Flags().DurationVar(&lasts, "for", 0, "`DURATION` after which it goes on by itself; if left out, when somebody resumes it")
	for _, flag := range []string{"reason", "for"} {
		term.Complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func resumeCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "Fence and restart by itself again", Args: term.Arguments(0),
		Example: `  berth ha resume`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return pause(a, cmd, &berthv1.PauseHARequest{RequestId: term.RequestID()})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func pause(a *term.App, cmd *cobra.Command, request *berthv1.PauseHARequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.PauseHA, request)
	if err != nil {
		return err
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"cluster"},
		Text: func(p *term.Page, _ bool) {
			is := answer.GetPause()
			switch {
			case is == nil:
				p.Line("high availability is at work: silent nodes are fenced, and their VMs restarted")
			case is.GetUntil() == nil:
				p.Line("high availability is paused until 'berth ha resume': %s", is.GetReason())
			default:
				p.Line("high availability is paused until %s: %s", a.At(is.GetUntil()), is.GetReason())
			}
		},
	})
}
