// Package volumes is the leader's work on disks and images: importing, growing and deleting them. What is to be done is written
// down before agents work on volumes, so that repeating the request finishes it.
package volumes

import (
	"sync"

	"berth/coordinator/control/lead"
)

// Kinds of the commands that work on volumes.
const (
	deleteDiskKind  = "delete disk"
	deleteImageKind = "delete image"
	growKind        = "grow disk"
	importKind      = "import image"
)

// Volumes works on disks and images. It is safe for concurrent use.
type Volumes struct {
	*lead.Leader

	mu   sync.Mutex
	busy map[string]bool // subjects whose volumes somebody works on
}

// New makes a Volumes.
func New(lead *lead.Leader) *Volumes { return &Volumes{Leader: lead, busy: map[string]bool{}} }

// alone keeps others from working on the volumes of a disk or an image at the same time. After a crash nobody works on them.
func (v *Volumes) alone(subject string) (leave func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.busy[subject] {
		return nil, &lead.Error{Code: lead.Busy, Subject: subject, Message: subject + " is being worked on", NextStep: "wait until that has " +
			"ended"}
	}
	v.busy[subject] = true
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.busy, subject)
	}, nil
}
