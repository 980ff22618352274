package constraint

import (
	"math"
	"strconv"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
	"berth/shared/units"
)

// storage checks whether the VM can have its disks on the node: the existing ones can be reached from there, and some pool
// there has room for the others.
var storage = Constraint{
	Name: "storage",
	Doc: "The VM's disks that are volumes can be had on the node: their pools are active there, those in a local pool are " +
		"on this node, and what is to be made has room in a pool.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		if len(in.Disks) == 0 {
			return rule.Pass()
		}
		_, short := in.Allot(node)
		if short.Cause == "" {
			return in.AsTold(node, rule.Pass())
		}
		verdict := in.AsTold(node, rule.Refuse(short.Cause))
		switch short.Cause {
		case rule.DiskShort, rule.DiskLarger, rule.DiskFull:
			verdict.Needed, verdict.Available, verdict.Unit = float64(short.Needed), float64(short.Available), rule.Bytes
		}
		return verdict
	},
	Say: func(in *rule.Input, node int, _ rule.Verdict) string {
		_, short := in.Allot(node)
		return sayShortage(in, &short)
	},
	Relax: func(in *rule.Input, node int, _ rule.Verdict) (rule.Relaxation, bool) {
		switch _, short := in.Allot(node); short.Cause {
		case rule.DiskElsewhere:
			return copied(in, node)
		case rule.DiskShort:
			return promisedMore(in, node, &short)
		default:
			return rule.Relaxation{}, false
		}
	},
	Sweep: func(in *rule.Input, out []bool) {
		if len(in.Disks) == 0 {
			return
		}
		for node := range out {
			if !out[node] {
				_, short := in.Allot(node)
				out[node] = short.Cause != ""
			}
		}
	},
}

// sayShortage says what one disk is missing.
func sayShortage(in *rule.Input, short *rule.Shortage) string {
	disk := &in.Disks[short.Disk]
	who, pool := "disk "+disk.Name, "its pool"
	if short.Pool >= 0 {
		pool = "pool " + in.Columns.Pools[short.Pool].Name
	}
	switch short.Cause {
	case rule.DiskElsewhere:
		home := disk.Node
		if node, found := in.Columns.Index(home); found {
			home = in.Name(node)
		}
		return who + " is in the local " + pool + " of " + home
	case rule.DiskNoPool:
		switch {
		case short.Pool < 0 && disk.Pool == "":
			return who + " is to be made in a pool that is none of this cluster's"
		case short.Pool < 0:
			return who + " is in a pool that is none of this cluster's"
		}
		return "the node has no " + pool + ", which " + who + " needs"
	case rule.DiskInactive:
		return pool + " is not active on the node, and " + who + " needs it"
	case rule.DiskUnknown:
		return "the node's storage pools could not be listed, and " + who + " needs one"
	case rule.DiskNoImage:
		return "the node has not got image " + disk.Image + ", which " + who + " is a copy of"
	case rule.DiskFull:
		return pool + " is full, and " + who + " needs " + disk.Size.String()
	case rule.DiskLarger:
		is, needs := short.Available.String(), short.Needed.String()
		if is == needs {
			is, needs = apart(short.Available, short.Needed)
		}
		return pool + " has " + is + " in all, " + who + " needs " + needs
	case rule.DiskShort:
		is, needs := max(short.Available, 0).String(), short.Needed.String()
		if is == needs {
			is, needs = apart(short.Available, short.Needed)
		}
		return pool + " has " + is + " left to promise, " + who + " needs " + needs
	default:
		return "the cluster has no storage pool for " + who
	}
}

// copied is the change that takes disks of local pools along.
func copied(in *rule.Input, node int) (rule.Relaxation, bool) {
	if in.Current == "" || in.CopyStorage {
		return rule.Relaxation{}, false
	}
	return rule.Relaxation{
		Text:  "with its disks copied along, " + in.Name(node) + " would take it",
		Apply: func(_ *view.Figures, in *rule.Input) { in.CopyStorage = true },
	}, true
}

// promisedMore is the change that promises more of a pool than there is of it.
func promisedMore(in *rule.Input, node int, short *rule.Shortage) (rule.Relaxation, bool) {
	pool := &in.Columns.Pools[short.Pool]
	figures := pool.On(node)
	more := float64(figures.Limit) + float64(short.Needed-short.Available)
	hundredths := math.Ceil(more / float64(figures.Capacity) * 100)
	if float64(figures.Capacity)*(hundredths/100) < more { // what is promised is rounded down
		hundredths++
	}
	ratio := hundredths / 100
	if ratio > model.MaxOverProvisioning {
		return rule.Relaxation{}, false
	}
	limit := units.Bytes(float64(figures.Capacity) * ratio)
	return rule.Relaxation{
		Text: "with " + model.SettingOverProvisioning + " " + strconv.FormatFloat(ratio, 'g', -1, 64) + " of pool " +
			pool.Name + ", " + in.Name(node) + " would take it",
		Cost: float64(limit - figures.Limit),
		Apply: func(alone *view.Figures, _ *rule.Input) {
			for i := range alone.Pools {
				if alone.Pools[i].ID == pool.ID {
					alone.Pools[i].On(0).Limit = limit
				}
			}
		},
	}, true
}
