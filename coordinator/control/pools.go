package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
	"berth/shared/units"
)

// poolOf finds a storage pool with what is promised of it.
func poolOf(view *cluster.View, id string) (cluster.PoolView, error) {
	pools := view.Pools()
	at := slices.IndexFunc(pools, func(p cluster.PoolView) bool { return p.Record.ID == id })
	if at < 0 {
		return cluster.PoolView{}, &Error{
			Code: NotFound, Subject: "pool/" + id, Message: fmt.Sprintf("there is no storage pool %q", id), NextStep: "see 'berth pool list'",
		}
	}
	return pools[at], nil
}

// room refuses to promise more of one share of a pool than may be, or anything of one that is full.
func room(pool *cluster.PoolView, share *cluster.PoolShare, size units.Bytes, where string) error {
	left := share.Limit - share.Promised
	refuse := func(next, format string, args ...any) error {
		return &Error{
			Code: Conflict, Subject: "pool/" + pool.Record.Name,
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

// provisioned is how the limit of a share comes about.
func provisioned(pool *cluster.PoolView, share *cluster.PoolShare) string {
	if pool.Settings.OverProvisioning == 1 {
		return "its capacity"
	}
	return fmt.Sprintf("%s at %g times", share.Capacity, pool.Settings.OverProvisioning)
}

// seenBy are the nodes that answer and have a pool in use, in the order of their IDs.
func (c *Control) seenBy(pool *cluster.PoolView) []string {
	var nodes []string
	for i := range pool.Shares {
		for _, id := range pool.Shares[i].Nodes {
			if c.Inventory.Facts(id, c.Now()).Liveness == cluster.Up {
				nodes = append(nodes, id)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

// workers are the nodes that have to work on a volume: those that have it in a local pool, or one that sees the shared pool.
func (c *Control) workers(snapshot *state.Snapshot, view *cluster.View, volume *cluster.Volume) ([]string, error) {
	if len(volume.Nodes) > 0 {
		return volume.Nodes, nil
	}
	pool, err := poolOf(view, volume.Pool)
	if err != nil {
		return nil, err
	}
	seen := c.seenBy(&pool)
	if len(seen) == 0 {
		return nil, vanished(snapshot, &pool)
	}
	return seen[:1], nil
}

// vanished tells that no node has a pool in use, and why not.
func vanished(snapshot *state.Snapshot, pool *cluster.PoolView) error {
	var why []string
	for i := range pool.Shares {
		for _, lack := range pool.Shares[i].Missing {
			why = append(why, nodeName(snapshot, lack.Node)+": "+lack.String())
		}
	}
	message := fmt.Sprintf("no node of cluster %s that answers has pool %s in use", pool.Cluster, pool.Record.Name)
	if len(why) > 0 {
		message += " (" + strings.Join(why, "; ") + ")"
	}
	return &Error{
		Code: Unavailable, Subject: "pool/" + pool.Record.Name, Message: message,
		NextStep: fmt.Sprintf("see 'berth pool show %s'; start it there with 'virsh pool-start %s'", pool.Record.Name, pool.Settings.Source),
	}
}

// perform has a node do a task, and tells in words what became of it if it was not done.
func (c *Control) perform(ctx context.Context, snapshot *state.Snapshot, node, subject, again string, task Task) error {
	_, err := c.Agents.Perform(ctx, node, task)
	var refused *TaskError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &Error{
			Code: codeOf(refused.Code), Subject: subject, Message: fmt.Sprintf("node %s: %s", nodeName(snapshot, node), refused.Message), NextStep: again,
			cause: refused,
		}
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return &Error{Code: Unavailable, Subject: subject, Message: err.Error(), NextStep: again}
	}
}

// codeOf is the code of an agent's word.
func codeOf(word string) Code {
	switch word {
	case "busy":
		return Busy
	case "invalid":
		return Invalid
	case "unsupported", "unavailable":
		return Unavailable
	default:
		return Conflict
	}
}

// clearVolume removes the volume that a disk or an image has in a pool from nodes, by ID, or from wherever it is. A volume that
// is not there is removed.
func (c *Control) clearVolume(
	ctx context.Context, snapshot *state.Snapshot, record cluster.Resource, pool, again string, nodes ...string,
) error {
	order, err := estate.DiskOrder(snapshot, record, pool)
	if err != nil {
		return &Error{Code: Invalid, Subject: nameOf(record), Message: err.Error(), NextStep: "this is a defect of berth: please report it"}
	}
	if len(nodes) == 0 {
		if nodes, err = c.workers(snapshot, c.Inventory.View(snapshot, c.Now()), record.VolumeIn(pool)); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if err := c.perform(ctx, snapshot, node, nameOf(record), again, Task{Remove: []cluster.VolumeOrder{order}}); err != nil {
			return err
		}
	}
	return nil
}

// nameOf is how people are told of a resource.
func nameOf(record cluster.Resource) string { return string(record.Kind) + "/" + record.Name }
