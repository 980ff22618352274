package model

import "fmt"

// Machine is what tells one machine from another that has a copy of its system disk.
type Machine struct {
	Hardware string `json:"hardware,omitempty"` // its identity; empty: not known
	Source   string `json:"source,omitempty"`   // of that: HardwareProduct or HardwareSystem
	Boot     string `json:"boot,omitempty"`     // ID of its last boot
}

// Sources of a machine's identity.
const (
	HardwareProduct = "product UUID" // of the firmware (SMBIOS)
	HardwareSystem  = "machine ID"   // of the operating system, which a copied disk has too
)

// Twin is the second of two machines that say that they are one node. The zero value: there is none.
type Twin struct {
	Machine
	Why string `json:"why,omitempty"` // how it was found, for people
}

// Is tells whether somebody means this machine by a word: its hardware or its boot.
func (m Machine) Is(word string) bool { return word != "" && (word == m.Hardware || word == m.Boot) }

// Machine is the one that the node is.
func (n *Node) Machine() Machine {
	return Machine{Hardware: n.Hardware, Source: n.HardwareSource, Boot: n.Boot}
}

// Held tells that two machines say that they are this node: neither is believed until a person has decided.
func (n *Node) Held() bool { return n.Twin.Why != "" }

// Doubt says why a machine that says it is the node may be another one; empty: nothing speaks against it. A boot ends for good when
// the next one begins, so one that comes back is of a second machine.
func (n *Node) Doubt(m Machine) string {
	switch {
	case n.Held():
		return n.Twin.Why
	case m.Hardware != "" && n.Hardware != "" && m.Source == n.HardwareSource && m.Hardware != n.Hardware:
		return fmt.Sprintf("two machines say that they are it, or it has new hardware: %s %s, and %s until now", m.Source, m.Hardware, n.Hardware)
	case m.Boot != "" && m.Boot != n.Boot && m.Boot == n.LastBoot:
		return fmt.Sprintf("two machines say that they are it: boot %s speaks again, and %s has spoken since", m.Boot, n.Boot)
	}
	return ""
}

// HeldNext says how a person decides which machine the node is.
func (n *Node) HeldNext() string {
	word := func(is, other Machine) string {
		if is.Hardware != "" && is.Hardware != other.Hardware {
			return is.Hardware
		}
		return is.Boot
	}
	here := n.Machine()
	return fmt.Sprintf("switch the wrong machine off, or take its agent's certificate away; then 'berth node set %s --machine %s' (or %s) "+
		"says which one the node is", n.Name, word(here, n.Twin.Machine), word(n.Twin.Machine, here))
}

// Decide makes the node the machine that a person means, and what the other one says counts as a second machine's again. It reports
// false if the word is neither's.
func (n *Node) Decide(word string) bool {
	here, twin := n.Machine(), n.Twin.Machine
	switch {
	case twin.Is(word) && !here.Is(word):
		n.Hardware, n.HardwareSource, n.Boot, n.LastBoot, n.Watchdog = twin.Hardware, twin.Source, twin.Boot, here.Boot, 0
	case here.Is(word) && (!twin.Is(word) || word != here.Hardware):
		n.LastBoot = twin.Boot
	default:
		return false
	}
	if n.LastBoot == n.Boot {
		n.LastBoot = ""
	}
	n.Twin = Twin{}
	return true
}
