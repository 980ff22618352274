package resource

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

func customerSpreadCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "spread NAME", Short: "Tell how far a customer's VMs are apart, without naming where they are", Args: term.Arguments(1, "NAME"),
		Long: `Tell over how many zones, pods, clusters and nodes a customer's VMs are spread, of those that they may go to. Running
VMs count, and those on their way. Nothing is named, so that a customer can be told.`,
		Example: `  berth customer spread acme`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.Spread, &berthv1.SpreadRequest{Customer: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"customer/" + answer.GetCustomer()},
				Text: func(p *term.Page, _ bool) {
					p.Line("customer/%s: %s", answer.GetCustomer(), term.Count(int(answer.GetVms()), "VM"))
					p.Fields("  ",
						[2]string{"zones", levelText(answer.GetZones())}, [2]string{"pods", levelText(answer.GetPods())},
						[2]string{"clusters", levelText(answer.GetClusters())}, [2]string{"nodes", levelText(answer.GetNodes())},
					)
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(model.KindCustomer)),
	}
}

// levelText is how VMs are spread over things of one kind: "4 of 4, 2 to 3 VMs on each". Where there are none it is empty.
func levelText(l *berthv1.SpreadLevel) string {
	text := fmt.Sprintf("%d of %d", l.GetUsed(), l.GetTotal())
	switch {
	case l.GetTotal() == 0:
		return ""
	case l.GetUsed() == 0:
		return text
	case l.GetUsed() == 1:
		return fmt.Sprintf("%s, %s there", text, term.Count(int(l.GetMost()), "VM"))
	case l.GetMost() == l.GetLeast():
		return fmt.Sprintf("%s, %s on each", text, term.Count(int(l.GetMost()), "VM"))
	}
	return fmt.Sprintf("%s, %d to %d VMs on each", text, l.GetLeast(), l.GetMost())
}
