package resource

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
)

// flagName is a link or a setting as a flag: billing_entity is --billing-entity.
func flagName(name string) string { return strings.ReplaceAll(name, "_", "-") }

func fieldName(flag string) string { return strings.ReplaceAll(strings.TrimSpace(flag), "-", "_") }

func allFlags(form schema.Form) []string {
	var flags []string
	for _, link := range form.Links {
		flags = append(flags, flagName(link.Name))
	}
	for _, setting := range form.Settings {
		flags = append(flags, flagName(setting.Name))
	}
	return append(flags, listFlagsOf(form)...)
}

// changeable are the flags of what can change once a resource is there.
func changeable(form schema.Form) []string {
	var flags []string
	for _, link := range form.Links {
		if !link.Fixed {
			flags = append(flags, flagName(link.Name))
		}
	}
	for _, setting := range form.Settings {
		if !setting.Fixed {
			flags = append(flags, flagName(setting.Name))
		}
	}
	return append(flags, listFlagsOf(form)...)
}

// removable are the flags of what can be taken away again.
func removable(form schema.Form) []string {
	var flags []string
	for _, link := range form.Links {
		if !link.Required && !link.Fixed {
			flags = append(flags, flagName(link.Name))
		}
	}
	for _, setting := range form.Settings {
		if !setting.Fixed && !setting.Required {
			flags = append(flags, flagName(setting.Name))
		}
	}
	return append(flags, listFlagsOf(form)...)
}

// declaration are the links and settings of one kind on the command line.
type declaration struct {
	form   schema.Form
	values map[string]*term.StringFlag // by flag
	lists  lists
}

// saidOf is what a line says of a resource.
type saidOf struct {
	links, settings map[string]string
	lists           map[string]*berthv1.Names
}

func (s *saidOf) nothing() bool { return len(s.links)+len(s.settings)+len(s.lists) == 0 }

// flags defines those that a verb can give: all of a new resource, and of one that is there those that can change.
func (d *declaration) flags(a *term.App, cmd *cobra.Command, given []string) {
	d.values = map[string]*term.StringFlag{}
	define := func(flag, word, doc string, completion cobra.CompletionFunc) {
		if slices.Contains(given, flag) {
			d.values[flag] = &term.StringFlag{Word: word}
			cmd.Flags().Var(d.values[flag], flag, doc)
			term.Complete(cmd, flag, completion)
		}
	}
	for _, link := range d.form.Links {
		define(flagName(link.Name), strings.ToUpper(string(link.To)), link.Doc, a.ResourceNames(link.To))
	}
	for _, setting := range d.form.Settings {
		doc, completion := setting.Doc, term.CompleteFixed(setting.Words...)
		if setting.Default != "" {
			doc += " (default " + setting.Default + ")"
		}
		if setting.Name == schema.SettingPath {
			completion = term.CompleteFiles
		}
		define(flagName(setting.Name), "VALUE", doc, completion)
	}
	d.lists.flags(cmd, d.form)
}

// read checks what stands on the line with the rules of the table and parts it into links, settings and lists.
func (d *declaration) read(cmd *cobra.Command) (said saidOf, err error) {
	said.links, said.settings = map[string]string{}, map[string]string{}
	for _, link := range d.form.Links {
		flag := flagName(link.Name)
		if value := d.values[flag]; value != nil && cmd.Flags().Changed(flag) {
			if value.Text == "" {
				return saidOf{}, term.Usagef(cmd, "--%s: %s is missing", flag, value.Word)
			}
			said.links[link.Name] = value.Text
		}
	}
	for _, setting := range d.form.Settings {
		flag := flagName(setting.Name)
		if value := d.values[flag]; value != nil && cmd.Flags().Changed(flag) {
			if said.settings[setting.Name], err = setting.Canonical(value.Text); err != nil {
				return saidOf{}, term.Usage(cmd, err)
			}
			if setting.IsAlias(value.Text) { // an export writes it as it was given
				said.settings[setting.Name] = value.Text
			}
		}
	}
	said.lists, err = d.lists.read(cmd, d.form)
	return said, err
}

// missing names the first flag that a new resource needs and the line does not have.
func (d *declaration) missing(cmd *cobra.Command, said saidOf) error {
	for _, link := range d.form.Links {
		if _, given := said.links[link.Name]; link.Required && !given {
			return term.Usagef(cmd, "--%s is missing: %s", flagName(link.Name), link.Doc)
		}
	}
	for _, setting := range d.form.Settings {
		if _, given := said.settings[setting.Name]; setting.Required && !given {
			return term.Usagef(cmd, "--%s is missing: %s", flagName(setting.Name), setting.Doc)
		}
	}
	return nil
}

// unsetFields reads --unset. Flags have dashes where fields have underscores; both are understood.
func unsetFields(cmd *cobra.Command, form schema.Form, unset []string) ([]string, error) {
	var fields []string
	removable := removable(form)
	for _, name := range unset {
		flag := flagName(fieldName(name))
		switch {
		case !slices.Contains(removable, flag):
			return nil, term.Usagef(cmd, "--unset %s: use %s", name, strings.Join(removable, ", "))
		case cmd.Flags().Changed(flag):
			return nil, term.Usagef(cmd, "--%s and --unset %s exclude each other", flag, name)
		}
		field := fieldName(flag)
		for _, list := range form.Lists {
			if singular(list.Name) == flag {
				field = list.Name
			}
		}
		fields = append(fields, field)
	}
	return fields, nil
}
