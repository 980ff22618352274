package resource

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
)

// lists are the lists of one kind on the command line: whole ones, and what is to be added to them and taken from them.
type lists struct{ whole, added, removed map[string]*[]string } // by the list's name

// singular is a list as a flag, which names one or several of its members.
func singular(list string) string { return strings.TrimSuffix(flagName(list), "s") }

func listFlagsOf(form schema.Form) []string {
	var flags []string
	for _, list := range form.Lists {
		flags = append(flags, singular(list.Name))
	}
	return flags
}

// item is what help shows in place of one member.
func item(list schema.List) string {
	if list.Pairs {
		return "NAME=NUMBER"
	}
	return "NAMES"
}

func completeItems(cmd *cobra.Command, flag string, list schema.List, suffix string) {
	words := make([]string, 0, len(list.Words))
	for _, word := range list.Words {
		words = append(words, word+suffix)
	}
	term.Complete(cmd, flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

func (l *lists) flags(cmd *cobra.Command, form schema.Form) {
	l.whole = map[string]*[]string{}
	for _, list := range form.Lists {
		flag, value := singular(list.Name), &[]string{}
		l.whole[list.Name] = value
		cmd.Flags().StringSliceVar(value, flag, nil, "`"+item(list)+"`: "+list.Doc)
		completeItems(cmd, flag, list, pairSign(list))
	}
}

func pairSign(list schema.List) string {
	if list.Pairs {
		return "="
	}
	return ""
}

// read checks the lists that stand on the line.
func (l *lists) read(cmd *cobra.Command, form schema.Form) (map[string]*berthv1.Names, error) {
	said := map[string]*berthv1.Names{}
	for _, list := range form.Lists {
		flag := singular(list.Name)
		value := l.whole[list.Name]
		if value == nil || !cmd.Flags().Changed(flag) {
			continue
		}
		if len(*value) == 0 {
			return nil, term.Usagef(cmd, "--%s: %s is missing", flag, item(list))
		}
		names, err := list.Canonical(*value)
		if err != nil {
			return nil, term.Usage(cmd, err)
		}
		said[list.Name] = &berthv1.Names{Names: names}
	}
	return said, nil
}

// stepFlags defines those that change a list of what is there, instead of replacing it.
func (d *declaration) stepFlags(cmd *cobra.Command) {
	d.lists.added, d.lists.removed = map[string]*[]string{}, map[string]*[]string{}
	for _, list := range d.form.Lists {
		flag, added, removed := singular(list.Name), &[]string{}, &[]string{}
		d.lists.added[list.Name], d.lists.removed[list.Name] = added, removed
		cmd.Flags().StringSliceVar(added, "add-"+flag, nil, "`"+item(list)+"` to put into "+list.Name+", in place of one of that name")
		cmd.Flags().StringSliceVar(removed, "remove-"+flag, nil, "`NAMES` to take out of "+list.Name)
		completeItems(cmd, "add-"+flag, list, pairSign(list))
		completeItems(cmd, "remove-"+flag, list, "")
	}
}

// steps are the flags of those on the line.
func (d *declaration) steps(cmd *cobra.Command) []string {
	var flags []string
	for _, list := range d.form.Lists {
		flags = append(flags, term.ChangedFlags(cmd, []string{"add-" + singular(list.Name), "remove-" + singular(list.Name)})...)
	}
	return flags
}

func (d *declaration) stepwise(cmd *cobra.Command) bool { return len(d.steps(cmd)) > 0 }

// checkSteps refuses to change a list that is replaced or emptied, and words that cannot be meant.
func (d *declaration) checkSteps(cmd *cobra.Command, unset []string) error {
	for _, list := range d.form.Lists {
		flag := singular(list.Name)
		given := term.ChangedFlags(cmd, []string{"add-" + flag, "remove-" + flag})
		if len(given) > 0 && (cmd.Flags().Changed(flag) || slices.Contains(unset, list.Name)) {
			return term.Usagef(cmd, "%s goes with neither --%s nor --unset %[2]s, which are about all of them", given[0], flag)
		}
		if _, err := list.Canonical(*d.lists.added[list.Name]); err != nil {
			return term.Usage(cmd, err)
		}
		if err := term.CheckNames(cmd, "remove-"+flag, *d.lists.removed[list.Name]); err != nil {
			return err
		}
	}
	return nil
}

// takeSteps makes whole lists of what is there and what the line changes of it.
func (d *declaration) takeSteps(cmd *cobra.Command, s *term.Session, request *berthv1.ChangeResourceRequest) error {
	if !d.stepwise(cmd) {
		return nil
	}
	now, err := term.Ask(
		cmd.Context(), s, term.Client.GetResource, &berthv1.GetResourceRequest{Kind: request.GetKind(), Name: request.GetName()},
	)
	if err != nil {
		return err
	}
	for _, list := range d.form.Lists {
		added, removed := *d.lists.added[list.Name], *d.lists.removed[list.Name]
		if len(added)+len(removed) == 0 {
			continue
		}
		items := slices.Clone(effectiveList(now.GetResource(), list))
		for _, name := range removed {
			at := slices.IndexFunc(items, func(item string) bool { return itemName(item) == name })
			if at < 0 {
				return term.Usagef(
					cmd, "--remove-%s %s: it is not in %s of %s", singular(list.Name), name, list.Name, term.ResourceRef(now.GetResource()),
				)
			}
			items = slices.Delete(items, at, at+1)
		}
		for _, item := range added {
			items = slices.DeleteFunc(items, func(other string) bool { return itemName(other) == itemName(item) })
		}
		items, err := list.Canonical(append(items, added...))
		if err != nil {
			return term.Usage(cmd, err)
		}
		request.Lists[list.Name] = &berthv1.Names{Names: items}
	}
	return nil
}

// itemName is the name of a member of a list, without the number of a pair.
func itemName(item string) string {
	name, _, _ := strings.Cut(item, "=")
	return name
}

// effectiveList is a list in force: what was set, or the default.
func effectiveList(r *berthv1.Resource, list schema.List) []string {
	if set := r.GetLists()[list.Name].GetItems(); len(set) > 0 {
		return set
	}
	if inForce := r.GetEffectiveLists()[list.Name].GetItems(); len(inForce) > 0 {
		return inForce
	}
	return list.Default
}
