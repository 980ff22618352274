package model

import (
	"fmt"
	"strings"
	"time"
)

// A VM can be what takes its host down: by a device that is passed through to it, or a fault of the hypervisor that it meets. Whoever
// restarts it on host after host lets it end the site.
const (
	// LossSoon is how soon after the start of a VM the loss of its host may have come from it. Longer, and the VMs of a host would be
	// held whenever two hosts fail in one hour by themselves.
	LossSoon = 3 * time.Minute
	// MaxLosses is how many hosts may be lost like that, one after the other, before the VM is started by a person only.
	MaxLosses = 2
)

// Loss is a host that was lost while a VM had just started on it.
type Loss struct {
	Node string    `json:"node"` // name, because the node may be gone when people read it
	At   time.Time `json:"at"`
}

// CameAt is when the VM came to the node that has it, by a start or while it ran.
func (v *VM) CameAt() time.Time {
	if v.MovedAt.After(v.StartedAt) {
		return v.MovedAt
	}
	return v.StartedAt
}

// Lose takes note that a host was lost at a time, and with it the VM that had been there since another time. A host that had the VM for
// longer than LossSoon begins the count anew.
func (v *VM) Lose(node string, since, at time.Time) {
	losses := append([]Loss(nil), v.Losses...) // other copies of the record have the same ones
	if at.Sub(since) > LossSoon {
		losses = nil
	}
	if losses = append(losses, Loss{Node: node, At: at}); len(losses) > MaxLosses {
		losses = losses[len(losses)-MaxLosses:]
	}
	v.Losses = losses
}

// LostTooMany tells whether so many hosts were lost with the VM that only a person starts it again.
func (v *VM) LostTooMany() bool { return len(v.Losses) >= MaxLosses }

// LossesText names the hosts that were lost with the VM, and when.
func (v *VM) LossesText() string {
	texts := make([]string, 0, len(v.Losses))
	for _, one := range v.Losses {
		texts = append(texts, fmt.Sprintf("%s at %s", one.Node, one.At.UTC().Format("2006-01-02 15:04:05 MST")))
	}
	return strings.Join(texts, ", then ")
}
