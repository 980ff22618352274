package testbed

import (
	"context"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Twins starts a guest through Berth and a twin of it with virsh, and waits until both have booted: only then they let go of devices.
func (r *RaisedLab) Twins(ctx context.Context, host *lab.Host, vm, twin string, most int) error {
	spec := &berthv1.VMSpec{
		MemoryBytes: int64(160 * units.MiB), Vcpus: 1, Kernel: lab.Kernel, Initrd: lab.Initrd, Cmdline: lab.Cmdline,
		MaxVcpus: int32(most),
	}
	if _, err := r.StartOn(ctx, host.Name, vm, spec); err != nil {
		return err
	}
	xml, err := r.TwinOf(ctx, host, vm, twin)
	if err != nil {
		return err
	}
	if _, err := host.Virsh(ctx, "create", xml); err != nil {
		return err
	}
	for _, name := range []string{vm, twin} {
		err := Await(ctx, name+" to boot", 2*time.Minute, func(ctx context.Context) error {
			_, err := host.ReadTick(ctx, name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
