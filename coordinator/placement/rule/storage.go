package rule

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/units"
)

// Disk is what one disk of a VM needs of a node.
type Disk struct {
	ID     string      `json:"id"` // of the resource
	Name   string      `json:"name"`
	Size   units.Bytes `json:"size"`
	Wanted string      `json:"wanted,omitempty"` // ID of the only pool that will do, of a disk that is not made yet; empty: any
	// Pool and Node are where the disk is, as IDs; no pool: it is to be made. No node: the pool is shared.
	Pool string `json:"pool,omitempty"`
	Node string `json:"node,omitempty"`
	// ImagePool and ImageNodes are where the image is that it is a thin copy of. No nodes: the pool is shared.
	ImagePool  string   `json:"image_pool,omitempty"`
	ImageNodes []string `json:"image_nodes,omitempty"`
	Image      string   `json:"image,omitempty"` // name, for people
	// ImagePlaces are where the image is besides, of a disk that is to be made: any place that the node has will do.
	ImagePlaces []ImagePlace `json:"image_places,omitempty"`
}

// ImagePlace is a pool that an image is in, by ID, and the nodes that have it there. No nodes: the pool is shared.
type ImagePlace struct {
	Pool  string   `json:"pool"`
	Nodes []string `json:"nodes,omitempty"`
}

// The causes for which a disk cannot be had on a node.
const (
	DiskElsewhere = "elsewhere"     // it is in a local pool of another node, and is not copied
	DiskNoPool    = "no_pool"       // the node, or its cluster, has none that will do
	DiskInactive  = "pool_inactive" // the pool is there and not active
	DiskUnknown   = "unknown"       // the node's pools could not be listed
	DiskNoImage   = "no_image"      // the image is not on the node
	DiskFull      = "full"          // nothing is physically left in the pool
	DiskLarger    = "larger"        // than the whole pool
	DiskShort     = "short"         // too little is left to promise
	DiskNoPools   = "no_pools"      // the cluster has no pool at all
)

// Allotment says for each disk of the request which pool it goes to, as an index into the columns' pools; Stays: it is
// there already.
type Allotment [model.MaxDisks]int16

// Stays of a disk that is not made on the node.
const Stays = -1

// Shortage is why the disks cannot be had on a node.
type Shortage struct {
	Cause string // empty: they can
	Disk  int    // index
	Pool  int    // index of the pool that it is about; -1: of none
	// Needed and Available are of DiskFull, DiskLarger and DiskShort: in this pool, with what the disks before take.
	Needed, Available units.Bytes
}

// Allot finds a pool on the node for each disk that is to be made there, the large ones first. It allocates nothing.
func (in *Input) Allot(node int) (Allotment, Shortage) {
	var allotted Allotment
	var order [model.MaxDisks]int16
	n := 0
	for d := range in.Disks {
		allotted[d] = Stays
		if !in.makes(d, node) {
			if short := in.reach(d, node); short.Cause != "" {
				return allotted, short
			}
			continue
		}
		order[n] = int16(d)
		n++
	}
	slices.SortFunc(order[:n], func(a, b int16) int {
		one, other := &in.Disks[a], &in.Disks[b]
		if (one.Wanted == "") != (other.Wanted == "") { // the choosy ones first
			if one.Wanted != "" {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(other.Size, one.Size), cmp.Compare(a, b))
	})
	for at, d := range order[:n] {
		pool, short := in.choose(int(d), node, &allotted, order[:at])
		if short.Cause != "" {
			return allotted, short
		}
		allotted[d] = int16(pool)
	}
	return allotted, Shortage{}
}

// makes tells whether a disk is to be made on the node: it is nowhere yet, or it is copied from another node.
func (in *Input) makes(d, node int) bool {
	disk := &in.Disks[d]
	return disk.Pool == "" || in.copies(d, node)
}

func (in *Input) copies(d, node int) bool {
	disk := &in.Disks[d]
	return in.CopyStorage && disk.Pool != "" && disk.Node != "" && disk.Node != in.Columns.IDs[node]
}

// reach tells whether a disk that is made can be used on the node. Who has a disk of a local pool has what it is a copy of.
func (in *Input) reach(d, node int) Shortage {
	disk := &in.Disks[d]
	if disk.Node != "" && disk.Node != in.Columns.IDs[node] {
		return Shortage{Cause: DiskElsewhere, Disk: d, Pool: in.pool(disk.Pool)}
	}
	pool := in.pool(disk.Pool)
	if cause := in.without(pool, node); cause != "" {
		return Shortage{Cause: cause, Disk: d, Pool: pool}
	}
	if disk.Node == "" && !in.hasImage(disk, node) {
		return Shortage{Cause: DiskNoImage, Disk: d, Pool: pool}
	}
	return Shortage{}
}

// pool finds a pool by ID; -1: the cluster has none.
func (in *Input) pool(id string) int {
	return slices.IndexFunc(in.Columns.Pools, func(p view.PoolColumn) bool { return p.ID == id })
}

// without says why a pool cannot be used on the node; empty: it can.
func (in *Input) without(pool, node int) string {
	if pool < 0 {
		return DiskNoPool
	}
	switch in.Columns.Pools[pool].Has[node] {
	case view.HasIt:
		return ""
	case view.HasInactive:
		return DiskInactive
	case view.HasNot:
		return DiskNoPool
	default:
		return DiskUnknown
	}
}

func (in *Input) hasImage(disk *Disk, node int) bool {
	return disk.ImagePool == "" || in.ImageOn(disk, node, -1) >= 0
}

// ImageOn is the pool that a disk's image is in on the node, as an index: the one that the disk is made in if it has the image,
// else a shared one, else the first by ID. -1: the node has not got the image.
func (in *Input) ImageOn(disk *Disk, node, into int) int {
	found := in.imageIn(disk.ImagePool, disk.ImageNodes, node)
	for i := range disk.ImagePlaces {
		place := &disk.ImagePlaces[i]
		if other := in.imageIn(place.Pool, place.Nodes, node); other >= 0 && (found < 0 || in.closer(other, found, into)) {
			found = other
		}
	}
	return found
}

// imageIn is the index of a pool with an image if the node can use both; otherwise -1.
func (in *Input) imageIn(id string, nodes []string, node int) int {
	pool := in.pool(id)
	if in.without(pool, node) != "" || len(nodes) > 0 && !slices.Contains(nodes, in.Columns.IDs[node]) {
		return -1
	}
	return pool
}

// closer tells which of two pools with an image a disk is better copied from. Who sees a disk of a shared pool sees an image
// of one too, and need not have one of a local pool.
func (in *Input) closer(pool, other, into int) bool {
	one, two := &in.Columns.Pools[pool], &in.Columns.Pools[other]
	switch {
	case pool == into || other == into:
		return pool == into
	case one.Shared != two.Shared:
		return one.Shared
	default:
		return one.ID < two.ID
	}
}

// choose finds the pool for a disk that is to be made, with what the disks before it take. Of a refusal it tells of the pool
// that came nearest.
func (in *Input) choose(d, node int, allotted *Allotment, before []int16) (int, Shortage) {
	disk := &in.Disks[d]
	copied := in.copies(d, node)
	nearest := Shortage{Cause: DiskNoPools, Disk: d, Pool: -1}
	if !copied && !in.hasImage(disk, node) { // a copy of a disk is whole
		return 0, Shortage{Cause: DiskNoImage, Disk: d, Pool: in.pool(disk.ImagePool)}
	}
	if disk.Wanted != "" && in.pool(disk.Wanted) < 0 {
		return 0, Shortage{Cause: DiskNoPool, Disk: d, Pool: -1}
	}
	chosen, chosenRoom := -1, room{}
	for p := range in.Columns.Pools {
		pool := &in.Columns.Pools[p]
		// Disks are copied between local pools: one of a shared pool never has to be, and stays a thin copy.
		if disk.Wanted != "" && pool.ID != disk.Wanted || copied && pool.Shared {
			continue
		}
		one := in.roomOf(p, node, allotted, before)
		one.own = copied && pool.ID == disk.Pool
		if short := in.fits(d, p, node, one.left); short.Cause != "" {
			if nearness(&short) > nearness(&nearest) || nearness(&short) == nearness(&nearest) && short.Available > nearest.Available {
				nearest = short
			}
			continue
		}
		if chosen < 0 || one.before(&chosenRoom, in.DispersePools) {
			chosen, chosenRoom = p, one
		}
	}
	if chosen < 0 {
		return 0, nearest
	}
	return chosen, Shortage{}
}

// room is what decides among the pools of a node.
type room struct {
	own     bool        // the disk that is copied is in it on the other node
	volumes int         // of the customer
	left    units.Bytes // to promise
}

func (in *Input) roomOf(p, node int, allotted *Allotment, before []int16) room {
	figures := in.Columns.Pools[p].On(node)
	one := room{volumes: figures.Volumes, left: figures.Limit - figures.Promised}
	for _, d := range before {
		if int(allotted[d]) == p {
			one.volumes, one.left = one.volumes+1, one.left-in.Disks[d].Size
		}
	}
	return one
}

// before tells whether one pool is better than another: the one that a copied disk is in, with dispersion the one with fewer
// volumes of the customer, the one with more room. Equals keep the order of their IDs.
func (r *room) before(other *room, disperse bool) bool {
	switch {
	case r.own != other.own:
		return r.own
	case disperse && r.volumes != other.volumes:
		return r.volumes < other.volumes
	default:
		return r.left > other.left
	}
}

// fits judges one pool for a disk. What is left may be used up to the last byte.
func (in *Input) fits(d, p, node int, left units.Bytes) Shortage {
	if cause := in.without(p, node); cause != "" {
		return Shortage{Cause: cause, Disk: d, Pool: p}
	}
	size, figures := in.Disks[d].Size, in.Columns.Pools[p].On(node)
	switch {
	case size > figures.Capacity:
		return Shortage{Cause: DiskLarger, Disk: d, Pool: p, Needed: size, Available: figures.Capacity}
	case figures.Available <= 0:
		return Shortage{Cause: DiskFull, Disk: d, Pool: p, Needed: size, Available: figures.Available}
	case size > left:
		return Shortage{Cause: DiskShort, Disk: d, Pool: p, Needed: size, Available: left}
	}
	return Shortage{}
}

// nearness puts causes in order: the higher, the less is missing.
func nearness(short *Shortage) int {
	return slices.Index([]string{
		DiskNoPools, DiskNoPool, DiskUnknown, DiskInactive, DiskLarger, DiskFull, DiskShort,
	}, short.Cause)
}
