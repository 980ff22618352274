package model

import "time"

// Stand is who has paused a VM with Berth, and when. The zero value: nobody has. It says why a guest that is seen to stand still does; that
// it does so, only its node tells.
type Stand struct {
	By string    `json:"by"` // caller
	At time.Time `json:"at"`
}

// Text says it of a VM, for people.
func (s Stand) Text() string {
	return "paused by " + s.By + " since " + s.At.UTC().Format("2006-01-02 15:04:05 UTC")
}

// StandsByOrder tells whether a domain of the VM stands still because somebody has paused it with Berth. A guest that its hypervisor has
// paused because a disk failed, and one that a migration has, stand still for that reason.
func (v *VM) StandsByOrder(domain *Domain) bool {
	return v.Paused != (Stand{}) && domain != nil && domain.State == DomainPaused && domain.Reason != ReasonIOError
}
