package vm

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// choosing is the flag by which a command that takes several VMs chooses them, in place of their names.
type choosing struct{ terms []string }

// selectable are what VMs are chosen by, as lists are narrowed by.
var selectable = map[string]func(*berthv1.Filter) *[]string{
	"label":    func(f *berthv1.Filter) *[]string { return &f.Labels },
	"customer": func(f *berthv1.Filter) *[]string { return &f.Customers },
	"group":    func(f *berthv1.Filter) *[]string { return &f.Groups },
	"node":     func(f *berthv1.Filter) *[]string { return &f.Nodes },
	"state":    func(f *berthv1.Filter) *[]string { return &f.States },
}

func (c *choosing) flag(cmd *cobra.Command) {
	words := slices.Sorted(maps.Keys(selectable))
	cmd.Flags().StringSliceVar(&c.terms, "selector", nil,
		"all VMs with `WHAT=VALUE` of "+strings.Join(words, ", ")+", for instance label=web")
	starts := make([]string, 0, len(words))
	for _, word := range words {
		starts = append(starts, word+"=")
	}
	term.Complete(cmd, "selector", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return starts, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// on tells whether VMs are chosen and not named.
func (c *choosing) on() bool { return len(c.terms) > 0 }

// bySelector tells whether the line of a command has the flag.
func bySelector(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup("selector")
	return flag != nil && flag.Changed
}

// filter reads the flag.
func (c *choosing) filter(cmd *cobra.Command) (*berthv1.Filter, error) {
	filter := &berthv1.Filter{}
	words := strings.Join(slices.Sorted(maps.Keys(selectable)), ", ")
	for _, text := range c.terms {
		what, value, isPair := strings.Cut(text, "=")
		list, known := selectable[what]
		switch {
		case !isPair || value == "":
			return nil, term.Usagef(cmd, "--selector %s: want WHAT=VALUE, for instance label=web", text)
		case !known:
			return nil, term.Usagef(cmd, "--selector %s: VMs are chosen by %s", text, words)
		}
		*list(filter) = append(*list(filter), strings.TrimPrefix(value, what+"/"))
	}
	return filter, nil
}

// names are the names of the VMs that a command is about: those on its line, or those that the flag chooses. There is always one.
func (c *choosing) names(ctx context.Context, cmd *cobra.Command, s *term.Session, named []string) ([]string, error) {
	if !c.on() {
		return named, nil
	}
	filter, err := c.filter(cmd)
	if err != nil {
		return nil, err
	}
	answer, err := term.AskAll(ctx, s, term.Client.ListVMs, &berthv1.ListVMsRequest{Filter: filter}, term.Everything)
	switch {
	case err != nil:
		return nil, err
	case !answer.GetFiltered(): // it lists all VMs, and all of them would be acted on
		return nil, term.Failf(rpc.Invalid, "install this release on all coordinators, or name the VMs",
			"the coordinator is of an older release and does not know --selector")
	case len(answer.GetVms()) == 0:
		return nil, term.Failf(rpc.NotFound, "see 'berth vm list -o wide' for what there is", "no VM is like --selector %s",
			strings.Join(c.terms, ","))
	}
	names := make([]string, 0, len(answer.GetVms()))
	for _, vm := range answer.GetVms() {
		names = append(names, vm.GetName())
	}
	return names, nil
}
