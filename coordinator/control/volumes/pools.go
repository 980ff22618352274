package volumes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/shared/units"
)

// poolOf finds a storage pool with what is promised of it.
func poolOf(v *view.View, id string) (view.PoolView, error) {
	pools := v.Pools()
	at := slices.IndexFunc(pools, func(p view.PoolView) bool { return p.Record.ID == id })
	if at < 0 {
		return view.PoolView{}, &lead.Error{
			Code: lead.NotFound, Subject: "pool/" + id, Message: fmt.Sprintf("there is no storage pool %q", id), NextStep: "see 'berth pool list'",
		}
	}
	return pools[at], nil
}

// room refuses to promise more of one share of a pool than may be, or anything of one that is full.
func room(pool *view.PoolView, share *view.PoolShare, size units.Bytes, where string) error {
	left := share.Limit - share.Promised
	refuse := func(next, format string, args ...any) error {
		return &lead.Error{
			Code: lead.Conflict, Subject: "pool/" + pool.Record.Name,
			Message: fmt.Sprintf("pool %s%s ", pool.Record.Name, where) + fmt.Sprintf(format, args...), NextStep: next,
		}
	}
	switch {
	case size > share.Limit:
		return refuse("choose a larger pool, or raise its over_provisioning",
			"has %s in all (%s), and %s is needed", share.Limit, provisioned(pool, share), size)
	case size > left:
		return refuse("delete what is of no use any more, or raise the pool's over_provisioning",
			"has %s left to promise of %s (%s), and %s is needed", max(left, 0), share.Limit, provisioned(pool, share), size)
	case share.Available <= 0:
		return refuse("make room on its nodes", "is full")
	default:
		return nil
	}
}

// roomOn refuses a new volume of a size in a pool, by ID, for a VM on a node.
func (v *Volumes) roomOn(snapshot *state.Snapshot, id, node string, size units.Bytes) error {
	pool, err := poolOf(v.Inventory.View(snapshot, v.Now()), id)
	if err != nil {
		return err
	}
	name := lead.NodeName(snapshot, node)
	share, known := pool.Share(node)
	here := known && slices.Contains(share.Nodes, node)
	switch {
	case here && len(share.Nodes) > 1:
		return room(&pool, share, size, "")
	case here:
		return room(&pool, share, size, " of "+name)
	}
	why := fmt.Sprintf("it is a pool of cluster %s, and the node is not in that", pool.Cluster)
	next := "see 'berth pool list', and name a pool of its cluster"
	for i := range pool.Shares {
		for _, lack := range pool.Shares[i].Missing {
			if lack.Node == node {
				why = lack.String()
				next = fmt.Sprintf("see 'berth pool show %s'; start it there with 'virsh pool-start %s'", pool.Record.Name, pool.Settings.Source)
			}
		}
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "pool/" + pool.Record.Name,
		Message: fmt.Sprintf("node %s cannot use pool %s: %s", name, pool.Record.Name, why), NextStep: next,
	}
}

// provisioned is how the limit of a share comes about.
func provisioned(pool *view.PoolView, share *view.PoolShare) string {
	if pool.Settings.OverProvisioning == 1 {
		return "its capacity"
	}
	return fmt.Sprintf("%s at %g times", share.Capacity, pool.Settings.OverProvisioning)
}

// seenBy are the nodes that answer and have a pool in use, in the order of their IDs.
func (v *Volumes) seenBy(pool *view.PoolView) []string {
	var nodes []string
	for i := range pool.Shares {
		for _, id := range pool.Shares[i].Nodes {
			if v.Inventory.Facts(id, v.Now()).Liveness == model.Up {
				nodes = append(nodes, id)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

// workers are the nodes that have to work on a volume: those that have it in a local pool, or one that sees the shared pool.
func (v *Volumes) workers(snapshot *state.Snapshot, view *view.View, volume *model.Volume) ([]string, error) {
	if len(volume.Nodes) > 0 {
		return volume.Nodes, nil
	}
	pool, err := poolOf(view, volume.Pool)
	if err != nil {
		return nil, err
	}
	seen := v.seenBy(&pool)
	if len(seen) == 0 {
		return nil, vanished(snapshot, &pool)
	}
	return seen[:1], nil
}

// vanished tells that no node has a pool in use, and why not.
func vanished(snapshot *state.Snapshot, pool *view.PoolView) error {
	var why []string
	for i := range pool.Shares {
		for _, lack := range pool.Shares[i].Missing {
			why = append(why, lead.NodeName(snapshot, lack.Node)+": "+lack.String())
		}
	}
	message := fmt.Sprintf("no node of cluster %s that answers has pool %s in use", pool.Cluster, pool.Record.Name)
	if len(why) > 0 {
		message += " (" + strings.Join(why, "; ") + ")"
	}
	return &lead.Error{
		Code: lead.Unavailable, Subject: "pool/" + pool.Record.Name, Message: message,
		NextStep: fmt.Sprintf("see 'berth pool show %s'; start it there with 'virsh pool-start %s'", pool.Record.Name, pool.Settings.Source),
	}
}

// clearVolume removes the volume that a disk or an image has in a pool from nodes, by ID, or from wherever it is. A volume that
// is not there is removed.
func (v *Volumes) clearVolume(
	ctx context.Context, snapshot *state.Snapshot, record model.Resource, pool, again string, nodes ...string,
) error {
	order, err := estate.DiskOrder(snapshot, record, pool)
	if err != nil {
		return &lead.Error{Code: lead.Invalid, Subject: nameOf(record), Message: err.Error(), NextStep: "this is a defect of berth: please " +
			"report it"}
	}
	if len(nodes) == 0 {
		if nodes, err = v.workers(snapshot, v.Inventory.View(snapshot, v.Now()), record.VolumeIn(pool)); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if err := v.Perform(ctx, snapshot, node, nameOf(record), again, lead.Task{Remove: []model.VolumeOrder{order}}); err != nil {
			return err
		}
	}
	return nil
}

// nameOf is how people are told of a resource.
func nameOf(record model.Resource) string { return string(record.Kind) + "/" + record.Name }

// Remover is the node that removes volumes of a VM: the one of the nodes with local pools that have some of them, or one that sees
// the shared pools. One that does not answer now does so later: the operation waits for it.
func (v *Volumes) Remover(snapshot *state.Snapshot, vm model.VM, orders []model.VolumeOrder, nodes []string) (string, error) {
	if len(nodes) > 1 {
		return "", &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf(
				"the disks of VM %q are on %s and %s", vm.Name, lead.NodeName(snapshot, nodes[0]), lead.NodeName(snapshot, nodes[1]),
			),
			NextStep: "take those of one node from the VM, and delete them by themselves",
		}
	}
	if len(nodes) == 1 {
		return nodes[0], nil
	}
	view := v.Inventory.View(snapshot, v.Now())
	var all []string // that see every pool
	for i, volume := range orders {
		pool, err := poolOf(view, volume.Pool)
		if err != nil {
			return "", err
		}
		seen := v.seenBy(&pool)
		if i == 0 {
			all = seen
		}
		all = slices.DeleteFunc(all, func(node string) bool { return !slices.Contains(seen, node) })
		if len(all) == 0 {
			return "", vanished(snapshot, &pool)
		}
	}
	return all[0], nil
}
