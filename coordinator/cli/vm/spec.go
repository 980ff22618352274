package vm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// specFlags describe a new VM on the command line.
type specFlags struct {
	plain    *fieldform.Flags[model.VM]
	memory   string
	vcpus    int
	most     mostFlags
	image    string
	disks    []string
	xml      string // file
	userData string // file
}

// describing are the flags of which any one makes the VM a new one. --xml excludes all others.
var describing = slices.Concat([]string{"memory", "vcpus", "image", "disk", "user-data"}, mostFlagNames, specFlagNames, rootFlagNames)

func (f *specFlags) flags(a *term.App, cmd *cobra.Command) {
	f.plain = fieldform.Of(specFields)
	f.plain.Define(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.memory, "memory", "", "`SIZE` of the memory, for instance 512M or 4G")
	flags.IntVar(&f.vcpus, "vcpus", 1, "`NUMBER` of vCPUs")
	f.most.flags(cmd, "memory that it can get while it runs, for instance 8G", "`NUMBER` of vCPUs that it can get while it runs")
	flags.StringVar(
		&f.image, "image", "",
		"what to boot from: the `NAME` of an imported image, which its first disk is a copy of; or the first --disk, by its path",
	)
	flags.StringArrayVar(&f.disks, "disk", nil, "disk: `PATH`[,format=raw|qcow2][,bus=virtio|sata|scsi][,readonly]; repeat for more")
	flags.StringVar(&f.userData, "user-data", "", "cloud-init user data `FILE`, - for the standard input; it needs a disk in a pool")
	flags.StringVar(&f.xml, "xml", "", "libvirt domain XML `FILE` instead of all these, - for the standard input")
	term.Complete(cmd, "memory", cobra.NoFileCompletions)
	term.Complete(cmd, "vcpus", cobra.NoFileCompletions)
}

// spec makes the description, or nil when the command line has none: then the VM exists already.
func (f *specFlags) spec(cmd *cobra.Command, name string) (*berthv1.VMSpec, error) {
	given := term.ChangedFlags(cmd, describing)
	linking := term.ChangedFlags(cmd, slices.Concat(traitFlagNames, placeFlagNames, []string{"key"}))
	switch {
	case cmd.Flags().Changed("xml") && len(given) > 0:
		return nil, term.Usagef(cmd, "--xml and %s exclude each other: the XML says it all", given[0])
	case cmd.Flags().Changed("xml"):
		document, err := readXML(cmd, f.xml)
		if err != nil {
			return nil, err
		}
		return &berthv1.VMSpec{Xml: document}, nil
	case name == "":
		return nil, term.Usagef(cmd, "NAME is missing")
	case len(given) == 0 && len(linking) > 0:
		return nil, term.Usagef(
			cmd, "--memory is missing: a new VM needs a size; 'berth vm set' changes an existing one, 'berth key set' its keys",
		)
	case len(given) == 0:
		return nil, nil
	case f.memory == "":
		return nil, term.Usagef(cmd, "--memory is missing: a new VM needs a size, an existing one starts without %s", given[0])
	}
	spec, err := f.described(cmd)
	if err != nil {
		return nil, err
	}
	if err := model.ValidateName("VM", name); err != nil {
		return nil, term.Usage(cmd, err)
	}
	if err := f.validate(spec); err != nil {
		return nil, term.Usage(cmd, err)
	}
	return spec, nil
}

// imageName is the name of the image that the first disk is a copy of; empty if there is none, or a path.
func (f *specFlags) imageName() string {
	if strings.Contains(f.image, "/") || strings.Contains(f.image, ",") {
		return ""
	}
	return f.image
}

func (f *specFlags) described(cmd *cobra.Command) (*berthv1.VMSpec, error) {
	memory, err := units.ParseBytes(f.memory)
	if err != nil {
		return nil, term.Usagef(cmd, "--memory: %w", err)
	}
	if f.vcpus < 1 || f.vcpus > model.MaxVCPUs {
		return nil, term.Usagef(cmd, "--vcpus %d: want 1 to %d", f.vcpus, model.MaxVCPUs)
	}
	spec := &berthv1.VMSpec{MemoryBytes: int64(memory), Vcpus: int32(f.vcpus)} // at most model.MaxVCPUs
	if err := f.plain.Make(cmd, spec); err != nil {
		return nil, err
	}
	if spec.MaxMemoryBytes, spec.MaxVcpus, err = f.most.read(cmd); err != nil {
		return nil, err
	}
	if f.userData != "" {
		if spec.UserData, err = readFile(cmd, "the user data", f.userData, model.MaxUserData); err != nil {
			return nil, err
		}
	}
	if cmd.Flags().Changed("image") && f.imageName() == "" {
		disk, err := parseDisk(f.image)
		if err != nil {
			return nil, term.Usagef(cmd, "--image %s: %w", f.image, err)
		}
		spec.Disks = append(spec.Disks, disk)
	}
	for _, text := range f.disks {
		disk, err := parseDisk(text)
		if err != nil {
			return nil, term.Usagef(cmd, "--disk %s: %w", text, err)
		}
		spec.Disks = append(spec.Disks, disk)
	}
	return spec, nil
}

// validate asks the model, so that nonsense is refused before anybody is asked. The coordinator does the same again.
func (f *specFlags) validate(spec *berthv1.VMSpec) error {
	described := f.plain.Record.Spec
	described.Memory, described.VCPUs, described.UserData = units.Bytes(spec.GetMemoryBytes()), int(spec.GetVcpus()), spec.GetUserData()
	described.MaxMemory, described.MaxVCPUs = units.Bytes(spec.GetMaxMemoryBytes()), int(spec.GetMaxVcpus())
	for _, disk := range spec.GetDisks() {
		described.Disks = append(described.Disks, model.Disk{
			Path: disk.GetPath(), Format: disk.GetFormat(), Bus: disk.GetBus(), ReadOnly: disk.GetReadOnly(),
		})
	}
	return model.ValidateSpec(described)
}

var (
	errDisk   = errors.New("not a disk")
	errSource = errors.New("neither a path that begins with / nor POOL/VOLUME")
)

// parseDisk reads PATH[,format=...][,bus=...][,readonly]. Without a format, a name that ends in .qcow2 is qcow2 and
// every other one is raw.
func parseDisk(text string) (*berthv1.Disk, error) {
	path, options, _ := strings.Cut(text, ",")
	disk := &berthv1.Disk{Path: path, Format: "raw", Bus: "virtio"}
	if filepath.Ext(path) == ".qcow2" {
		disk.Format = "qcow2"
	}
	if path == "" {
		return nil, fmt.Errorf("%w: the path is missing", errDisk)
	}
	if options == "" {
		return disk, nil
	}
	for option := range strings.SplitSeq(options, ",") {
		switch key, value, _ := strings.Cut(option, "="); {
		case key == "format" && value != "":
			disk.Format = value
		case key == "bus" && value != "":
			disk.Bus = value
		case option == "readonly":
			disk.ReadOnly = true
		default:
			return nil, fmt.Errorf("%w: unknown option %q, use format=raw|qcow2, bus=virtio|sata|scsi and readonly", errDisk, option)
		}
	}
	return disk, nil
}

func readXML(cmd *cobra.Command, path string) (string, error) {
	if path == "" {
		return "", term.Usagef(cmd, "--xml: FILE is missing")
	}
	return readFile(cmd, "the domain XML", path, model.MaxXMLLength)
}

// readFile reads a text of at most so many bytes, from the standard input if the path is -.
func readFile(cmd *cobra.Command, what, path string, most int64) (string, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", term.Failf(rpc.Invalid, "check the name of the file", "read %s: %w", what, err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return "", term.Failf(rpc.Invalid, "check the file", "read %s: %w", what, err)
	case int64(len(data)) > most:
		return "", term.Failf(rpc.Invalid, "check that it is the right file", "%s in %s is longer than %v", what, path, units.Bytes(most))
	case len(strings.TrimSpace(string(data))) == 0:
		return "", term.Failf(rpc.Invalid, "check that it is the right file", "%s in %s is empty", what, path)
	}
	return string(data), nil
}
