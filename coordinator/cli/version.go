package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
)

func versionCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: term.Arguments(0),
		Long:    `Show the version of this program. 'berth status' shows that of the cluster.`,
		Example: `  berth version`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			value := map[string]string{"version": a.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			said := fmt.Sprintf("berth %s (%s, %s/%s)", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return a.PrintLocal(cmd, value, []string{a.Version}, func(p *term.Page, _ bool) { p.Line("%s", said) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}
