package control

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/volumes"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// provided is a spacious world with a shared pool in a cluster of each pod. The libvirt pools have one name: their volumes must
// not have.
func provided(t *testing.T) *world {
	w := spacious(t, obedient)
	for pool, in := range map[string]string{"p-east": "c1", "p-west": "c3"} {
		w.put(model.Resource{ID: pool, Kind: model.KindPool, Name: pool, Links: map[string]string{"cluster": in}, Settings: map[string]string{
			model.SettingScope: string(model.PoolShared), model.SettingPoolSource: "wide",
		}})
	}
	return w
}

func importedAs(pool, request string) volumes.ImportImage {
	asked := imported(pool)
	asked.RequestID = request
	return asked
}

// One image in the pools of two clusters lets VMs spread over both, each with a disk that is a copy of what is there.
func TestAnImageInSeveralPoolsLetsItsVMsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := provided(t)
		defer w.lose()
		var image model.Resource
		for i, pool := range []string{"p-east", "p-west", "p-west"} { // the third is the second again
			var err error
			if image, err = w.ImportImage(t.Context(), importedAs(pool, fmt.Sprint("import ", min(i, 1)))); err != nil {
				t.Fatal(err)
			}
		}
		if len(image.Copies) != 1 || image.Volume.Pool != "p-east" || image.Copies[0].Pool != "p-west" || image.Copies[0].Doomed ||
			image.Copies[0].Checksum != "abc" {
			t.Fatalf("%+v and %+v", image.Volume, image.Copies)
		}
		w.wantLeft("shared debian", "shared debian")
		for i := range 4 {
			request := small(fmt.Sprint("web", i))
			request.VM.Spec.Kernel = ""
			request.Root = &model.Resource{Kind: model.KindDisk, Name: request.Name + "-root", Links: map[string]string{"image": image.ID}}
			w.must(request)
			synctest.Wait()
		}
		in := map[string]int{}
		for _, order := range w.agents.ordered(operation.ActStart) {
			disk, _ := w.Store.Snapshot().Resource(order.Volumes[0].Disk)
			pool := disk.Volume.Pool
			if backing := image.VolumeIn(pool); order.Volumes[0].BackingName != backing.Name || disk.Volume.Backing != pool {
				t.Errorf("in %s it is made as %+v and kept as %+v", pool, order.Volumes[0], disk.Volume)
			}
			in[pool]++
		}
		if in["p-east"] != 2 || in["p-west"] != 2 {
			t.Errorf("disks by pool: %v", in)
		}
		refusedAs(t, "of disks", w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID}), lead.Conflict, "is a copy of it")
		for i := range 4 {
			vm := w.vm(fmt.Sprint("web", i))
			w.show(vm)
			if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
			if _, err := w.DeleteVM(t.Context(), lifecycle.DeleteVM{VM: vm.ID}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if err := w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID}); err != nil {
			t.Fatal(err)
		}
		w.wantLeft()
		if image := w.image(); image.ID != "" {
			t.Errorf("left %+v", image)
		}
	})
}

// A further place that does not come about leaves the first as it is, and what is in doubt is finished or goes with the image.
func TestAFurtherPlaceOfAnImageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := provided(t)
		defer w.lose()
		first, err := w.ImportImage(t.Context(), importedAs("p-east", "first"))
		if err != nil {
			t.Fatal(err)
		}
		other := importedAs("p-west", "other")
		other.Checksum = "def"
		_, err = w.ImportImage(t.Context(), other)
		refusedAs(t, "another file", err, lead.Exists, `image "debian" is another file: qcow2, SHA-256 abc`)

		fails := func(answer error, silent bool) {
			w.agents.task = func(node string, task lead.Task) error {
				if task.Fetch == nil {
					return nil
				}
				w.agents.away[node] = silent
				return answer
			}
		}
		fails(&lead.TaskError{Code: "no_space", Message: "the disk is full"}, false)
		_, err = w.ImportImage(t.Context(), importedAs("p-west", "full"))
		refusedAs(t, "a full pool", err, lead.Conflict, "the disk is full")
		if image := w.image(); len(image.Copies) != 0 || image.Volume.Doomed || image.Volume.Name != first.Volume.Name {
			t.Errorf("left %+v and %+v", image.Volume, image.Copies)
		}
		w.wantLeft("shared debian")

		fails(errors.New("the session ended"), true)
		_, err = w.ImportImage(t.Context(), importedAs("p-west", "silent"))
		refusedAs(t, "a silent node", err, lead.Unavailable, "the session ended")
		image := w.image()
		if len(image.Copies) != 1 || !image.Copies[0].Doomed || image.Volume.Doomed {
			t.Fatalf("left %+v and %+v", image.Volume, image.Copies)
		}
		west := small("west")
		west.VM.VDC, west.VM.Within = "", "c3"
		west.Root = &model.Resource{Kind: model.KindDisk, Name: "west-root", Links: map[string]string{"image": image.ID}}
		_, err = w.StartVM(t.Context(), west)
		refusedAs(t, "a disk of half an image", err, lead.NoNodeFits, "has not got image debian")
		w.agents.task, w.agents.away = nil, map[string]bool{}
		if image, err = w.ImportImage(t.Context(), importedAs("p-west", "again")); err != nil || image.Copies[0].Doomed {
			t.Fatalf("%+v, %v", image.Copies, err)
		}

		// A deletion that a silent node breaks off leaves nothing that can be used, and is finished by doing it again.
		w.agents.task = func(node string, _ lead.Task) error {
			if node == "n5" || node == "n6" {
				return errors.New("the session ended")
			}
			return nil
		}
		refusedAs(t, "a silent node", w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID}), lead.Unavailable, "the session ended")
		if image := w.image(); !image.Volume.Doomed || !image.Copies[0].Doomed {
			t.Errorf("left %+v and %+v", image.Volume, image.Copies)
		}
		// The first place is begun anew and fails: the other one, which nobody has removed yet, stays written down.
		fails(&lead.TaskError{Code: "no_space", Message: "the disk is full"}, false)
		_, err = w.ImportImage(t.Context(), importedAs("p-east", "anew"))
		refusedAs(t, "a full pool", err, lead.Conflict, "the disk is full")
		further := image.Copies[0]
		if image := w.image(); image.Volume.Pool != "p-west" || image.Volume.Name != further.Name || !image.Volume.Doomed ||
			len(image.Copies) != 0 {
			t.Errorf("left %+v and %+v", image.Volume, image.Copies)
		}
		w.wantLeft("shared debian")
		w.agents.task = nil
		if image, err = w.ImportImage(
			t.Context(), importedAs("p-west", "finish"),
		); err != nil || image.Volume.Name != further.Name || image.Volume.Doomed {
			t.Errorf("%+v, %v", image.Volume, err)
		}
		if err := w.DeleteImage(t.Context(), volumes.DeleteImage{Image: image.ID}); err != nil {
			t.Fatal(err)
		}
		w.wantLeft()
	})
}
