package model

import "strings"

// Reach are the addresses at which other nodes reach it; none: not known.
func (n *Node) Reach() []string {
	if n.Peers == "" {
		return nil
	}
	return strings.Split(n.Peers, ",")
}
