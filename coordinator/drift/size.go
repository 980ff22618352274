package drift

import (
	"slices"
	"strconv"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/domxml"
	"berth/shared/units"
)

// SizeBeside is what of the size of a VM somebody has changed beside Berth while it runs, as its node shows it: 'virsh setvcpus', and
// 'virsh setmem' where its memory is what its balloon leaves it. A figure is 0 where it is as Berth has made it, where somebody has changed
// it with Berth since its start, which the guest may still be following, and where nothing tells. The larger one counts (VM.SizeOn). Domain
// is what the VM's holder shows of it; nil: nothing.
func SizeBeside(vm *model.VM, domain *model.Domain) model.Size {
	var beside model.Size
	if vm.Holder == "" || domain == nil || domain.Epoch != vm.Epoch || !domain.State.Lives() {
		return beside
	}
	own := func(field string) bool {
		return slices.ContainsFunc(vm.Pending, func(p model.PendingChange) bool { return p.Field == field })
	}
	if vm.RanSize.VCPUs > 0 && domain.VCPUs > 0 && domain.VCPUs != vm.RanSize.VCPUs && !own(model.VCPUsField) {
		beside.VCPUs = domain.VCPUs
	}
	if vm.RanSize.Memory > 0 && vm.Ballooned && domain.Balloon != nil && *domain.Balloon > 0 && !own(model.MemoryField) {
		if has := wholeMiB(*domain.Balloon); has != wholeMiB(vm.RanSize.Memory) {
			beside.Memory = has
		}
	}
	return beside
}

// RunsAs is how large a VM is, for people: what counts of it (VM.SizeOn), but that one which somebody has made smaller beside Berth is that
// small, though it counts for more.
func RunsAs(vm *model.VM, domain *model.Domain) model.Size {
	size, beside := vm.SizeOn(domain), SizeBeside(vm, domain)
	if beside.Memory > 0 {
		size.Memory = beside.Memory
	}
	if beside.VCPUs > 0 {
		size.VCPUs = beside.VCPUs
	}
	return size
}

// wholeMiB is memory rounded up to whole MiB, as libvirt does.
func wholeMiB(memory units.Bytes) units.Bytes {
	return (memory + units.MiB - 1) / units.MiB * units.MiB
}

// AtNextStart are the fields that the next start of a VM will have otherwise than what runs, the figures first; none if no node holds it.
// One that nobody has changed with Berth says by nobody. Domain is what its node shows of it, as for RunsAs.
func AtNextStart(vm *model.VM, domain *model.Domain) []model.PendingChange {
	if vm.Holder == "" {
		return nil
	}
	var differ []model.PendingChange
	figure := func(field, now, next string) {
		if now == next {
			return
		}
		one := model.PendingChange{Field: field, Was: now, Next: next}
		if at := slices.IndexFunc(vm.Pending, func(p model.PendingChange) bool { return p.Field == field }); at >= 0 {
			one.By, one.At = vm.Pending[at].By, vm.Pending[at].At
		}
		differ = append(differ, one)
	}
	now, next := RunsAs(vm, domain), vm.NextSize()
	figure(model.MemoryField, wholeMiB(now.Memory).String(), wholeMiB(next.Memory).String())
	figure(model.VCPUsField, strconv.Itoa(now.VCPUs), strconv.Itoa(next.VCPUs))
	for _, one := range vm.Pending {
		if one.Field != model.MemoryField && one.Field != model.VCPUsField {
			differ = append(differ, one)
		}
	}
	return differ
}

// Sized is a VM whose record has the size that it runs with, whoever has made it so; a figure of 0 stays as it is. What is changed beside
// Berth after that was changed from there. The error says that a document does not have its size in one place.
func Sized(vm model.VM, size model.Size, caller string, at time.Time) (model.VM, error) {
	if vm.Spec.XML != "" {
		if _, err := domxml.Resize(vm.Spec.XML, int64(size.Memory), size.VCPUs); err != nil {
			return vm, err
		}
	}
	after := operation.Resized(vm, &operation.Operation{Size: size, Caller: caller}, at)
	after.Pending = slices.DeleteFunc(slices.Clone(after.Pending), func(p model.PendingChange) bool {
		return size.Memory > 0 && p.Field == model.MemoryField || size.VCPUs > 0 && p.Field == model.VCPUsField
	})
	if len(after.Pending) == 0 {
		after.Pending = nil
	}
	return after, nil
}

// resized is the record of a VM with the vCPUs that somebody has given its guest beside Berth, as a node shows it: its next start has them
// too. Memory is left to people (Sized): a guest that has no driver for its balloon, or lets it out when it is short, has other memory than
// it was started with, and nobody has wanted that.
func (l *Look) resized(vm model.VM, node string) model.VM {
	facts := l.Facts(node)
	vcpus := SizeBeside(&vm, facts.Domain(vm.ID)).VCPUs
	if vcpus == 0 {
		return vm
	}
	after, err := Sized(vm, model.Size{VCPUs: vcpus}, "", l.At)
	if err != nil {
		return vm // 'vm accept' says why
	}
	return after
}
