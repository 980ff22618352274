// Command acceptance proves the packages: it boots three system containers with a real systemd, installs the coordinator
// and two agents with the package managers of their distributions, follows the steps of the README, and does with the
// installed command line what the product is for. Then all machines lose their power at once. It prints every command, and
// it leaves nothing behind but a cached base image. What a killed run leaves, the next one takes down.
//
// It needs root, debootstrap, systemd-nspawn and ip. `make acceptance` builds the packages and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	packages := flag.String("packages", "dist", "folder with the packages")
	cache := flag.String("cache", "/var/cache/berth-acceptance", "folder that keeps the base image")
	keep := flag.Bool("keep", false, "on a failure, wait for Ctrl-C before taking the machines down")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	start := time.Now()
	if err := run(ctx, *packages, *cache, *keep); err != nil {
		fmt.Fprintf(os.Stderr, "acceptance: failed after %.0f s: %v\n", time.Since(start).Seconds(), err)
		os.Exit(1)
	}
	fmt.Printf(
		"acceptance: packages installed, cluster joined, VM started, migrated to the best node, started again after a power cut "+
			"and left alone by removal, in %.0f s\n",
		time.Since(start).Seconds(),
	)
}

func run(ctx context.Context, packages, cache string, keep bool) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("needs root")
	}
	if err := sweep(); err != nil {
		return err
	}
	var undo cleanup
	defer func() {
		if err != nil && keep && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "failed: %v\nThe machines stay up. Ctrl-C takes them down.\n", err)
			<-ctx.Done()
		}
		err = errors.Join(err, undo.run())
	}()
	image, err := baseImage(ctx, cache)
	if err != nil {
		return err
	}
	site, err := raise(ctx, image, &undo)
	if err != nil {
		return err
	}
	if err := prove(ctx, site, packages); err != nil {
		return err
	}
	fmt.Printf("\nthe first run: 5 commands on the coordinator, none on the hypervisors, %.0f s\n", site.first.Seconds())
	return nil
}

// cleanup is what has been set up, to be taken down in the reverse order, whatever fails on the way.
type cleanup []func() error

func (c *cleanup) add(f func() error) { *c = append(*c, f) }

func (c *cleanup) run() error {
	var failed []error
	for _, f := range slices.Backward(*c) {
		failed = append(failed, f())
	}
	*c = nil
	return errors.Join(failed...)
}

func step(format string, arguments ...any) { fmt.Printf("\n== "+format+"\n", arguments...) }
