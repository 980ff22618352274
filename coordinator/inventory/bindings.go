package inventory

import (
	"strings"
	"time"
	"unicode"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

var bindingKinds = map[berthv1.BindingKind]model.BindingKind{
	berthv1.BindingKind_BINDING_KIND_HOST_DEVICE:   model.BoundByHostDevice,
	berthv1.BindingKind_BINDING_KIND_FILESYSTEM:    model.BoundByFilesystem,
	berthv1.BindingKind_BINDING_KIND_SHARED_MEMORY: model.BoundBySharedMemory,
	berthv1.BindingKind_BINDING_KIND_GRAPHICS:      model.BoundByGraphics,
	berthv1.BindingKind_BINDING_KIND_MEDIA:         model.BoundByMedia,
	berthv1.BindingKind_BINDING_KIND_TRANSIENT:     model.BoundByTransient,
	berthv1.BindingKind_BINDING_KIND_CPU:           model.BoundByCPU,
	berthv1.BindingKind_BINDING_KIND_SNAPSHOTS:     model.BoundBySnapshots,
	berthv1.BindingKind_BINDING_KIND_JOB:           model.BoundByJob,
	berthv1.BindingKind_BINDING_KIND_BLOCK_JOB:     model.BoundByBlockJob,
}

// bindingsFrom reads what an agent tells of what keeps a domain on its node; nil: it does not tell. It ends up in texts for people, so it
// is cut to what they can read.
func bindingsFrom(wire *berthv1.Bindings) []model.Binding {
	if wire == nil {
		return nil
	}
	told := wire.GetBindings()
	told = told[:min(len(told), model.MaxBindings)]
	bindings := make([]model.Binding, 0, len(told))
	for _, one := range told {
		kind, known := bindingKinds[one.GetKind()]
		if !known {
			kind = model.BoundByOther
		}
		binding := model.Binding{
			Kind: kind, What: readable(one.GetWhat()), Name: readable(one.GetName()), Count: int(max(one.GetCount(), 0)),
			// What is in a drive is compared with the places of pools, so no letter of it is changed.
			Source: diskSource(one.GetSource()),
		}
		if readable(binding.Source.Text()) != binding.Source.Text() {
			binding.Source = model.DiskSource{Path: "something"}
		}
		if since := one.GetSince(); since.IsValid() {
			binding.Since = since.AsTime().Truncate(time.Second)
		}
		bindings = append(bindings, binding)
	}
	return bindings
}

// readable is a text of an agent as people are shown it: of one line, and not longer than a line or two.
func readable(text string) string {
	letters := 0
	return strings.Map(func(letter rune) rune {
		letters++
		switch {
		case letters > model.MaxBindingText:
			return -1
		case !unicode.IsPrint(letter) || letter == unicode.ReplacementChar:
			return '?'
		default:
			return letter
		}
	}, text)
}
