package cli

import (
	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func (a *app) diskGrowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "grow NAME SIZE", Short: "Make a disk larger, also under a running VM", Args: arguments(2, "NAME", "SIZE"),
		Long: `Make a disk larger that Berth has made, or is to make. A running VM sees the new size at once; what is on the disk has
to be grown in the guest. A disk never becomes smaller.`,
		Example: `  berth disk grow web1-root 40G`,
		RunE: func(cmd *cobra.Command, args []string) error {
			bytes, err := units.ParseBytes(args[1])
			if err != nil {
				return usage(cmd, err)
			}
			if bytes <= 0 {
				return Usagef(cmd, "SIZE %s: want more than nothing", args[1])
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GrowDisk,
				&berthv1.GrowDiskRequest{Disk: args[0], SizeBytes: int64(bytes), RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{resourceRef(answer.GetDisk())},
				text: func(p *page, _ bool) {
					p.line("%s has %v; grow what is on it in the guest", resourceRef(answer.GetDisk()), bytes)
				},
			})
		},
		ValidArgsFunction: first(a.resourceNames(cluster.KindDisk)),
	}
}
