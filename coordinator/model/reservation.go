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

	Volumes []VolumeOrder // that the operation makes there
}
