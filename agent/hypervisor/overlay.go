package hypervisor

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Overlay is a file that somebody has put on top of a disk, and into which was written after the disk.
type Overlay struct {
	Target, Path string   // of the disk
	Top          Volume   // the newest one
	Rivals       []string // paths of others, on which that does not stand
}

// Text says what was found, for people.
func (o *Overlay) Text() string {
	text := fmt.Sprintf("disk %s is %s, and %s is on top of it and was written later", o.Target, o.Path, o.Top.Path)
	if len(o.Rivals) > 0 {
		text += ", and so is " + strings.Join(o.Rivals, ", ") + ": one of them can be right"
	}
	return text + ": somebody took a snapshot while nobody looked"
}

// OverlayOf finds what is on top of a file among the volumes of its folder. Known is false if the file is not among them, or nothing tells
// when it was written. Not counted is what another domain uses, and what nothing was written into: a snapshot that was written back
// without anything in it stays behind, and is newer than a disk into which nothing was written either.
func OverlayOf(file string, beside []Volume, used func(path string) bool) (found Overlay, is, known bool) {
	at := slices.IndexFunc(beside, func(v Volume) bool { return path.Clean(v.Path) == path.Clean(file) })
	if at < 0 || beside[at].ModifiedAt.IsZero() {
		return found, false, false
	}
	below := map[string]string{} // what each stands on
	for _, v := range beside {
		if v.BackingPath != "" && !used(path.Clean(v.Path)) {
			below[path.Clean(v.Path)] = path.Clean(v.BackingPath)
		}
	}
	stands := func(top, on string) bool {
		for range below { // a chain is not longer, also if it is a ring
			if top = below[top]; top == on || top == "" {
				break
			}
		}
		return top == on
	}
	base := beside[at]
	written := slices.DeleteFunc(slices.Clone(beside), func(v Volume) bool {
		return v.Empty || !v.ModifiedAt.After(base.ModifiedAt) || path.Clean(v.Path) == path.Clean(file) ||
			!stands(path.Clean(v.Path), path.Clean(file))
	})
	if len(written) == 0 {
		return found, false, true
	}
	slices.SortStableFunc(written, func(a, b Volume) int { return b.ModifiedAt.Compare(a.ModifiedAt) })
	found = Overlay{Path: base.Path, Top: written[0]}
	for _, v := range written[1:] {
		if !stands(path.Clean(found.Top.Path), path.Clean(v.Path)) {
			found.Rivals = append(found.Rivals, v.Path)
		}
	}
	return found, true, true
}
