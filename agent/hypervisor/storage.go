package hypervisor

import (
	"context"
	"io"
	"time"
)

// Formats of a volume.
const (
	FormatRaw   = "raw"
	FormatQCOW2 = "qcow2"
)

// Volume is one volume of a storage pool.
type Volume struct {
	Pool, Name, Format, Path string
	CapacityBytes            int64     // as a guest sees it
	AllocationBytes          int64     // what it takes in the pool now
	BackingPath              string    // of the volume that it is a thin copy of; empty: none
	ModifiedAt               time.Time // when its file was last written to; zero: not known
	Empty                    bool      // a thin copy into which nothing was written since it was made, as far as its length tells
}

// NewVolume says what volume to make. It takes up no more than its own administration: content comes by writing.
type NewVolume struct {
	Pool, Name    string
	Format        string // FormatRaw or FormatQCOW2; a thin copy is FormatQCOW2
	CapacityBytes int64  // at least that of what it is a thin copy of

	// What it is a thin copy of; empty: nothing. The format is never probed, because a guest can write what a probe would
	// believe.
	BackingPool, BackingName, BackingFormat string

	Readable bool // by everybody on its hosts
}

// Storage is what the agent asks of a node's storage pools. A pool that is not there, or not active, is ErrNoPool
// everywhere. What another node did in a shared pool is seen.
type Storage interface {
	// CreateVolume makes a volume: ErrExists when the name is taken.
	CreateVolume(ctx context.Context, volume NewVolume) error
	// UploadVolume makes a volume whose file has exactly this content, size bytes of it: ErrExists when the name is taken.
	// Unless it succeeds nothing of it is left, or the error is ErrAmbiguous. An error of content is passed on.
	UploadVolume(ctx context.Context, pool, name string, size int64, content io.Reader) error
	// LookupVolume finds a volume: ErrNoVolume when it is positively not there.
	LookupVolume(ctx context.Context, pool, name string) (Volume, error)
	// VolumesBeside are the volumes of the pool whose folder a file is in, as their files are now: ErrNoPool when no pool has that folder.
	VolumesBeside(ctx context.Context, file string) ([]Volume, error)
	// DeleteVolume removes a volume: ErrNoVolume when it is not there, ErrInUse when a domain of this node has it, or one
	// that is a thin copy of it.
	DeleteVolume(ctx context.Context, pool, name string) error
	// GrowVolume makes a volume larger, in bytes. One that is as large already is left alone. ErrInUse while a domain of
	// this node runs with it: then GrowDisk does it.
	GrowVolume(ctx context.Context, pool, name string, capacity int64) error
	// GrowDisk makes the volume behind a running domain's disk larger, in bytes, and the guest sees it at once. The disk is
	// found by the path of its volume: ErrNoVolume when the domain has none of it. One that is as large already is left alone.
	GrowDisk(ctx context.Context, uuid, path string, capacity int64) error
	// VolumesInUse are the paths of all disks of all domains, running or defined, and of what those are thin copies of,
	// each with the UUID of one domain that has it.
	VolumesInUse(ctx context.Context) (map[string]string, error)
	// HoldLock makes a small volume, of which nothing else is known, in place of one that is left of an earlier try. It locks it as QEMU
	// locks an image that it writes to, until release, which removes it.
	HoldLock(ctx context.Context, pool, name string) (release func(context.Context) error, err error)
	// LockHeld tells whether somebody, on this host or on another one, holds the lock of a volume: ErrNoVolume when it is positively
	// not there.
	LockHeld(ctx context.Context, pool, name string) (bool, error)
}
