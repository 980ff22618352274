// Command berth-agent runs on a hypervisor, next to libvirtd, and carries out what the coordinator decides.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"berth/agent/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
