package drift

import (
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// Written are the disks of a VM that its guest may write to, with their formats: as it runs, or as its next start has them. Drives for
// media and what a guest can only read are none. A disk that the record has is named as there, because a guest that has moved names the
// same file otherwise. Facts are of the node that shows it.
func (g *Guest) Written(facts *model.NodeFacts) (disks []model.Device) {
	for _, one := range g.all() {
		if one.Kind != string(domxml.DiskDevice) || one.Media || strings.HasPrefix(one.Source.FileName(), seedOf(g.VM)) {
			continue
		}
		edits := g.VM.Edits()
		at := slices.IndexFunc(edits, func(e model.DeviceEdit) bool { return e.Names(one.Kind, one.Key) })
		record := slices.IndexFunc(g.Baseline, func(d domxml.Device) bool { return is(&d, one.Kind, one.Key) })
		readOnly := false
		switch {
		case at >= 0 && edits[at].XML != "":
			if made, err := domxml.DeviceOf(edits[at].XML); err == nil {
				readOnly, one.Format = made.ReadOnly, made.Format
			}
		case record >= 0:
			has := &g.Baseline[record]
			named := model.RanDevice{Kind: one.Kind, Key: one.Key, Source: model.DiskSource(has.Source), Network: has.Network}
			if same(&named, &one, facts) == yes {
				readOnly, one.Source = has.ReadOnly, named.Source
			}
		}
		if !readOnly {
			disks = append(disks, one)
		}
	}
	return disks
}

// Text names a device by what is behind it, for people: a path, POOL/VOLUME, rbd:POOL/IMAGE, a network.
func Text(d *model.Device) string { return ran(d).text() }
