package vm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// placeFlags name the zone, the pod or the cluster that a VM is placed in.
type placeFlags struct{ zone, pod, cluster string }

var placeFlagNames = []string{"zone", "pod", "cluster"}

func (f *placeFlags) flags(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.zone, "zone", "", "any cluster of this `ZONE`, if its VDC does not say where it runs")
	flags.StringVar(&f.pod, "pod", "", "any cluster of this `POD`")
	flags.StringVar(&f.cluster, "cluster", "", "this `CLUSTER`; the default one if nothing says where")
	term.Complete(cmd, "zone", a.ResourceNames(model.KindZone))
	term.Complete(cmd, "pod", a.ResourceNames(model.KindPod))
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
}

// within is what the line says, as kind/name; empty: nothing.
func (f *placeFlags) within(cmd *cobra.Command) (string, error) {
	given := term.ChangedFlags(cmd, placeFlagNames)
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1:
		return "", term.Usagef(cmd, "%s and %s exclude each other: a VM runs in one of them", given[0], given[1])
	}
	kind := strings.TrimPrefix(given[0], "--")
	name := map[string]string{"zone": f.zone, "pod": f.pod, "cluster": f.cluster}[kind]
	if name == "" {
		return "", term.Usagef(cmd, "%s: a name is missing", given[0])
	}
	return kind + "/" + name, nil
}

// change puts the place that stands on the line into a change, and takes it away where it is to go.
func (f *placeFlags) change(cmd *cobra.Command, into *berthv1.VMChange, unset []string) error {
	within, err := f.within(cmd)
	if err != nil {
		return err
	}
	if gone := slices.ContainsFunc(unset, func(flag string) bool { return slices.Contains(placeFlagNames, flag) }); gone || within != "" {
		into.Within = &within
	}
	return nil
}

// rootFlags describe the disk that is made with a new VM. Its image is specFlags'.
type rootFlags struct {
	size, pool string
	bus        term.StringFlag
	keep       bool
}

var (
	rootFlagNames = []string{"root-size", "pool", "keep-root", "root-bus"}
	buses         = []string{"virtio", "sata", "scsi"}
)

func (f *rootFlags) flags(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.bus.Word = "BUS"
	flags.StringVar(
		&f.size, "root-size", "", "`SIZE` of a first disk that is made with it, for instance 20G; as large as its image if left out",
	)
	flags.StringVar(&f.pool, "pool", "", "make the first disk in this `POOL` and no other one")
	flags.BoolVar(&f.keep, "keep-root", false, "the first disk stays when the VM is deleted")
	flags.Var(&f.bus, "root-bus", "of the first disk: virtio, sata or scsi (default virtio)")
	term.Complete(cmd, "root-size", cobra.NoFileCompletions)
	term.Complete(cmd, "pool", a.ResourceNames(model.KindPool))
	term.Complete(cmd, "root-bus", term.CompleteFixed(buses...))
}

// disk is the disk that is made with a new VM; nil: none is. The image is the name of one, or empty.
func (f *rootFlags) disk(cmd *cobra.Command, image string) (*berthv1.RootDisk, error) {
	given := term.ChangedFlags(cmd, rootFlagNames)
	switch {
	case image == "" && len(given) == 0:
		return nil, nil
	case image == "" && f.size == "":
		return nil, term.Usagef(cmd, "%s: give the --root-size of the disk that is made with the VM, or the name of its --image", given[0])
	case cmd.Flags().Changed("root-bus") && !slices.Contains(buses, f.bus.Text):
		return nil, term.Usagef(cmd, "--root-bus %s: use %s", f.bus.Text, strings.Join(buses, ", "))
	}
	root := &berthv1.RootDisk{Image: image, Pool: f.pool, Bus: f.bus.Text, Keep: f.keep}
	if f.size != "" {
		size, err := units.ParseBytes(f.size)
		if err != nil {
			return nil, term.Usagef(cmd, "--root-size: %w", err)
		}
		if size < model.MinVolume || size > model.MaxVolume {
			return nil, term.Usagef(cmd, "--root-size %s: want %v to %v", f.size, model.MinVolume, model.MaxVolume)
		}
		root.SizeBytes = int64(size)
	}
	return root, nil
}

// volumeRows are the disks of a VM that are volumes or are to become some.
func volumeRows(vm *berthv1.VM) [][2]string {
	var rows [][2]string
	for _, disk := range vm.GetVolumes() {
		text := disk.GetDisk() + ": " + units.Bytes(disk.GetCapacityBytes()).String()
		switch {
		case disk.GetPool() == "":
			text += ", made at the first start"
		case disk.GetNode() == "":
			text += " in pool " + disk.GetPool()
		default:
			text += fmt.Sprintf(" in pool %s on %s", disk.GetPool(), disk.GetNode())
		}
		if is := disk.GetShrunkBytes(); is > 0 {
			text += fmt.Sprintf("; its guest has %s: somebody has made it smaller beside Berth ('berth vm accept %s' keeps it so, 'berth disk grow "+
				"%s %d' makes it as large again)", units.Bytes(is), vm.GetName(), disk.GetDisk(), disk.GetCapacityBytes())
		}
		if disk.GetImage() != "" {
			text += ", a copy of " + disk.GetImage()
		}
		if disk.GetKeep() {
			text += ", kept when the VM is deleted"
		}
		rows = append(rows, [2]string{"volume", text})
	}
	return rows
}
