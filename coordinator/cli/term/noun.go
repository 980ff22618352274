package term

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Noun makes a command that only has verbs.
func Noun(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long), Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		SuggestionsMinimumDistance: 2,
		RunE:                       Verbless, ValidArgsFunction: cobra.NoFileCompletions,
	}
	command.AddCommand(verbs...)
	return command
}

// Verbless is what a noun does without one of its verbs.
func Verbless(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		text := "unknown command %q"
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			text += ", did you mean " + strings.Join(similar, " or ") + "?"
		}
		return Usagef(cmd, text, args[0])
	}
	if !cmd.HasParent() {
		return cmd.Help()
	}
	return Usagef(cmd, "COMMAND is missing: %s", strings.Join(verbNames(cmd), ", "))
}

func verbNames(cmd *cobra.Command) []string {
	var names []string
	for _, verb := range cmd.Commands() {
		if verb.IsAvailableCommand() {
			names = append(names, verb.Name())
		}
	}
	return names
}

// Arguments accepts the first least of the named arguments at least, and at most all of them. None may be empty.
func Arguments(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch empty := slices.Index(args, ""); {
		case len(args) < least:
			return Usagef(cmd, "%s is missing", names[len(args)])
		case len(args) > len(names):
			return Usagef(cmd, "unexpected argument %q", args[len(names)])
		case empty >= 0:
			return Usagef(cmd, "%s is empty", names[empty])
		}
		for i := range args {
			args[i] = withoutKind(cmd, names[i], args[i])
		}
		return nil
	}
}

// WithoutKinds takes the kind off names that have it, as '-o name' prints them: vm/db-2 is db-2 in a command of VMs.
func WithoutKinds(cmd *cobra.Command, args []string) {
	for i := range args {
		args[i] = withoutKind(cmd, "NAME", args[i])
	}
}

// withoutKind takes the kind off one argument. What a NAME or an ID is of follows from the command's noun.
func withoutKind(cmd *cobra.Command, argument, value string) string {
	kind, name, found := strings.Cut(value, "/")
	if !found || name == "" {
		return value
	}
	switch argument {
	case "NAME", "ID":
		for noun := cmd.Parent(); noun != nil && noun.HasParent(); noun = noun.Parent() {
			if noun.Name() == kind {
				return name
			}
		}
	case "VM", "NODE", "CLUSTER", "POLICY":
		if strings.ToLower(argument) == kind {
			return name
		}
	}
	return value
}
