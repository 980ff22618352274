package resource

import (
	"testing"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Every kind of the table is a noun with the same verbs, and every link and setting a flag that the table explains.
func TestEveryKindIsANoun(t *testing.T) {
	a := term.New("")
	root := term.Noun("berth COMMAND", "", "", Commands(a)...)
	for _, form := range schema.Forms() {
		if form.Kind == model.KindGroup {
			continue // it has verbs of its own
		}
		if samples[form.Kind] == "" || about[form.Kind] == "" {
			t.Errorf("%s: no sample name, or nothing about it", form.Kind)
		}
		for _, verb := range []string{"add", "list", "show", "delete"} {
			if found, _, err := root.Find([]string{string(form.Kind), verb}); err != nil || found.Name() != verb && !found.HasAlias(verb) {
				t.Errorf("berth %s %s is missing", form.Kind, verb)
			}
		}
		add, _, _ := root.Find([]string{string(form.Kind), "add"})
		for _, name := range allFlags(form) {
			if flag := add.Flags().Lookup(name); flag == nil || flag.Usage == "" {
				t.Errorf("berth %s add: --%s is missing, or not explained", form.Kind, name)
			}
		}
		set, _, _ := root.Find([]string{string(form.Kind), "set"})
		for _, setting := range form.Settings {
			if setting.Fixed && set.Flags().Lookup(flagName(setting.Name)) != nil {
				t.Errorf("berth %s set: --%s cannot change", form.Kind, flagName(setting.Name))
			}
		}
	}
}
