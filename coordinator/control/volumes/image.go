package volumes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/coordinator/view"
)

// takeBackPatience is how long an import that failed waits for agents to remove what they have of it.
const takeBackPatience = 30 * time.Second

// ImportImage puts a file into a pool as an image: once into a shared pool, and on each node of a local one that answers. Where
// it goes is written down first, as what nothing can use, and can be used once all have it. When it fails, nothing is left;
// what a crash or a silent node leaves goes with the image or is finished by doing it again. Importing the same file again
// brings it to a further pool, or to the nodes of a local pool that have come since. Refusals are of type *Error.
func (v *Volumes) ImportImage(ctx context.Context, request ImportImage) (model.Resource, error) {
	leave, err := v.alone("image/" + request.Name)
	if err != nil {
		return model.Resource{}, err
	}
	defer leave()
	coming, err := v.announce(ctx, request)
	if err != nil || coming.done {
		return coming.image, err
	}
	image := coming.image
	again := fmt.Sprintf("import it again, or remove what there is with 'berth image delete %s'", image.Name)
	if err := v.fetch(ctx, coming, request, again); err != nil {
		v.takeBack(ctx, coming, request)
		return model.Resource{}, err
	}
	volume := *image.VolumeIn(request.Pool)
	volume.Doomed = false
	if coming.more {
		volume.Nodes = append(slices.Clone(volume.Nodes), coming.nodes...)
		slices.Sort(volume.Nodes)
	}
	image = placed(image, volume)
	command := v.Command(importKind, request.RequestID, request.Caller)
	lead.Change(&command, image)
	command.Events = []model.Event{{
		At: command.At, Kind: "image.imported", Subject: nameOf(image), Caller: request.Caller,
		Message: fmt.Sprintf("%s of %s, %s as a guest sees it, in pool %s", request.Format, request.Size, request.Capacity, coming.pool),
	}}
	if err := v.ProposeEnd(ctx, command, nameOf(image), again); err != nil {
		return model.Resource{}, err
	}
	image, _ = v.Store.Snapshot().Resource(image.ID)
	return image, nil
}

// announced is an image that is written down and on its way.
type announced struct {
	image model.Resource
	pool  string // name of the one that it comes to
	made  bool   // the record was made for it
	done  bool   // it is there: the same request has imported it before

	nodes []string // IDs of those of a local pool that get it
	more  bool     // others have it already, and it is in use
}

// announce writes an image down before the first byte of it goes anywhere.
func (v *Volumes) announce(ctx context.Context, request ImportImage) (coming announced, err error) {
	err = v.InTurn(ctx, "image/"+request.Name, func() (lead.Retry, error) {
		snapshot, again, err := v.Ready()
		if again != lead.Decided || err != nil {
			return again, err
		}
		image, exists := snapshot.ResourceByName(model.KindImage, request.Name)
		coming = announced{image: image, made: !exists}
		there := image.VolumeIn(request.Pool)
		usable := there != nil && !there.Doomed
		if usable && snapshot.Answered(request.RequestID, importKind) {
			coming.done = true
			return lead.Decided, nil
		}
		if err := importable(image, exists, request); err != nil {
			return lead.Decided, err
		}
		view := v.Inventory.View(snapshot, v.Now())
		pool, err := poolOf(view, request.Pool)
		if err != nil {
			return lead.Decided, err
		}
		coming.pool = pool.Record.Name
		if coming.nodes, err = v.takers(snapshot, &pool, image, there, request); err != nil {
			return lead.Decided, err
		}
		if coming.more = usable; coming.more {
			return lead.Decided, nil
		}
		if !exists {
			image = model.Resource{ID: v.NewID(), Kind: model.KindImage, Name: request.Name, CreatedAt: v.Now()}
			if request.Offer != "" {
				image.Links = map[string]string{schema.LinkOffer: request.Offer}
			}
		}
		image = placed(image, model.Volume{
			Pool: request.Pool, Nodes: coming.nodes, Name: volumeName(image, request), Format: request.Format,
			Capacity: request.Capacity, Checksum: request.Checksum, Doomed: true,
		})
		command := v.Command("announce image", "", request.Caller)
		lead.Change(&command, image)
		command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: request.Pool, Revision: pool.Record.Revision})
		image.Revision, again, err = v.ProposeOnce(ctx, command, nameOf(image))
		coming.image = image
		return again, err
	})
	return coming, err
}

// volumeName is what an image is called in a pool. Two pools may be one directory: no copy has the name of another.
func volumeName(image model.Resource, request ImportImage) string {
	if there := image.VolumeIn(request.Pool); there != nil {
		return there.Name // what a try has left of it goes by that
	}
	if image.Volume == nil {
		return model.VolumeName(image.ID, request.Format)
	}
	return model.VolumeName(image.ID+"-"+request.Pool, request.Format)
}

// placed is an image with a volume, in the place of the one that it has in the volume's pool or as one more.
func placed(image model.Resource, volume model.Volume) model.Resource {
	if image.Volume == nil || image.Volume.Pool == volume.Pool {
		image.Volume = &volume
		return image
	}
	image.Copies = slices.Clone(image.Copies)
	if there := image.VolumeIn(volume.Pool); there != nil {
		*there = volume
	} else {
		image.Copies = append(image.Copies, volume)
	}
	return image
}

// unplaced is an image that has no volume in a pool. Another place becomes its first one if that goes.
func unplaced(image model.Resource, pool string) model.Resource {
	image.Copies = slices.DeleteFunc(slices.Clone(image.Copies), func(volume model.Volume) bool { return volume.Pool == pool })
	if image.Volume.Pool == pool {
		image.Volume = nil
		if len(image.Copies) > 0 {
			image.Volume, image.Copies = &image.Copies[0], image.Copies[1:]
		}
	}
	if len(image.Copies) == 0 {
		image.Copies = nil
	}
	return image
}

// importable refuses a name that is another image's, and an image that is something else already.
func importable(image model.Resource, exists bool, request ImportImage) error {
	refuse := func(code lead.Code, next, format string, args ...any) error {
		return &lead.Error{Code: code, Subject: "image/" + request.Name, Message: fmt.Sprintf(format, args...), NextStep: next}
	}
	if err := model.ValidateName("image", request.Name); err != nil {
		return refuse(lead.Invalid, "choose another name", "%s", err)
	}
	if request.Capacity < model.MinVolume || request.Capacity > model.MaxVolume {
		return refuse(
			lead.Invalid, "import another file", "the image has %s as a guest sees it, want %s to %s", request.Capacity, model.MinVolume,
			model.MaxVolume,
		)
	}
	switch volume := image.Volume; {
	case !exists:
		return nil
	case request.Offer != "" && image.Links[schema.LinkOffer] != request.Offer:
		return refuse(lead.Conflict, "leave the offer out", "image %q is declared with another offer", image.Name)
	case image.Settings[schema.SettingPath] != "":
		return refuse(lead.Exists, "choose another name", "image %q is a file on the nodes (%s)", image.Name, image.Settings[schema.SettingPath])
	case volume == nil:
		return nil // declared, for its keys or offer, and not filled yet
	case !volume.Doomed && (volume.Checksum != request.Checksum || volume.Format != request.Format):
		return refuse(lead.Exists, fmt.Sprintf("choose another name, or delete it first with 'berth image delete %s'", image.Name),
			"image %q is another file: %s, SHA-256 %s", image.Name, volume.Format, volume.Checksum)
	case !volume.Doomed:
		if there := image.VolumeIn(request.Pool); there == nil || there.Doomed || len(there.Nodes) > 0 {
			return nil // a further pool, or further nodes of a local one
		}
		return refuse(lead.Exists, "import it into another pool, or see 'berth image show "+image.Name+"'",
			"image %q has been imported already, into this pool", image.Name)
	case volume.Checksum != request.Checksum || volume.Pool != request.Pool || volume.Format != request.Format:
		return refuse(lead.Conflict, fmt.Sprintf("remove what there is of it with 'berth image delete %s'", image.Name),
			"image %q is being removed, or another file or pool was begun with", image.Name)
	default:
		return nil
	}
}

// takers are the nodes of a local pool that get the image, by ID; of a shared pool there are none to name. All that answer
// have to have room. Before is what there is of the image in the pool; nil: nothing.
func (v *Volumes) takers(
	snapshot *state.Snapshot, pool *view.PoolView, image model.Resource, before *model.Volume, request ImportImage,
) ([]string, error) {
	seen := v.seenBy(pool)
	if len(seen) == 0 {
		return nil, vanished(snapshot, pool)
	}
	if before != nil && !before.Doomed {
		seen = slices.DeleteFunc(seen, func(node string) bool { return slices.Contains(before.Nodes, node) })
		if len(seen) == 0 {
			return nil, &lead.Error{
				Code: lead.Exists, Subject: nameOf(image), Message: fmt.Sprintf(
					"image %q has been imported already, and every node of pool %s that answers has it", image.Name, pool.Record.Name,
				),
				NextStep: fmt.Sprintf("see 'berth image show %s'", image.Name),
			}
		}
	}
	for _, node := range seen {
		if err := v.takes(snapshot, pool, node, before, request); err != nil {
			return nil, err
		}
	}
	if pool.Settings.Scope == model.PoolShared {
		return nil, nil
	}
	if before != nil && before.Doomed {
		seen = append(seen, before.Nodes...) // one that had begun has to finish, or it would keep what it has
		slices.Sort(seen)
		seen = slices.Compact(seen)
	}
	return seen, nil
}

// takes refuses an image that a node's pool has no room for. What was begun before has its room already.
func (v *Volumes) takes(snapshot *state.Snapshot, pool *view.PoolView, node string, before *model.Volume, request ImportImage) error {
	share, known := pool.Share(node)
	if !known {
		return vanished(snapshot, pool)
	}
	where := ""
	if pool.Settings.Scope == model.PoolLocal {
		where = " of " + lead.NodeName(snapshot, node)
	}
	counted := *share
	if before != nil && (len(before.Nodes) == 0 || slices.Contains(before.Nodes, node)) {
		counted.Promised -= before.Capacity
	}
	if err := room(pool, &counted, request.Capacity, where); err != nil {
		return err
	}
	if share.Available < request.Size {
		return &lead.Error{
			Code: lead.Conflict, Subject: nameOf(pool.Record), Message: fmt.Sprintf(
				"pool %s%s has %s free, and the file has %s", pool.Record.Name, where, share.Available, request.Size,
			),
			NextStep: "make room, or choose another pool",
		}
	}
	return nil
}

// fetch has every node take the file, one after another. What an earlier try left there goes before.
func (v *Volumes) fetch(ctx context.Context, coming announced, request ImportImage, again string) error {
	snapshot, image := v.Store.Snapshot(), coming.image
	order, err := estate.DiskOrder(snapshot, image, request.Pool)
	if err != nil {
		return &lead.Error{Code: lead.Invalid, Subject: nameOf(image), Message: err.Error(), NextStep: again}
	}
	nodes := coming.nodes
	if len(nodes) == 0 {
		if nodes, err = v.workers(snapshot, v.Inventory.View(snapshot, v.Now()), image.VolumeIn(request.Pool)); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if err := v.Perform(ctx, snapshot, node, nameOf(image), again, lead.Task{Remove: []model.VolumeOrder{order}}); err != nil {
			return err
		}
		if err := v.fetchTo(ctx, snapshot, node, image, order, request, again); err != nil {
			return err
		}
	}
	return nil
}

func (v *Volumes) fetchTo(
	ctx context.Context, snapshot *state.Snapshot, node string, image model.Resource, order model.VolumeOrder,
	request ImportImage, again string,
) (err error) {
	content, err := request.Open()
	if err != nil {
		return fmt.Errorf("open the file of image %s: %w", image.Name, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return v.Perform(ctx, snapshot, node, nameOf(image), again, lead.Task{Fetch: &lead.FetchVolume{
		Volume: order, Size: request.Size, Checksum: request.Checksum, Content: content,
	}})
}

// takeBack removes what an import that failed has left. What it cannot be sure of stays written down, as what nothing can use.
func (v *Volumes) takeBack(ctx context.Context, coming announced, request ImportImage) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackPatience)
	defer cancel()
	image := coming.image
	err := v.clearVolume(ctx, v.Store.Snapshot(), image, request.Pool, "", coming.nodes...)
	if err == nil && !coming.more {
		command := v.Command("take image back", "", request.Caller)
		if coming.made {
			lead.Remove(&command, image)
		} else {
			lead.Change(&command, unplaced(image, request.Pool))
		}
		err = v.ProposeEnd(ctx, command, nameOf(image), "")
	}
	if err != nil {
		v.Logger.Warn("an import that failed may have left volumes: 'berth image delete' removes them", "image", image.Name, "error", err)
	}
}
