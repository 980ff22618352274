package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/volumes"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// imported asks for an image of 2 GiB that is a file of eight bytes.
func imported(pool string) volumes.ImportImage {
	return volumes.ImportImage{
		Name: "debian", Pool: pool, Format: "qcow2", Size: 8, Capacity: 2 * units.GiB, Checksum: "abc", RequestID: "i", Caller: "operator/test",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(make([]byte, 8))), nil },
	}
}

func (w *world) image() model.Resource {
	found, _ := w.Store.Snapshot().ResourceByName(model.KindImage, "debian")
	return found
}

func TestAnImageComesToEveryNodeOfALocalPoolAndOnceIntoASharedOne(t *testing.T) {
	for pool, want := range map[string][]string{"p-fast": {"n1 debian", "n2 debian", "n3 debian"}, "p-wide": {"shared debian"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.put(pools()...)
			image, err := w.ImportImage(t.Context(), imported(pool))
			if err != nil {
				t.Fatal(err)
			}
			if volume := image.Volume; volume.Doomed || volume.Capacity != 2*units.GiB || volume.Checksum != "abc" || len(volume.Nodes)%3 != 0 {
				t.Errorf("%s: %+v", pool, volume)
			}
			w.wantLeft(want...)
			tasks := len(w.agents.tasks)
			if again, err := w.ImportImage(t.Context(), imported(pool)); err != nil || again.ID != image.ID || len(w.agents.tasks) != tasks {
				t.Errorf("%s: the same request again: %v, %d tasks", pool, err, len(w.agents.tasks)-tasks)
			}
			other := imported(pool)
			other.RequestID = "j"
			_, err = w.ImportImage(t.Context(), other)
			refusedAs(t, "another request", err, lead.Exists, "imported already")

			request := disked(pool)
			request.Root.Links = map[string]string{"image": image.ID}
			request.Root.Settings = nil
			w.must(request)
			synctest.Wait()
			if order := w.agents.ordered(operation.ActStart)[0]; order.Volumes[0].BackingName != image.Volume.Name ||
				order.Volumes[0].Capacity != 2*units.GiB {
				t.Errorf("%s: made as %+v", pool, order.Volumes[0])
			}
			err = w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID})
			refusedAs(t, "of a disk", err, lead.Conflict, `disk "web1-root" is a copy of it`)
		})
	}
}

func TestAnImportThatFailsLeavesNothing(t *testing.T) {
	broken := func(node string) func(string, lead.Task) error {
		return func(at string, task lead.Task) error {
			if at == node && task.Fetch != nil {
				return &lead.TaskError{Code: "no_space", Message: "the disk is full"}
			}
			return nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		w.agents.task = broken("n2")
		_, err := w.ImportImage(t.Context(), imported("p-fast"))
		refusedAs(t, "on the second node", err, lead.Conflict, "node node2: the disk is full")
		if image := w.image(); image.ID != "" {
			t.Errorf("left %+v", image)
		}
		w.wantLeft()
		// One that was declared before stays declared.
		w.put(model.Resource{ID: "i1", Kind: model.KindImage, Name: "debian"})
		_, err = w.ImportImage(t.Context(), imported("p-fast"))
		refusedAs(t, "of one that is declared", err, lead.Conflict, "the disk is full")
		if image := w.image(); image.ID != "i1" || image.Volume != nil {
			t.Errorf("left %+v", image)
		}
		w.agents.task = nil
		if image, err := w.ImportImage(t.Context(), imported("p-fast")); err != nil || image.ID != "i1" || len(image.Volume.Nodes) != 3 {
			t.Errorf("%+v, %v", image, err)
		}
	})
}

// A node that falls silent may have the image: it stays written down, of no use to anybody, until that is known.
func TestAnImportInDoubtIsFinishedOrRemoved(t *testing.T) {
	for _, finish := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.put(pools()...)
			w.agents.task = func(node string, task lead.Task) error {
				if node == "n2" && task.Fetch != nil {
					w.agents.away["n2"] = true
					return errors.New("the session ended")
				}
				return nil
			}
			large := imported("p-fast")
			large.Capacity = 60 * units.GiB // its room is taken once
			_, err := w.ImportImage(t.Context(), large)
			refusedAs(t, "in doubt", err, lead.Unavailable, "the session ended")
			image := w.image()
			if image.Volume == nil || !image.Volume.Doomed {
				t.Fatalf("left %+v", image.Volume)
			}
			request := disked("p-fast")
			request.Root.Links = map[string]string{"image": image.ID}
			if _, err := w.StartVM(t.Context(), request); err == nil {
				t.Error("a disk was made of half an image")
			}
			w.agents.task, w.agents.away = nil, map[string]bool{}
			other := imported("p-fast")
			other.Checksum = "def"
			_, err = w.ImportImage(t.Context(), other)
			refusedAs(t, "another file", err, lead.Conflict, "another file or pool")
			if !finish {
				if err := w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID}); err != nil {
					t.Fatal(err)
				}
				w.wantLeft()
				return
			}
			if image, err = w.ImportImage(t.Context(), large); err != nil || image.Volume.Doomed {
				t.Errorf("%+v, %v", image.Volume, err)
			}
			w.wantLeft("n1 debian", "n2 debian", "n3 debian")
		})
	}
}

func TestImagesThatNoPoolCanTakeAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *volumes.ImportImage)
		code   lead.Code
		saying string
	}{
		"no pool":    {func(_ *world, r *volumes.ImportImage) { r.Pool = "nope" }, lead.NotFound, "no storage pool"},
		"name":       {func(_ *world, r *volumes.ImportImage) { r.Name = "a b" }, lead.Invalid, "name"},
		"too large":  {func(_ *world, r *volumes.ImportImage) { r.Capacity = 200 * units.GiB }, lead.Conflict, "100 GiB in all"},
		"no size":    {func(_ *world, r *volumes.ImportImage) { r.Capacity = 0 }, lead.Invalid, "as a guest sees it"},
		"large file": {func(_ *world, r *volumes.ImportImage) { r.Size, r.Capacity = 95*units.GiB, 96*units.GiB }, lead.Conflict, "90 GiB free"},
		"vanished": {func(w *world, _ *volumes.ImportImage) {
			for _, node := range []string{"n1", "n2", "n3"} {
				w.facts.change(node, func(f *model.NodeFacts) { f.Pools = nil })
			}
		}, lead.Unavailable, "no node of cluster default"},
		"full": {func(w *world, _ *volumes.ImportImage) {
			w.facts.change("n3", func(f *model.NodeFacts) {
				f.Pools = []model.PoolFacts{{Name: "fast", Active: true, Capacity: units.TiB}}
			})
		}, lead.Conflict, "pool fast of node3 is full"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.put(pools()...)
			request := imported("p-fast")
			c.change(w, &request)
			_, err := w.ImportImage(t.Context(), request)
			refusedAs(t, name, err, c.code, c.saying)
			if len(w.agents.tasks) > 0 || w.image().ID != "" {
				t.Errorf("%s: %d tasks, image %+v", name, len(w.agents.tasks), w.image())
			}
		})
	}
}

// A node without the pool does without the image: it is refused for disks of it, and no reason to have no image at all.
func TestAnImageGoesWhereThePoolIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		w.facts.change("n2", func(f *model.NodeFacts) { f.Pools = nil })
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		image, err := w.ImportImage(t.Context(), imported("p-fast"))
		if err != nil || !slices.Equal(image.Volume.Nodes, []string{"n1"}) {
			t.Errorf("%+v, %v", image.Volume, err)
		}
		// It comes to those that have the pool later by the same file once more, and is of use meanwhile.
		again := imported("p-fast")
		again.RequestID = "again"
		_, err = w.ImportImage(t.Context(), again)
		refusedAs(t, "while nobody else has the pool", err, lead.Exists, "every node of pool fast that answers has it")
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Up })
		w.agents.task = func(_ string, task lead.Task) error {
			if task.Fetch == nil {
				return nil
			}
			return &lead.TaskError{Code: "no_space", Message: "the disk is full"}
		}
		_, err = w.ImportImage(t.Context(), again)
		refusedAs(t, "to one that is full", err, lead.Conflict, "node node3: the disk is full")
		if image := w.image(); image.Volume.Doomed || !slices.Equal(image.Volume.Nodes, []string{"n1"}) {
			t.Errorf("%+v", image.Volume)
		}
		w.wantLeft("n1 debian")
		w.agents.task = nil
		other := again
		other.Checksum = "def"
		_, err = w.ImportImage(t.Context(), other)
		refusedAs(t, "another file", err, lead.Exists, `image "debian" is another file: qcow2, SHA-256 abc`)
		if image, err = w.ImportImage(t.Context(), again); err != nil || !slices.Equal(
			image.Volume.Nodes, []string{"n1", "n3"},
		) || image.Volume.Doomed {
			t.Errorf("%+v, %v", image.Volume, err)
		}
		w.wantLeft("n1 debian", "n3 debian")
		if err := w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID, RequestID: "d"}); err != nil {
			t.Fatal(err)
		}
		w.wantLeft()
	})
}

// Only one works on the volumes of an image at a time.
func TestAnImageThatComesIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		request := imported("p-wide")
		request.Open = func() (io.ReadCloser, error) {
			_, err := w.ImportImage(context.Background(), imported("p-wide"))
			refusedAs(t, "a second import", err, lead.Busy, "is being worked on")
			refusedAs(t, "a deletion", w.DeleteImage(context.Background(), volumes.DeleteImage{Image: w.image().ID}), lead.Busy, "is being "+
				"worked on")
			return imported("p-wide").Open()
		}
		if _, err := w.ImportImage(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	})
}

// The leadership goes while an image comes: the next leader finds it written down.
func TestAnImportSurvivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		w.put(pools()...)
		request := imported("p-wide")
		request.Open = func() (io.ReadCloser, error) {
			w.log.mu.Lock()
			w.log.stopped = true
			w.log.mu.Unlock()
			return imported("p-wide").Open()
		}
		if _, err := w.ImportImage(t.Context(), request); err == nil {
			t.Fatal("imported by nobody's leader")
		}
		w.lose()
		w.log.stopped = false
		w.lead(2)
		defer func() { w.lose() }()
		if image := w.image(); image.Volume == nil || !image.Volume.Doomed {
			t.Fatalf("left %+v", image.Volume)
		}
		if image, err := w.ImportImage(t.Context(), imported("p-wide")); err != nil || image.Volume.Doomed {
			t.Errorf("%+v, %v", image, err)
		}
		w.wantLeft("shared debian")
	})
}
