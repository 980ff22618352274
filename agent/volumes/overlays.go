package volumes

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// overlayLimit is how long it may take to look for what is on top of a guest's disks. A start does not wait longer for a pool that hangs.
const overlayLimit = 5 * time.Second

// Overlays finds what somebody has put on top of the disks that a domain of this XML writes to, while nobody looked. The error is
// ErrOverlaid if there is something. Note says of which disks that cannot be told; empty: of none.
func Overlays(
	ctx context.Context, hv hypervisor.Hypervisor, vm, xml string,
) (overlays []*berthv1.Overlay, note string, err error) {
	limited, cancel := context.WithTimeout(ctx, overlayLimit)
	defer cancel()
	found, unchecked := overlaysOf(limited, hv, vm, xml)
	if len(unchecked) > 0 {
		note = "nobody has seen how its guest ended last, and whether somebody took a snapshot meanwhile could not be checked: disk " +
			strings.Join(unchecked, ", ") + " is in no storage pool of this node that answers"
	}
	var texts []string
	for i := range found {
		one := &found[i]
		texts = append(texts, one.Text())
		overlays = append(overlays, &berthv1.Overlay{
			Target: one.Target, Path: one.Path, Overlay: one.Top.Path, Format: one.Top.Format, Rivals: one.Rivals,
		})
	}
	if len(texts) > 0 {
		err = fmt.Errorf("%w: %s", hypervisor.ErrOverlaid, strings.Join(texts, "; "))
	}
	return overlays, note, err
}

// overlaysOf are what is found. Unchecked are the disks of which nothing can be told, by target: their files are in no pool of this node,
// or it does not answer in time.
func overlaysOf(ctx context.Context, hv hypervisor.Hypervisor, vm, xml string) (found []hypervisor.Overlay, unchecked []string) {
	devices, err := domxml.Devices(xml)
	if err != nil {
		return nil, nil // the start itself says so
	}
	var users map[string]string
	folders := map[string][]hypervisor.Volume{}
	for _, disk := range devices {
		if disk.Kind != domxml.DiskDevice || disk.Media || disk.ReadOnly || disk.Source == (domxml.Source{}) {
			continue
		}
		file := disk.Source.Path
		if disk.Source.Volume != "" {
			volume, err := hv.LookupVolume(ctx, disk.Source.Pool, disk.Source.Volume)
			if err != nil {
				unchecked = append(unchecked, disk.Key)
				continue
			}
			file = volume.Path
		}
		if users == nil {
			if users, err = hv.VolumesInUse(ctx); err != nil {
				return nil, append(unchecked, disk.Key)
			}
		}
		beside, read := folders[path.Dir(file)]
		if !read {
			beside, _ = hv.VolumesBeside(ctx, file) // without any the file is not among them
			folders[path.Dir(file)] = beside
		}
		overlay, is, known := hypervisor.OverlayOf(file, beside, func(file string) bool {
			uuid, used := users[file]
			return used && uuid != vm
		})
		switch {
		case !known:
			unchecked = append(unchecked, disk.Key)
		case is:
			overlay.Target = disk.Key
			found = append(found, overlay)
		}
	}
	return found, unchecked
}
