// Command berth is the coordinator and the command line of Berth.
package main

import (
	"context"
	"os"
	"os/signal"

	"berth/coordinator/cli"
	"berth/coordinator/daemon"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return cli.Run(
		ctx, cli.Options{
			CoordinatorCommands: daemon.Commands(), SnapshotCommands: daemon.SnapshotCommands(), InitCommand: daemon.FirstCommand(),
		}, os.Args[1:], os.Stdin, os.Stdout, os.Stderr,
	)
}
