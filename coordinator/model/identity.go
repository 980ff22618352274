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

// FenceIdentity is what a node's device says about which machine it switches. The zero value: it was not asked yet.
type FenceIdentity struct {
	Machine string // UUID; empty: the device does not tell
	Why     string // it does not
}

// Refused says why a node's device is not asked: it says that it switches another machine. Empty: it does not say that.
func (i FenceIdentity) Refused(n *Node) string {
	is, what := n.Fence.Machine, "its declared machine is"
	if is == "" && n.HardwareSource == HardwareProduct {
		is, what = n.Hardware, "its firmware says"
	}
	if i.Machine == "" || is == "" || SameMachine(i.Machine, is) {
		return ""
	}
	return fmt.Sprintf("its fence device says that it switches machine %s, and %s %s", i.Machine, what, is)
}

// RefusedNext says how a device that switches another machine is mended.
func (i FenceIdentity) RefusedNext(n *Node) string {
	return fmt.Sprintf("set the address of its own device with 'berth node set %s --fence command --fence-program %s --fence-arg ...'; "+
		"if that is its device and only tells another UUID of the machine, add --fence-machine %s", n.Name, n.Fence.Program, i.Machine)
}

// Says is for people, whether the device is the node's; empty: it was not asked yet, or there is none.
func (i FenceIdentity) Says(n *Node) string {
	switch {
	case n.Fence.Method != FenceCommand || i == FenceIdentity{}:
		return ""
	case i.Machine == "":
		return "unchecked: " + i.Why
	case i.Refused(n) != "":
		return i.Refused(n) + ": it is not asked; " + i.RefusedNext(n)
	case n.Fence.Machine == "" && n.HardwareSource != HardwareProduct:
		return fmt.Sprintf("unchecked: it says that it switches machine %s, and the node does not tell its firmware's UUID", i.Machine)
	}
	return fmt.Sprintf("checked: it says that it switches machine %s, which the node is", i.Machine)
}
