package resource

import (
	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func diskGrowCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "grow NAME SIZE", Short: "Make a disk larger, also under a running VM", Args: term.Arguments(2, "NAME", "SIZE"),
		Long: `Make a disk larger that Berth has made, or is to make. A running VM sees the new size at once; what is on the disk has
to be grown in the guest. A disk never becomes smaller.`,
		Example: `  berth disk grow web1-root 40G`,
		RunE: func(cmd *cobra.Command, args []string) error {
			bytes, err := units.ParseBytes(args[1])
			if err != nil {
				return term.Usage(cmd, err)
			}
			if bytes <= 0 {
				return term.Usagef(cmd, "SIZE %s: want more than nothing", args[1])
			}
			answer, err := term.AskOnce(a, cmd, term.Client.GrowDisk,
				&berthv1.GrowDiskRequest{Disk: args[0], SizeBytes: int64(bytes), RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{term.ResourceRef(answer.GetDisk())},
				Text: func(p *term.Page, _ bool) {
					p.Line("%s has %v; grow what is on it in the guest", term.ResourceRef(answer.GetDisk()), bytes)
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(model.KindDisk)),
	}
}
