package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// raise builds the lab from nothing.
func (l *Lab) raise(ctx context.Context) error {
	l.layOut(l.options.Coordinators, l.options.Hosts)
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	if err := errors.Join(l.build(authority), l.prepareGuests()); err != nil {
		return err
	}
	if err := l.boot(ctx); err != nil {
		return err
	}
	l.logf("%d hosts and %d coordinators have booted; guests run under %s", len(l.Hosts), len(l.Coordinators), l.VirtType)
	if len(l.Coordinators) > 0 && !l.options.Bare {
		if err := l.enrolHosts(ctx); err != nil {
			return err
		}
		l.logf("%d coordinators and %d nodes are ready", len(l.Coordinators), len(l.Hosts))
	}
	return l.leaveRecord()
}

// boot brings the machines and what runs on them up, as much as possible at once.
func (l *Lab) boot(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return l.raiseCoordinators(ctx) })
	for _, h := range l.Hosts {
		all.Go(func() error {
			if err := h.PowerOn(ctx); err != nil {
				return err
			}
			return h.StartLibvirtd(ctx)
		})
	}
	return all.Wait()
}

// raiseCoordinators brings up what the hosts do not need to boot: the operator, the answer which virtualisation guests
// can have, and the cluster without nodes.
func (l *Lab) raiseCoordinators(ctx context.Context) error {
	power, powering := errgroup.WithContext(ctx)
	power.Go(func() error { return l.Operator.PowerOn(powering) })
	for _, c := range l.Coordinators {
		power.Go(func() error { return c.PowerOn(powering) })
	}
	if err := power.Wait(); err != nil {
		return err
	}
	rest, ctx := errgroup.WithContext(ctx)
	rest.Go(func() (err error) {
		l.VirtType, err = l.probeOnce(ctx)
		return err
	})
	if len(l.Coordinators) > 0 && !l.options.Bare {
		rest.Go(func() error { return l.foundCluster(ctx) })
	}
	return rest.Wait()
}

// build makes the directories of all machines.
func (l *Lab) build(authority *authority) error {
	for _, dir := range []string{"shared/bin", "shared/serial", "shared/images"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	hosts := "127.0.0.1 localhost\n"
	for _, m := range l.Machines() {
		hosts += m.Address + " " + m.Name + "\n"
	}
	spec := machineSpec{Binaries: l.options.Binaries, Kind: kindOperator}
	if err := l.Operator.build(spec, hosts); err != nil {
		return err
	}
	spec.Kind = kindCoordinator
	for _, c := range l.Coordinators {
		if err := c.build(spec, hosts); err != nil {
			return err
		}
	}
	spec.Kind, spec.LocalPool = kindHost, l.options.LocalPool
	for i, h := range l.Hosts {
		if err := h.build(spec, hosts); err != nil {
			return err
		}
		memory := l.options.HostMemory[i%len(l.options.HostMemory)]
		if err := h.configure(authority, Shape{Memory: memory, Reserve: l.options.HostReserve}); err != nil {
			return err
		}
	}
	return nil
}
