package admission

import (
	"slices"

	"berth/coordinator/model"
	"berth/shared/domxml/guard"
)

// Held is what an identity may put onto hosts of clusters that permit it too, as a setting has it: all, none or a list. One that came back
// with a backup has none until it is confirmed: what it had may have been taken since.
func Held(identity *model.Identity) string {
	if identity.Unconfirmed != "" {
		return guard.None
	}
	return OnceConfirmed(identity)
}

// OnceConfirmed is Held of an identity as soon as nobody waits for a word on it. Of operators that an earlier release wrote down nobody has
// said what they may: they have what they had then.
func OnceConfirmed(identity *model.Identity) string {
	switch {
	case identity.Kind != model.IdentityOperator || !identity.Live():
		return guard.None
	case identity.Permit == "":
		return guard.All
	}
	return identity.Permit
}

// Undecided are the names of the operators that have every permission because nobody has said which.
func Undecided(identities []model.Identity) (names []string) {
	for i := range identities {
		if one := &identities[i]; one.Kind == model.IdentityOperator && one.Live() && one.Unconfirmed == "" && one.Permit == "" {
			names = append(names, one.Name)
		}
	}
	return names
}

// Without are permissions that are not in a setting.
func Without(permissions []guard.Permission, setting string) []guard.Permission {
	given, _ := guard.Split(setting)
	return Less(permissions, given)
}

// Less are permissions that are not among others.
func Less(permissions, others []guard.Permission) (left []guard.Permission) {
	for _, one := range permissions {
		if !slices.Contains(others, one) {
			left = append(left, one)
		}
	}
	return left
}

// Gives are the permissions that a change of a cluster gives to what is there, and to operators who have them. A folder for images lets
// what is in it be used by everybody. Before is nil if the cluster is new: then it was as clusters are of which nothing is said.
func Gives(records Records, before, after *model.Resource) []guard.Permission {
	if before == nil {
		before = &model.Resource{}
	}
	given := Less(Permissions(records, after), Permissions(records, before))
	known := imageFolders(before)
	widens := slices.ContainsFunc(imageFolders(after), func(folder string) bool { return !slices.Contains(known, folder) })
	if widens && !slices.Contains(given, guard.HostPaths) {
		given = append(given, guard.HostPaths)
	}
	return given
}

// Asked are the permissions of what somebody lets through who accepts what a VM was adopted with, or what was changed of it beside Berth.
func Asked(vm *model.VM) []guard.Permission {
	var asked []guard.Permission
	add := func(needs string) {
		if needs != "" {
			list, _ := guard.Split(needs)
			asked = append(asked, Less(list, asked)...)
		}
	}
	add(vm.Needs)
	for _, edit := range vm.Drifted() {
		if edit.By == "" {
			add(edit.Needs)
		}
	}
	return asked
}
