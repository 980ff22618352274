package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
)

// takeBackPatience is how long an import that failed waits for agents to remove what they have of it.
const takeBackPatience = 30 * time.Second

// ImportImage puts a file into a pool as an image: once into a shared pool, and on each node of a local one that answers. The
// image is written down first, as one that nothing can use, and can be used once all have it. When it fails, nothing is left;
// what a crash or a silent node leaves goes with the image or is finished by doing it again. Importing the same file again
// brings it to the nodes of a local pool that have come since. Refusals are of type *Error.
func (c *Control) ImportImage(ctx context.Context, request ImportImage) (cluster.Resource, error) {
	leave, err := c.alone("image/" + request.Name)
	if err != nil {
		return cluster.Resource{}, err
	}
	defer leave()
	coming, err := c.announce(ctx, request)
	if err != nil || coming.done {
		return coming.image, err
	}
	image := coming.image
	again := fmt.Sprintf("import it again, or remove what there is with 'berth image delete %s'", image.Name)
	if err := c.fetch(ctx, coming, request, again); err != nil {
		c.takeBack(ctx, coming, request.Caller)
		return cluster.Resource{}, err
	}
	volume := *image.Volume
	volume.Doomed = false
	if coming.more {
		volume.Nodes = append(slices.Clone(volume.Nodes), coming.nodes...)
		slices.Sort(volume.Nodes)
	}
	image.Volume = &volume
	command := c.storageCommand(importKind, request.RequestID, request.Caller)
	change(&command, image)
	command.Events = []cluster.Event{{
		At: command.At, Kind: "image.imported", Subject: nameOf(image), Caller: request.Caller,
		Message: fmt.Sprintf("%s of %s, %s as a guest sees it, in pool %s", request.Format, request.Size, request.Capacity, coming.pool),
	}}
	if err := c.finish(ctx, command, nameOf(image), again); err != nil {
		return cluster.Resource{}, err
	}
	image, _ = c.Store.Snapshot().Resource(image.ID)
	return image, nil
}

// announced is an image that is written down and on its way.
type announced struct {
	image cluster.Resource
	pool  string // name
	made  bool   // the record was made for it
	done  bool   // it is there: the same request has imported it before

	nodes []string // IDs of those of a local pool that get it
	more  bool     // others have it already, and it is in use
}

// announce writes an image down before the first byte of it goes anywhere.
func (c *Control) announce(ctx context.Context, request ImportImage) (coming announced, err error) {
	err = c.plan(ctx, "image/"+request.Name, func() (retry, error) {
		snapshot, again, err := c.ready()
		if again != decided || err != nil {
			return again, err
		}
		image, exists := snapshot.ResourceByName(cluster.KindImage, request.Name)
		coming = announced{image: image, made: !exists}
		if exists && image.Volume != nil && !image.Volume.Doomed && snapshot.Answered(request.RequestID, importKind) {
			coming.done = true
			return decided, nil
		}
		if err := importable(image, exists, request); err != nil {
			return decided, err
		}
		view := c.Inventory.View(snapshot, c.Now())
		pool, err := poolOf(view, request.Pool)
		if err != nil {
			return decided, err
		}
		coming.pool = pool.Record.Name
		if coming.nodes, err = c.takers(snapshot, &pool, image, request); err != nil {
			return decided, err
		}
		if coming.more = exists && image.Volume != nil && !image.Volume.Doomed; coming.more {
			return decided, nil
		}
		if !exists {
			image = cluster.Resource{ID: c.newID(), Kind: cluster.KindImage, Name: request.Name, CreatedAt: c.Now()}
			if request.Offer != "" {
				image.Links = map[string]string{estate.LinkOffer: request.Offer}
			}
		}
		image.Volume = &cluster.Volume{
			Pool: request.Pool, Nodes: coming.nodes, Name: cluster.VolumeName(image.ID, request.Format), Format: request.Format,
			Capacity: request.Capacity, Checksum: request.Checksum, Doomed: true,
		}
		command := c.storageCommand("announce image", "", request.Caller)
		change(&command, image)
		command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: request.Pool, Revision: pool.Record.Revision})
		image.Revision, again, err = c.once(ctx, command, nameOf(image))
		coming.image = image
		return again, err
	})
	return coming, err
}

// importable refuses a name that is another image's, and an image that is something else already.
func importable(image cluster.Resource, exists bool, request ImportImage) error {
	refuse := func(code Code, next, format string, args ...any) error {
		return &Error{Code: code, Subject: "image/" + request.Name, Message: fmt.Sprintf(format, args...), NextStep: next}
	}
	if err := cluster.ValidateName("image", request.Name); err != nil {
		return refuse(Invalid, "choose another name", "%s", err)
	}
	if request.Capacity < cluster.MinVolume || request.Capacity > cluster.MaxVolume {
		return refuse(Invalid, "import another file", "the image has %s as a guest sees it, want %s to %s", request.Capacity, cluster.MinVolume, cluster.MaxVolume)
	}
	switch volume := image.Volume; {
	case !exists:
		return nil
	case request.Offer != "" && image.Links[estate.LinkOffer] != request.Offer:
		return refuse(Conflict, "leave the offer out", "image %q is declared with another offer", image.Name)
	case image.Settings[estate.SettingPath] != "":
		return refuse(Exists, "choose another name", "image %q is a file on the nodes (%s)", image.Name, image.Settings[estate.SettingPath])
	case volume == nil:
		return nil // declared, for its keys or offer, and not filled yet
	case !volume.Doomed && (len(volume.Nodes) == 0 || volume.Checksum != request.Checksum || volume.Pool != request.Pool):
		return refuse(Exists, fmt.Sprintf("choose another name, or delete it first with 'berth image delete %s'", image.Name),
			"image %q has been imported already", image.Name)
	case volume.Checksum != request.Checksum || volume.Pool != request.Pool || volume.Format != request.Format:
		return refuse(Conflict, fmt.Sprintf("remove what there is of it with 'berth image delete %s'", image.Name),
			"image %q is being removed, or another file or pool was begun with", image.Name)
	default:
		return nil
	}
}

// takers are the nodes of a local pool that get the image, by ID; of a shared pool there are none to name. All that answer
// have to have room.
func (c *Control) takers(snapshot *state.Snapshot, pool *cluster.PoolView, image cluster.Resource, request ImportImage) ([]string, error) {
	seen := c.seenBy(pool)
	if len(seen) == 0 {
		return nil, vanished(snapshot, pool)
	}
	if before := image.Volume; before != nil && !before.Doomed {
		seen = slices.DeleteFunc(seen, func(node string) bool { return slices.Contains(before.Nodes, node) })
		if len(seen) == 0 {
			return nil, &Error{
				Code: Exists, Subject: nameOf(image), Message: fmt.Sprintf("image %q has been imported already, and every node of pool %s that answers has it", image.Name, pool.Record.Name),
				NextStep: fmt.Sprintf("see 'berth image show %s'", image.Name),
			}
		}
	}
	for _, node := range seen {
		if err := c.takes(snapshot, pool, node, image.Volume, request); err != nil {
			return nil, err
		}
	}
	if pool.Settings.Scope == cluster.PoolShared {
		return nil, nil
	}
	if image.Volume != nil && image.Volume.Doomed {
		seen = append(seen, image.Volume.Nodes...) // one that had begun has to finish, or it would keep what it has
		slices.Sort(seen)
		seen = slices.Compact(seen)
	}
	return seen, nil
}

// takes refuses an image that a node's pool has no room for. What was begun before has its room already.
func (c *Control) takes(snapshot *state.Snapshot, pool *cluster.PoolView, node string, before *cluster.Volume, request ImportImage) error {
	share, known := shareOf(pool, node)
	if !known {
		return vanished(snapshot, pool)
	}
	where := ""
	if pool.Settings.Scope == cluster.PoolLocal {
		where = " of " + nodeName(snapshot, node)
	}
	counted := *share
	if before != nil && (len(before.Nodes) == 0 || slices.Contains(before.Nodes, node)) {
		counted.Promised -= before.Capacity
	}
	if err := room(pool, &counted, request.Capacity, where); err != nil {
		return err
	}
	if share.Available < request.Size {
		return &Error{
			Code: Conflict, Subject: nameOf(pool.Record), Message: fmt.Sprintf("pool %s%s has %s free, and the file has %s", pool.Record.Name, where, share.Available, request.Size),
			NextStep: "make room, or choose another pool",
		}
	}
	return nil
}

// fetch has every node take the file, one after another. What an earlier try left there goes before.
func (c *Control) fetch(ctx context.Context, coming announced, request ImportImage, again string) error {
	snapshot, image := c.Store.Snapshot(), coming.image
	order, err := estate.DiskOrder(snapshot, image)
	if err != nil {
		return &Error{Code: Invalid, Subject: nameOf(image), Message: err.Error(), NextStep: again}
	}
	nodes := coming.nodes
	if len(nodes) == 0 {
		if nodes, err = c.workers(snapshot, c.Inventory.View(snapshot, c.Now()), image.Volume); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if err := c.perform(ctx, snapshot, node, nameOf(image), again, Task{Remove: []cluster.VolumeOrder{order}}); err != nil {
			return err
		}
		if err := c.fetchTo(ctx, snapshot, node, image, order, request, again); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) fetchTo(
	ctx context.Context, snapshot *state.Snapshot, node string, image cluster.Resource, order cluster.VolumeOrder, request ImportImage, again string,
) (err error) {
	content, err := request.Open()
	if err != nil {
		return fmt.Errorf("open the file of image %s: %w", image.Name, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return c.perform(ctx, snapshot, node, nameOf(image), again, Task{Fetch: &FetchVolume{
		Volume: order, Size: request.Size, Checksum: request.Checksum, Content: content,
	}})
}

// takeBack removes what an import that failed has left. What it cannot be sure of stays written down, as what nothing can use.
func (c *Control) takeBack(ctx context.Context, coming announced, caller string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackPatience)
	defer cancel()
	image := coming.image
	err := c.clearVolumes(ctx, c.Store.Snapshot(), image, "", coming.nodes...)
	if err == nil && !coming.more {
		command := c.storageCommand("take image back", "", caller)
		if coming.made {
			remove(&command, image)
		} else {
			image.Volume = nil
			change(&command, image)
		}
		err = c.finish(ctx, command, nameOf(image), "")
	}
	if err != nil {
		c.Logger.Warn("an import that failed may have left volumes: 'berth image delete' removes them", "image", image.Name, "error", err)
	}
}
