package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/domxml"
)

// problem is why a domain cannot be adopted.
type problem struct{ what, next string }

func (p *problem) Error() string { return p.what }

func problemf(next, format string, args ...any) *problem {
	return &problem{what: fmt.Sprintf(format, args...), next: next}
}

// choose finds the domains that a request means, and gives a row for each word that means none.
func choose(
	snapshot *state.Snapshot, request AdoptVMs, shown map[string][]evidence.Copy, unheard []string,
) (found []evidence.Copy, rows []AdoptedVM) {
	var all []evidence.Copy
	for _, copies := range shown {
		for _, one := range copies {
			if request.Node == "" || one.Node == request.Node {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b evidence.Copy) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Domain.Name, b.Domain.Name), cmp.Compare(a.Domain.UUID, b.Domain.UUID))
	})
	if request.All {
		return slices.DeleteFunc(all, func(one evidence.Copy) bool {
			_, ours := snapshot.VM(one.Domain.UUID)
			return ours || one.Domain.State == model.DomainShutoff
		}), nil
	}
	for _, word := range request.Domains {
		vm, ours := snapshot.VMByName(word)
		var meant []evidence.Copy
		for _, one := range all {
			if one.Domain.Name == word || strings.EqualFold(one.Domain.UUID, word) || ours && one.Domain.UUID == vm.ID {
				meant = append(meant, one)
			}
		}
		// A definition beside a copy that runs is not what is meant.
		meant = slices.DeleteFunc(meant, func(one evidence.Copy) bool {
			return one.Domain.State == model.DomainShutoff && slices.ContainsFunc(meant, func(other evidence.Copy) bool {
				return other.Domain.UUID == one.Domain.UUID && other.Domain.State.Holds()
			})
		})
		found = append(found, meant...)
		if len(meant) == 0 {
			row := AdoptedVM{
				Name: word, Problem: "no node shows a domain of this name or UUID", NextStep: "see 'berth node show NODE' for what runs there",
			}
			if len(unheard) > 0 {
				row.Problem += "; not asked could be " + strings.Join(unheard, ", ")
			}
			rows = append(rows, row)
		}
	}
	return found, rows
}

// adoptable refuses what cannot become a VM, by what the nodes show.
func adoptable(one evidence.Copy, shown map[string][]evidence.Copy, words []string) error {
	domain := &one.Domain
	if one.IsOrphan() {
		return orphaned(&one)
	}
	switch domain.State {
	case model.DomainRunning:
	case model.DomainShutoff:
		return problemf(
			fmt.Sprintf("start it with 'virsh start %s' on %s, or make a VM of its XML with 'berth vm add --xml FILE'",
				model.Argument(domain.Name), one.Name),
			"it is off",
		)
	case model.DomainPausedMigration:
		return problemf("wait until the migration has ended", "it is being migrated")
	default:
		return problemf(
			fmt.Sprintf("let it run with 'virsh resume %s' on %s", model.Argument(domain.Name), one.Name),
			"it is %s (%s)", domain.State, domain.Reason,
		)
	}
	if err := endless(&one); err != nil {
		return err
	}
	for _, other := range shown[domain.UUID] {
		switch {
		case other.Node == one.Node:
		case other.Domain.State.Holds():
			return problemf(
				"find out which is the right one, and end the other with 'virsh destroy'", "its UUID is on %s too, %s there", other.Name,
				other.Domain.State,
			)
		default:
			return problemf(fmt.Sprintf(
				"remove it with 'virsh undefine %s' on %s: somebody could start it a second time", model.Argument(other.Domain.Name), other.Name,
			),
				"a definition with its UUID is on %s too", other.Name)
		}
	}
	if slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, domain.UUID) }) {
		return nil // this one is meant, whatever it is called elsewhere
	}
	for _, copies := range shown {
		for _, other := range copies {
			if other.Domain.Name == domain.Name && other.Domain.UUID != domain.UUID {
				return problemf("rename one, or adopt one of them by its UUID",
					"another domain is called %s, on %s: names of VMs are unique", domain.Name, other.Name)
			}
		}
	}
	return nil
}

// orphaned refuses a domain that libvirt has forgotten: it cannot be marked, moved or stopped.
func orphaned(one *evidence.Copy) error {
	return problemf(one.EndsOrphan(), "process %d on %s runs it, and libvirt there does not list it", one.Domain.PID, one.Name)
}

// epochLimit is above what any VM will ever be given: each start and each move takes one.
const epochLimit = 1 << 62

// endless refuses a domain whose mark leaves no room for a higher epoch.
func endless(c *evidence.Copy) error {
	if c.Domain.Epoch < epochLimit {
		return nil
	}
	return problemf(fmt.Sprintf("take its mark out with 'virsh metadata %s --uri %s --remove' on %s",
		model.Argument(c.Domain.Name), domxml.Namespace, c.Name),
		"its mark has epoch %d, which Berth has never written", c.Domain.Epoch)
}
