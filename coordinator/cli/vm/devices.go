package vm

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func attachCommand(a *term.App) *cobra.Command {
	return term.Noun("attach COMMAND", "Give VMs a disk or a network interface", `
Give VMs a disk or a network interface: their guests, if they run, and their next start.`,
		attachDiskCommand(a), attachNICCommand(a))
}

func detachCommand(a *term.App) *cobra.Command {
	return term.Noun("detach COMMAND", "Take a disk or a network interface from VMs", `
Take a disk or a network interface from VMs: from their guests, if they run, and from their next start.`,
		detachDiskCommand(a), detachNICCommand(a))
}

func mediaCommand(a *term.App) *cobra.Command {
	return term.Noun("media COMMAND", "Change what is in a VM's drive for media", `
Change what is in a VM's drive for media: as its guest sees it, if it runs, and at its next start on the same node.`,
		insertCommand(a), ejectCommand(a))
}

// deviceCommand is a command that changes one device of VMs. Flag is what says which, and has to be given if it is needed.
func deviceCommand(
	a *term.App, cmd *cobra.Command, words deed, flag, usage string, needed bool, fill func(*berthv1.ActOnVMsRequest, string) error,
) *cobra.Command {
	var value string
	flags := &acting{}
	cmd.Args, cmd.ValidArgsFunction = someNames, a.VMNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if needed && value == "" {
			return term.Usagef(cmd, "--%s is missing", flag)
		}
		request := &berthv1.ActOnVMsRequest{Vms: args}
		if err := fill(request, value); err != nil {
			return term.Usagef(cmd, "--%s %s: %w", flag, value, err)
		}
		return flags.act(a, cmd, request, words)
	}
	cmd.Flags().StringVar(&value, flag, "", usage)
	term.Complete(cmd, flag, cobra.NoFileCompletions)
	flags.flags(cmd)
	flags.choosing.flag(cmd)
	return cmd
}

func attachDiskCommand(a *term.App) *cobra.Command {
	var (
		source string
		made   newDiskFlags
	)
	flags := &acting{}
	cmd := &cobra.Command{
		Use: "disk NAME...", Short: "Give VMs a new disk, or one that is there",
		Long: `Give VMs a disk: their guests, if they run, and their next start. It gets the first target that is free.
With --size each VM gets a disk of its own that is made for it, empty, in a storage pool of its node: 'berth disk list'
has it, and it goes when the VM is deleted, unless it is to be kept. If it cannot be attached nothing of it is left. The
disk of a VM that does not run is made by its next start.
With --disk it is one that is there: a file or a block device of the node, by its path, or a volume of a pool. A disk
that another VM has is refused, unless it is read-only. A VM with such a disk that is in no shared pool stays on its
node: --dry-run says so.`,
		Example: `  berth vm attach disk web1 --size 20G --pool fast
  berth vm attach disk --selector label=web --size 20G --pool fast --dry-run
  berth vm attach disk web1 --disk /srv/images/data.qcow2
  berth vm attach disk web1 --disk fast/data.qcow2,bus=scsi --dry-run`,
		Args: someNames, ValidArgsFunction: a.VMNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			action := &berthv1.AttachAction{}
			given := term.ChangedFlags(cmd, newDiskFlagNames)
			switch {
			case source == "" && made.size == "":
				return term.Usagef(cmd, "give the --size of a new disk, or a --disk that is there")
			case source != "" && len(given) > 0:
				return term.Usagef(cmd, "--disk is one that is there, and %s of a new one: leave one out", given[0])
			case source != "":
				disk, err := parseSource(source)
				if err != nil {
					return term.Usagef(cmd, "--disk %s: %w", source, err)
				}
				action.Device = &berthv1.AttachAction_Disk{Disk: disk}
			default:
				disk, err := made.disk(cmd, flags.choosing.on() || len(args) > 1)
				if err != nil {
					return err
				}
				action.Device = &berthv1.AttachAction_NewDisk{NewDisk: disk}
			}
			return flags.act(a, cmd, &berthv1.ActOnVMsRequest{Vms: args, Action: &berthv1.ActOnVMsRequest_Attach{Attach: action}}, "attached")
		},
	}
	cmd.Flags().StringVar(
		&source, "disk", "", "`SOURCE`: a path or POOL/VOLUME, then [,format=raw|qcow2][,bus=virtio|sata|scsi][,readonly]",
	)
	term.Complete(cmd, "disk", cobra.NoFileCompletions)
	made.flags(a, cmd)
	flags.flags(cmd)
	flags.choosing.flag(cmd)
	return cmd
}

// newDiskFlags describe a disk that is made for a VM.
type newDiskFlags struct {
	size, pool, name string
	bus              term.StringFlag
	keep             bool
}

var newDiskFlagNames = []string{"size", "pool", "name", "bus", "keep"}

func (f *newDiskFlags) flags(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.bus.Word = "BUS"
	flags.StringVar(&f.size, "size", "", "`SIZE` of a new disk, for instance 20G")
	flags.StringVar(&f.pool, "pool", "", "`POOL` that the new disk is made in")
	flags.StringVar(&f.name, "name", "", "`NAME` of the new disk of one VM (default the first that is free: VM-disk1, VM-disk2 ...)")
	flags.Var(&f.bus, "bus", "of the new disk: virtio, sata or scsi (default virtio)")
	flags.BoolVar(&f.keep, "keep", false, "the new disk stays when its VM is deleted")
	term.Complete(cmd, "size", cobra.NoFileCompletions)
	term.Complete(cmd, "pool", a.ResourceNames(model.KindPool))
	term.Complete(cmd, "name", cobra.NoFileCompletions)
	term.Complete(cmd, "bus", term.CompleteFixed(buses...))
}

// disk is the new disk that the flags describe, for one VM or for several.
func (f *newDiskFlags) disk(cmd *cobra.Command, several bool) (*berthv1.NewDisk, error) {
	size, err := units.ParseBytes(f.size)
	switch {
	case err != nil:
		return nil, term.Usagef(cmd, "--size: %w", err)
	case size < model.MinVolume || size > model.MaxVolume:
		return nil, term.Usagef(cmd, "--size %s: want %v to %v", f.size, model.MinVolume, model.MaxVolume)
	case f.pool == "":
		return nil, term.Usagef(cmd, "--pool is missing: 'berth pool list' shows those that there are")
	case f.name != "" && several:
		return nil, term.Usagef(cmd, "--name %s: each of several VMs gets a disk of its own, leave the name out", f.name)
	case cmd.Flags().Changed("bus") && !slices.Contains(buses, f.bus.Text):
		return nil, term.Usagef(cmd, "--bus %s: use %s", f.bus.Text, strings.Join(buses, ", "))
	}
	return &berthv1.NewDisk{Name: f.name, Pool: f.pool, SizeBytes: int64(size), Bus: f.bus.Text, Keep: f.keep}, nil
}

func attachNICCommand(a *term.App) *cobra.Command {
	return deviceCommand(a, &cobra.Command{
		Use: "nic NAME...", Short: "Give VMs a network interface",
		Long: `Give VMs a network interface in a network, with the first MAC address of their own that is free.`,
		Example: `  berth vm attach nic web1 --network default
  berth vm attach nic --selector customer=acme --network default`,
	}, "attached", "network", "`NETWORK`: a libvirt network's name, or bridge:NAME", true,
		func(r *berthv1.ActOnVMsRequest, text string) error {
			r.Action = &berthv1.ActOnVMsRequest_Attach{Attach: &berthv1.AttachAction{Device: &berthv1.AttachAction_Network{Network: text}}}
			return nil
		})
}

func detachDiskCommand(a *term.App) *cobra.Command {
	return deviceCommand(a, &cobra.Command{
		Use: "disk NAME...", Short: "Take a disk from VMs",
		Long:    `Take a disk from VMs. What is on it stays. A guest that runs has half a minute to let go of it.`,
		Example: `  berth vm detach disk web1 --target vdb`,
	}, "detached", "target", "`TARGET` of the disk, as 'berth vm show' has it: vdb", true, detaching)
}

func detachNICCommand(a *term.App) *cobra.Command {
	return deviceCommand(a, &cobra.Command{
		Use: "nic NAME...", Short: "Take a network interface from VMs",
		Long:    `Take a network interface from VMs. A guest that runs has half a minute to let go of it.`,
		Example: `  berth vm detach nic web1 --mac 52:54:00:12:34:56`,
	}, "detached", "mac", "`ADDRESS` of the interface", true, detaching)
}

func detaching(r *berthv1.ActOnVMsRequest, device string) error {
	r.Action = &berthv1.ActOnVMsRequest_Detach{Detach: &berthv1.DetachAction{Device: device}}
	return nil
}

func insertCommand(a *term.App) *cobra.Command {
	var target string
	cmd := deviceCommand(a, &cobra.Command{
		Use: "insert NAME...", Short: "Put an ISO image into the drive of VMs",
		Long: `Put an ISO image into the drive of VMs, by its path on their nodes or as a volume of a pool, in place of what is in it.
While other nodes are not known to have it the VM stays where it is: 'berth vm media eject' lets it go.`,
		Example: `  berth vm media insert web1 --iso /srv/images/rescue.iso
  berth vm media insert web1 web2 --iso isos/rescue.iso
  berth vm media insert web1 --iso /srv/images/rescue.iso --target sda`,
	}, "inserted", "iso", "`SOURCE`: a path on the node, or POOL/VOLUME", true, func(r *berthv1.ActOnVMsRequest, text string) error {
		action := &berthv1.MediaAction{Target: target, Path: text}
		if !strings.HasPrefix(text, "/") {
			pool, volume, both := strings.Cut(text, "/")
			if !both || pool == "" || volume == "" {
				return errSource
			}
			action.Path, action.Pool, action.Volume = "", pool, volume
		}
		r.Action = &berthv1.ActOnVMsRequest_Media{Media: action}
		return nil
	})
	cmd.Flags().StringVar(&target, "target", "", "`TARGET` of the drive: sda; without it the only one")
	term.Complete(cmd, "target", cobra.NoFileCompletions)
	return cmd
}

func ejectCommand(a *term.App) *cobra.Command {
	return deviceCommand(a, &cobra.Command{
		Use: "eject NAME...", Short: "Take out what is in the drive of VMs",
		Long: `Take out what is in the drive of VMs, so that it keeps none of them on its node.`,
		Example: `  berth vm media eject web1
  berth vm media eject web1 --target sda
  berth vm media eject --selector node=node1`,
	}, "ejected", "target", "`TARGET` of the drive: sda; without it the only one", false,
		func(r *berthv1.ActOnVMsRequest, target string) error {
			r.Action = &berthv1.ActOnVMsRequest_Media{Media: &berthv1.MediaAction{Target: target}}
			return nil
		})
}

// parseSource reads a disk as parseDisk does, or a volume of a pool: POOL/VOLUME.
func parseSource(text string) (*berthv1.Disk, error) {
	disk, err := parseDisk(text)
	if err != nil || strings.HasPrefix(disk.GetPath(), "/") {
		return disk, err
	}
	pool, volume, both := strings.Cut(disk.GetPath(), "/")
	if !both || pool == "" || volume == "" {
		return nil, errSource
	}
	disk.Path, disk.Pool, disk.Volume = "", pool, volume
	return disk, nil
}
