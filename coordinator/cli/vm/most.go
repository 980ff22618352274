package vm

import (
	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// mostFlags say how large a VM can become while it runs.
type mostFlags struct {
	memory term.StringFlag
	vcpus  int32
}

// mostFlagNames are theirs.
var mostFlagNames = []string{"max-memory", "max-vcpus"}

func (f *mostFlags) flags(cmd *cobra.Command, memory, vcpus string) {
	f.memory.Word = "SIZE"
	cmd.Flags().Var(&f.memory, "max-memory", memory)
	cmd.Flags().Int32Var(&f.vcpus, "max-vcpus", 0, vcpus)
	for _, name := range mostFlagNames {
		term.Complete(cmd, name, cobra.NoFileCompletions)
	}
}

// read is what stands on the line; 0: nothing, or that it cannot become larger.
func (f *mostFlags) read(cmd *cobra.Command) (memory int64, vcpus int32, err error) {
	if cmd.Flags().Changed("max-memory") && f.memory.Text != "0" {
		if memory, err = term.ParseMemory(cmd, f.memory.Text); err != nil {
			return 0, 0, err
		}
	}
	if f.vcpus < 0 || f.vcpus > model.MaxVCPUs {
		return 0, 0, term.Usagef(cmd, "--max-vcpus %d: want 0 to %d", f.vcpus, model.MaxVCPUs)
	}
	return memory, f.vcpus, nil
}

// change puts what stands on the line into a change.
func (f *mostFlags) change(cmd *cobra.Command, into *berthv1.VMChange) error {
	memory, vcpus, err := f.read(cmd)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("max-memory") {
		into.MaxMemoryBytes = &memory
	}
	if cmd.Flags().Changed("max-vcpus") {
		into.MaxVcpus = &vcpus
	}
	return nil
}
