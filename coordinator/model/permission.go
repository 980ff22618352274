package model

import (
	"slices"
	"strings"
)

// MetaGuarded is the key of the replicated mark of a site whose clusters permit nothing until they say what. A site that an earlier release
// has begun does not have it: there a cluster permits everything until it says what.
const MetaGuarded = "guarded"

// Words of SettingPermit.
const (
	PermitAll  = "all"
	PermitNone = "none"
)

// PermitUnsaid is what is shown of an operator of whom nobody has said what it may put onto hosts: everything, as before it could be said.
const PermitUnsaid = "unsaid"

// DefaultImageFolders are the folders for images of a cluster that names none.
const DefaultImageFolders = "/var/lib/libvirt/images,/srv/images"

// Lacking are those of a list of permissions that a cluster, by its record, does not give. A cluster that does not say what it permits
// gives none of them: they were found lacking when it gave none either.
func Lacking(needs string, cluster *Resource) string {
	permit := ""
	if cluster != nil {
		permit = cluster.Settings[SettingPermit]
	}
	if needs == "" || permit == PermitAll {
		return ""
	}
	given := strings.Split(permit, ",")
	return strings.Join(slices.DeleteFunc(strings.Split(needs, ","), func(one string) bool { return slices.Contains(given, one) }), ",")
}

// Lacks are the permissions that a VM needs where it runs, or ran last, and that its cluster does not give; empty: none.
func (v *VM) Lacks(cluster *Resource) string {
	lacks := Lacking(v.Needs, cluster)
	for _, edit := range v.Drifted() {
		for one := range strings.SplitSeq(v.Asks(&edit, cluster), ",") {
			if !strings.Contains(","+lacks+",", ","+one+",") {
				lacks = strings.TrimPrefix(lacks+","+one, ",")
			}
		}
	}
	return strings.TrimSuffix(lacks, ",")
}
