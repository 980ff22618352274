package volumes

import (
	"io"

	"berth/shared/units"
)

// DeleteDisk asks for a disk of no VM to be forgotten, with its volume.
type DeleteDisk struct {
	Disk      string // ID
	RequestID string
	Caller    string
}

// GrowDisk asks for a disk to be made larger.
type GrowDisk struct {
	Disk      string // ID
	Size      units.Bytes
	RequestID string
	Caller    string
}

// ImportImage asks for a file to be put into a pool as an image. What can be read of the file itself has been checked.
type ImportImage struct {
	Name, Offer string // the offer by ID; may be empty
	Pool        string // ID
	Format      string
	Size        units.Bytes // of the file
	Capacity    units.Bytes // as a guest sees it
	Checksum    string      // SHA-256 of the file, hex
	// Open gives the file from its beginning. Each node of a local pool reads it once.
	Open      func() (io.ReadCloser, error)
	RequestID string
	Caller    string
}

// DeleteImage asks for an image that no disk is a copy of to be forgotten, with its volume.
type DeleteImage struct {
	Image     string // ID
	RequestID string
	Caller    string
}
