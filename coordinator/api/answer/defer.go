package answer

import (
	"context"

	"berth/coordinator/api/gate"
	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// Defer keeps in a VM's record which of the changes wait for its next start, who has made them, and how large it is until then: an
// earlier release may have started it, which did not keep that.
func (p *Moment) Defer(ctx context.Context, before *model.VM, after *model.VM, changes []estate.FieldChange) {
	var waiting []model.PendingChange
	for _, one := range changes {
		if one.Waits {
			waiting = append(waiting, model.PendingChange{
				Field: one.Field, Was: one.From, Next: one.To, By: gate.CallerOf(ctx).String(), At: p.At,
			})
		}
	}
	if len(waiting) == 0 {
		return
	}
	after.Defer(waiting)
	if before.Holder != "" && before.RanSize == (model.Size{}) {
		facts := p.Soft.Facts(before.Holder, p.At)
		after.RanSize = before.SizeOn(facts.Domain(before.ID))
	}
}
