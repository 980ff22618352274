package model

import (
	"fmt"
	"strings"
)

// More silent nodes than this at once are rather the fault of what lies between. One silent node is never too many.
const (
	MaxSilentPercent = 30 // of the nodes
	MaxSilentNodes   = 10 // or, on a large site, LargeSitePercent of the nodes
	LargeSitePercent = 5
)

// rackLabel is how the label of a node begins that says in which rack it stands.
const rackLabel = "rack"

// Rack is the label that says in which rack a node stands, as rack-7 or rack7; empty: none does.
func (n *Node) Rack() string {
	for _, label := range n.Labels {
		if strings.HasPrefix(label, rackLabel) {
			return label
		}
	}
	return ""
}

// MassSilence tells that so many of all nodes are silent at once that it is more likely the fault of what lies between; empty: it
// is not so.
func MassSilence(silent, all int) string {
	if silent > max(MaxSilentNodes, all*LargeSitePercent/100) || silent > 1 && silent*100 > all*MaxSilentPercent {
		return fmt.Sprintf("%d of %d nodes are silent at once", silent, all)
	}
	return ""
}
