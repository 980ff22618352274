package model

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// SameMachine tells whether two UUIDs are of one machine. Management boards and firmware write the bytes of one UUID in different
// orders: as they come, with the first three fields reversed, or all reversed.
func SameMachine(a, b string) bool {
	if a == b {
		return true
	}
	first, second := uuidBytes(a), uuidBytes(b)
	if first == nil || second == nil {
		return strings.EqualFold(a, b)
	}
	turned := slices.Clone(first)
	slices.Reverse(turned)
	return slices.ContainsFunc([][]byte{first, fieldsReversed(first), turned, fieldsReversed(turned)}, func(is []byte) bool {
		return slices.Equal(is, second)
	})
}

func uuidBytes(text string) []byte {
	const size = 16
	decoded, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(decoded) != size {
		return nil
	}
	return decoded
}

func fieldsReversed(uuid []byte) []byte {
	is := slices.Clone(uuid)
	slices.Reverse(is[0:4])
	slices.Reverse(is[4:6])
	slices.Reverse(is[6:8])
	return is
}

// FenceIdentity is what a fence device says about which machine it switches. The zero value: it was not asked yet.
type FenceIdentity struct {
	Machine string // UUID; empty: the device does not tell
	Why     string // it does not
}

// FenceIdentities are what the devices of a node say about which machine they switch, in the order of the devices. There are none as
// long as they were not asked.
type FenceIdentities []FenceIdentity

// alone is a node as if it had only one of its devices, for each of those that have said something.
func (all FenceIdentities) alone(n *Node, yield func(is FenceIdentity, alone *Node)) {
	if len(n.Fence.Also) == 0 {
		if len(all) > 0 {
			yield(all[0], n)
		}
		return
	}
	for i, device := range n.Fence.All() {
		if i < len(all) {
			one := *n
			one.Fence = device
			yield(all[i], &one)
		}
	}
}

// Refused says why the devices of a node are not asked: one says that it switches another machine. Empty: none says that. Next says how
// that is mended.
func (all FenceIdentities) Refused(n *Node) (why, next string) {
	all.alone(n, func(is FenceIdentity, alone *Node) {
		if refused := is.refused(alone); refused != "" && why == "" {
			why, next = refused, is.mend(alone)
		}
	})
	return why, next
}

// Says is for people, whether the devices are the node's; empty: they were not asked yet, or there is none.
func (all FenceIdentities) Says(n *Node) string {
	var said []string
	all.alone(n, func(is FenceIdentity, alone *Node) {
		text := is.says(alone)
		if text != "" && len(n.Fence.Also) > 0 {
			text = alone.Fence.Target() + ": " + text
		}
		if text != "" {
			said = append(said, text)
		}
	})
	return strings.Join(said, "; ")
}

func (i FenceIdentity) refused(n *Node) string {
	is, what := n.Fence.Machine, "its declared machine is"
	if is == "" && n.HardwareSource == HardwareProduct {
		is, what = n.Hardware, "its firmware says"
	}
	if i.Machine == "" || is == "" || SameMachine(i.Machine, is) {
		return ""
	}
	return fmt.Sprintf("its fence device says that it switches machine %s, and %s %s", i.Machine, what, is)
}

// mend says how a device that switches another machine is mended.
func (i FenceIdentity) mend(n *Node) string {
	return fmt.Sprintf("set the address of its own device with 'berth node set %s --fence command --fence-program %s --fence-arg ...'; "+
		"if that is its device and only tells another UUID of the machine, add --fence-machine %s", n.Name, n.Fence.Program, i.Machine)
}

func (i FenceIdentity) says(n *Node) string {
	switch {
	case n.Fence.Method != FenceCommand || i == FenceIdentity{}:
		return ""
	case i.Machine == "":
		return "unchecked: " + i.Why
	case i.refused(n) != "":
		return i.refused(n) + ": it is not asked; " + i.mend(n)
	case n.Fence.Machine == "" && n.HardwareSource != HardwareProduct:
		return fmt.Sprintf("unchecked: it says that it switches machine %s, and the node does not tell its firmware's UUID", i.Machine)
	}
	return fmt.Sprintf("checked: it says that it switches machine %s, which the node is", i.Machine)
}
