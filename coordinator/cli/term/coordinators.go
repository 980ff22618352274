package term

import (
	"fmt"
	"slices"

	"berth/coordinator/cli/clientconfig"
	berthv1 "berth/shared/gen/berth/v1"
)

// KeepCoordinators brings the context's list of coordinators up to date with what the leader says. It does so where the coordinator that
// has answered is listed by the address that others know it by: who goes by other addresses, through a tunnel for instance, has a reason.
// A file that cannot be written stays as it is.
func (a *App) KeepCoordinators(s *Session, members []*berthv1.Member) error {
	t, err := a.target()
	if err != nil || s.origin != t.origin() {
		return err // the addresses were given by flag or environment
	}
	var wanted []string
	for _, member := range members {
		if member.GetApiAddress() == "" {
			return nil // one that is just joining
		}
		wanted = append(wanted, member.GetApiAddress())
	}
	if len(wanted) == 0 || !slices.Contains(wanted, s.addresses[s.preferred]) {
		return nil
	}
	slices.Sort(wanted)
	if slices.Equal(wanted, slices.Sorted(slices.Values(t.context.Coordinators))) {
		return nil
	}
	if err := clientconfig.SetCoordinators(t.file, t.name, wanted); err != nil {
		return nil //nolint:nilerr // nobody asked for it, and who may not write the file can still read the answer
	}
	a.note(fmt.Sprintf("context %s in %s now lists %s", t.name, t.file, Count(len(wanted), "coordinator")))
	return nil
}
