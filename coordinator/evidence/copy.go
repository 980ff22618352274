package evidence

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Copy is a domain with a VM's UUID on a node.
type Copy struct {
	Node   string // ID
	Name   string // of the node
	Domain model.Domain
	// Marked tells that its mark is that of an adoption whose answer Berth has not got.
	Marked bool
}

// Living are the copies that may run or hold memory.
func Living(copies []Copy) []Copy {
	return slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return !c.Domain.State.Holds() })
}

// argument is its name in a command that a person may copy.
func (c Copy) argument() string { return model.Argument(c.Domain.Name) }

// renamed says how a copy gets its VM's name back: libvirt gives no other name to what runs.
func (c *Copy) renamed(name string) string {
	return fmt.Sprintf("it is called %s on %s: shut it down, name it back with 'virsh domrename %s %s', and start it with 'berth vm start %s'",
		c.Domain.Name, c.Name, c.argument(), name, name)
}

// takenBy says how a copy becomes the VM. One that has its epoch is followed as soon as it runs.
func (c *Copy) takenBy(vm *model.VM) string {
	var steps []string
	if c.Domain.State != model.DomainRunning {
		steps = append(steps, fmt.Sprintf("'virsh resume %s' there", c.argument()))
	}
	if !c.Is(vm) || vm.Desired != model.Running {
		steps = append(steps, fmt.Sprintf("'berth vm adopt %s'", vm.Name))
	}
	warning := ""
	if c.mayBeOld(vm) {
		warning = ", but only if no other node has newer disks of it: a migration may have left this copy, and the guest may have run on " +
			"elsewhere"
	}
	if len(steps) > 1 {
		return strings.Join(steps, " and then ") + " take it over" + warning
	}
	return steps[0] + " takes it over" + warning
}

// mayBeOld tells whether a copy may be what a migration that nobody knows of any more has left: it stands still under an epoch that the
// record does not have, and not for want of space, for which it would have had to run there.
func (c *Copy) mayBeOld(vm *model.VM) bool {
	stands := c.Domain.State == model.DomainPaused || c.Domain.State == model.DomainPausedMigration
	return stands && c.Domain.Managed && c.Domain.Epoch != vm.Epoch && c.Domain.Reason != model.ReasonIOError
}

// mark says whose a copy is.
func (c *Copy) mark() string {
	if !c.Domain.Managed {
		return "without Berth's mark"
	}
	return fmt.Sprintf("epoch %d", c.Domain.Epoch)
}

// Is tells whether a copy is the VM: orders to its node carry that epoch, and are refused by any other copy.
func (c *Copy) Is(vm *model.VM) bool { return c.Domain.Managed && c.Domain.Epoch == vm.Epoch }

// followed tells whether a copy may be followed: it runs, and it is the VM, or a guest of the VM that Berth was about to take over.
func (c *Copy) followed(vm *model.VM) bool {
	return c.Domain.State == model.DomainRunning && (c.Is(vm) || c.Marked)
}

// marked finds the copies that an adoption has marked which ended without an answer: the next one can go on from there.
func (m Moment) marked(vm *model.VM, copies []Copy) []Copy {
	for i := range copies {
		one := &copies[i]
		if !one.Domain.Managed || one.Domain.Epoch <= vm.Epoch || one.Domain.Epoch != vm.LastEpoch {
			continue
		}
		one.Marked = slices.ContainsFunc(m.Operations(), func(op operation.Operation) bool {
			return op.VM == vm.ID && op.Kind == operation.Adopt && op.Target == one.Node && op.Epoch == one.Domain.Epoch
		})
	}
	return copies
}

// Places names where copies are, and how.
func Places(copies []Copy) string {
	texts := make([]string, 0, len(copies))
	for i := range copies {
		texts = append(texts, fmt.Sprintf("%s on %s (%s)", copies[i].Domain.State, copies[i].Name, copies[i].mark()))
	}
	return strings.Join(texts, " and ")
}
