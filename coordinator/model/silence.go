package model

import "fmt"

// More silent nodes than this at once are rather the fault of what lies between. One silent node is never too many.
const (
	MaxSilentPercent = 30 // of the nodes
	MaxSilentNodes   = 10
)

// MassSilence tells that so many of all nodes are silent at once that it is more likely the fault of what lies between; empty: it
// is not so.
func MassSilence(silent, all int) string {
	if silent > MaxSilentNodes || silent > 1 && silent*100 > all*MaxSilentPercent {
		return fmt.Sprintf("%d of %d nodes are silent at once", silent, all)
	}
	return ""
}
