package operation

import (
	"path"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// DiskNames are the disks that a VM writes to as its record names them: those of RecordedDisks, and those that were changed since. What are
// records themselves it has as Disks.
func DiskNames(vm *model.VM) []string {
	var names []string
	for _, source := range RecordedDisks(vm) {
		names = append(names, DiskName(source))
	}
	for _, edit := range vm.Drifted() {
		if edit.Source != (model.DiskSource{}) && !edit.Media {
			names = append(names, DiskName(edit.Source))
		}
	}
	return names
}

// RecordedDisks are the disks that a VM writes to by its specification and its XML.
func RecordedDisks(vm *model.VM) []model.DiskSource {
	var sources []model.DiskSource
	for _, one := range vm.Spec.Disks {
		if !one.ReadOnly {
			sources = append(sources, model.DiskSource{Path: one.Path, Pool: one.Pool, Volume: one.Volume})
		}
	}
	if vm.Spec.XML == "" {
		return sources
	}
	attached, _ := domxml.Disks(vm.Spec.XML) // what cannot be read is not started either
	for _, one := range attached {
		if !one.ReadOnly && one.Source != (domxml.Source{}) {
			sources = append(sources, model.DiskSource(one.Source))
		}
	}
	return sources
}

// DiskName is a source as one text, the same for all that name the same path, or volume of a pool.
func DiskName(source model.DiskSource) string {
	source.Path = clean(source.Path)
	return source.Text()
}

func clean(file string) string {
	if file == "" {
		return ""
	}
	return path.Clean(file)
}
