package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// raising is a lab on its way up.
type raising struct{ *Lab }

// raise builds the lab from nothing.
func (r raising) raise(ctx context.Context) error {
	r.layOut(r.options.Coordinators, r.options.Hosts)
	if err := errors.Join(r.build(), r.prepareGuests()); err != nil {
		return err
	}
	if len(r.Coordinators) == 0 || r.options.Bare {
		if err := r.certifyBare(); err != nil {
			return err
		}
	}
	if err := r.boot(ctx); err != nil {
		return err
	}
	r.logf("%d hosts and %d coordinators have booted; guests run under %s", len(r.Hosts), len(r.Coordinators), r.VirtType)
	if len(r.Coordinators) > 0 && !r.options.Bare {
		if err := r.enrolHosts(ctx); err != nil {
			return err
		}
		r.logf("%d coordinators and %d nodes are ready", len(r.Coordinators), len(r.Hosts))
	}
	return r.leaveRecord()
}

// boot brings the machines and what runs on them up, as much as possible at once.
func (r raising) boot(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return r.raiseCoordinators(ctx) })
	for _, h := range r.Hosts {
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
func (r raising) raiseCoordinators(ctx context.Context) error {
	power, powering := errgroup.WithContext(ctx)
	power.Go(func() error { return r.Operator.PowerOn(powering) })
	for _, c := range r.Coordinators {
		power.Go(func() error { return c.PowerOn(powering) })
	}
	if err := power.Wait(); err != nil {
		return err
	}
	rest, ctx := errgroup.WithContext(ctx)
	rest.Go(func() (err error) {
		r.VirtType, err = r.probeOnce(ctx)
		return err
	})
	if len(r.Coordinators) > 0 && !r.options.Bare {
		rest.Go(func() error { return r.foundCluster(ctx) })
	}
	return rest.Wait()
}

// build makes the directories of all machines.
func (r raising) build() error {
	for _, dir := range []string{"shared/bin", "shared/serial", "shared/images"} {
		if err := os.MkdirAll(filepath.Join(r.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	hosts := "127.0.0.1 localhost\n"
	for _, m := range r.Machines() {
		hosts += m.Address + " " + m.Name + "\n"
	}
	spec := machineSpec{Binaries: r.options.Binaries, Kind: kindOperator}
	if err := r.Operator.build(spec, hosts); err != nil {
		return err
	}
	spec.Kind = kindCoordinator
	for _, c := range r.Coordinators {
		if err := c.build(spec, hosts); err != nil {
			return err
		}
	}
	spec.Kind, spec.LocalPool = kindHost, r.options.LocalPool
	for i, h := range r.Hosts {
		if err := h.build(spec, hosts); err != nil {
			return err
		}
		memory := r.options.HostMemory[i%len(r.options.HostMemory)]
		if err := h.configure(Shape{Memory: memory, Reserve: r.options.HostReserve}); err != nil {
			return err
		}
	}
	return nil
}
