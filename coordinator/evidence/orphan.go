package evidence

import (
	"fmt"

	"berth/coordinator/model"
)

// IsOrphan tells whether a copy runs on its node and libvirt there has forgotten it. It is never absence, and nothing can be
// ordered of it: a person ends the process, or the guest ends by itself.
func (c Copy) IsOrphan() bool { return c.Domain.State == model.DomainOrphan }

// Orphaned says where an orphan is, and what ends it.
func (c Copy) Orphaned() string {
	return fmt.Sprintf("process %d on %s runs it, and libvirt there does not list it: it is started nowhere as long as that process lives; %s",
		c.Domain.PID, c.Name, c.EndsOrphan())
}

// EndsOrphan says how somebody ends an orphan.
func (c Copy) EndsOrphan() string {
	return fmt.Sprintf("shut its guest down from inside, or end it with 'kill %d' on %s", c.Domain.PID, c.Name)
}
