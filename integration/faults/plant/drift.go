package plant

import "berth/coordinator/drift"

// Unheeded is a look at what guests run with, of a leader that may not heed what nodes tell of those that have ended.
func (b Bug) Unheeded(look *drift.Look) *drift.Look {
	if b == LastRunUnheeded {
		look.RanOn = func(string) []string { return nil }
	}
	return look
}
