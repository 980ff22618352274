package resource

import (
	"cmp"
	"fmt"
	"strings"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// volumeHeadings are the columns of a kind whose content is in a pool, in addition to those of its links and settings.
func volumeHeadings(form schema.Form) []string {
	if form.Kind == model.KindImage {
		return []string{"SIZE", "POOL"}
	}
	return nil
}

func volumeCells(form schema.Form, r *berthv1.Resource) []string {
	if form.Kind == model.KindImage {
		return []string{cmp.Or(term.Dense(volumeSize(r)), term.None), cmp.Or(poolsOf(r), term.None)}
	}
	return nil
}

// poolsOf are the names of the pools that the content of a disk or an image is in; empty if it is in none.
func poolsOf(r *berthv1.Resource) string {
	names := []string{r.GetVolume().GetPool()}
	for _, further := range r.GetCopies() {
		names = append(names, further.GetPool())
	}
	return strings.Join(names, ",")
}

// volumeSize is how large a guest sees what is in a pool; empty if nothing is.
func volumeSize(r *berthv1.Resource) string {
	if r.GetVolume() == nil {
		return ""
	}
	return units.Bytes(r.GetVolume().GetCapacityBytes()).String()
}

// linked is where a link of a resource leads: the pool of a disk is the one that it is in, once it is made.
func linked(r *berthv1.Resource, link schema.Link) string {
	if link.Name == schema.LinkPool && r.GetVolume() != nil {
		return r.GetVolume().GetPool()
	}
	return r.GetLinks()[link.Name]
}

// valueOf is a setting in force: the size of a disk is that of its volume, once it is made.
func valueOf(r *berthv1.Resource, setting schema.Setting) string {
	if setting.Name == schema.SettingSize && r.GetVolume() != nil {
		return volumeSize(r)
	}
	return shownSetting(setting, effective(r, setting))
}

// placeText is one place of the content of a disk or an image.
func placeText(volume *berthv1.ResourceVolume) string {
	text := fmt.Sprintf(
		"%s in pool %s (%s, %s)", volume.GetName(), volume.GetPool(), volume.GetFormat(), units.Bytes(volume.GetCapacityBytes()),
	)
	if nodes := volume.GetNodes(); len(nodes) > 0 {
		text += " on " + strings.Join(nodes, ", ")
	}
	return text
}

// contentRows tell where the content of a disk or an image is.
func contentRows(r *berthv1.Resource) [][2]string {
	volume := r.GetVolume()
	if volume == nil {
		return nil
	}
	rows := [][2]string{{"volume", placeText(volume)}}
	for _, further := range r.GetCopies() {
		text := placeText(further)
		if further.GetDoomed() && !volume.GetDoomed() {
			text += ", not whole: the same import again finishes it"
		}
		rows = append(rows, [2]string{"copy", text})
	}
	if volume.GetSha256() != "" {
		rows = append(rows, [2]string{"sha256", volume.GetSha256()})
	}
	if volume.GetDoomed() {
		rows = append(
			rows,
			[2]string{
				"condition",
				fmt.Sprintf("not whole, it is being made or removed; 'berth %s delete %s' finishes that", r.GetKind(), r.GetName()),
			},
		)
	}
	return rows
}
