package model

import "berth/shared/units"

// Reservation is what a live operation holds on a node.
type Reservation struct {
	Node      string
	VM        string
	Name      string
	Memory    units.Bytes
	VCPUs     int
	Operation string
	There     bool // the VM runs there already, and is to be so large

	Volumes []VolumeOrder // that the operation makes there
}
