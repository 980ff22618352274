// Demo shows the main job of Berth on a lab: virtual machines placed on the best of three hypervisors, a live
// migration, and a leader that dies. Everything is done with the real command line, and every step can be repeated by hand.
// KEEP=1 leaves the lab up.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"berth/integration/lab"
)

func main() {
	lab.Child()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	d := &demo{out: os.Stdout, keep: os.Getenv("KEEP") == "1"}
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo failed:", err)
		os.Exit(1)
	}
}
