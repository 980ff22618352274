package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: arguments(0),
		Long:    `Show the version of this program. 'berth status' shows that of the cluster.`,
		Example: `  berth version`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			value := map[string]string{"version": a.version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			said := fmt.Sprintf("berth %s (%s, %s/%s)", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return a.printLocal(cmd, value, []string{a.version}, func(p *page, _ bool) { p.line("%s", said) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}
