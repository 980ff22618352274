// Package volumes is the leader's work on disks and images: importing, growing and deleting them. What is to be done is written
// down before agents work on volumes, so that repeating the request finishes it.
package volumes

import (
	"context"
	"sync"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
)

// Kinds of the commands that work on volumes.
const (
	deleteDiskKind  = "delete disk"
	deleteImageKind = "delete image"
	growKind        = "grow disk"
	importKind      = "import image"
)

// Guests tell how large their disks are. Package drifts implements it.
type Guests interface {
	// Shrunk are the disks of a VM, by ID, that somebody has made smaller beside Berth. The records of those that were made larger have
	// their size when it returns.
	Shrunk(ctx context.Context, vm string) []drift.Resized
}

// Volumes works on disks and images. It is safe for concurrent use.
type Volumes struct {
	*lead.Leader
	guests Guests

	mu   sync.Mutex
	busy map[string]bool // subjects whose volumes somebody works on
}

// New makes a Volumes.
func New(lead *lead.Leader, guests Guests) *Volumes {
	return &Volumes{Leader: lead, guests: guests, busy: map[string]bool{}}
}

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
