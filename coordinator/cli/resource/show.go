package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/keyform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// tableSettings is how many settings a table shows that is not wide. The table of kinds has the most telling ones first.
const tableSettings = 4

func listCommand(a *term.App, form schema.Form) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List " + plural(form), Args: term.Arguments(0),
		Example: fmt.Sprintf(`  berth %[1]s list
  berth %[1]s list -o wide`, form.Kind),
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListResources,
				&berthv1.ListResourcesRequest{Kind: string(form.Kind)}, term.Everything)
			if err != nil {
				return err
			}
			a.NoteIfEmpty(
				cmd, len(answer.GetResources()),
				fmt.Sprintf("no %s: 'berth %s %s --help' shows how to declare one", plural(form), form.Kind, verbAdd),
			)
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   term.Prefixed("", answer.GetResources(), term.ResourceRef),
				Text: func(p *term.Page, wide bool) {
					if form.Kind == model.KindPolicy {
						policyTable(a, p, answer.GetResources(), wide)
						return
					}
					table(a, p, form, answer.GetResources(), wide)
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func plural(form schema.Form) string {
	text := strings.ReplaceAll(form.Plural, "_", " ")
	if form.Kind == model.KindVDC || form.Kind == model.KindNIC {
		return strings.ToUpper(string(form.Kind)) + "s"
	}
	return text
}

func table(a *term.App, p *term.Page, form schema.Form, resources []*berthv1.Resource, wide bool) {
	settings := form.Settings
	if !wide {
		settings = settings[:min(len(settings), tableSettings)]
	}
	headings := []string{"NAME"}
	for _, link := range form.Links {
		headings = append(headings, strings.ToUpper(flagName(link.Name)))
	}
	for _, setting := range settings {
		headings = append(headings, strings.ToUpper(flagName(setting.Name)))
	}
	headings = append(headings, volumeHeadings(form)...)
	if form.HasNodeKeys {
		headings = append(headings, "NODE-KEYS")
	}
	if form.Kind.Keys() {
		headings = append(headings, "KEYS")
	}
	if wide {
		headings = append(headings, "CREATED", "ID")
	}
	rows := make([][]string, 0, len(resources))
	for _, r := range resources {
		row := []string{r.GetName()}
		for _, link := range form.Links {
			row = append(row, cmp.Or(linked(r, link), cmp.Or(implied(link, model.KindPolicy), term.None)))
		}
		for _, setting := range settings {
			row = append(row, cmp.Or(term.Dense(valueOf(r, setting)), term.None))
		}
		row = append(row, volumeCells(form, r)...)
		if form.HasNodeKeys {
			row = append(row, strconv.Itoa(len(r.GetNodeKeys())))
		}
		if form.Kind.Keys() {
			row = append(row, strconv.Itoa(len(r.GetKeys())))
		}
		if wide {
			row = append(row, a.At(r.GetCreatedAt()), cmp.Or(r.GetId(), term.None))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

// effective is a setting's value in force: what was set, or the default.
func effective(r *berthv1.Resource, setting schema.Setting) string {
	if value, set := r.GetSettings()[setting.Name]; set {
		return value
	}
	return cmp.Or(r.GetEffectiveSettings()[setting.Name], setting.Default)
}

// shownSetting prints a setting. Sizes are stored in bytes.
func shownSetting(setting schema.Setting, value string) string {
	if !setting.Bytes {
		return value
	}
	bytes, err := units.ParseBytes(value)
	if err != nil {
		return value
	}
	return bytes.String()
}

func showCommand(a *term.App, form schema.Form) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: fmt.Sprintf(
			"Show %s: %s, and what uses it", term.Article(title(form)), strings.Join(contents(form, true), ", "),
		), Args: term.Arguments(1, "NAME"),
		Example: fmt.Sprintf(`  berth %[1]s show %[2]s
  berth %[1]s show %[2]s -o yaml`, form.Kind, samples[form.Kind]),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetResource,
				&berthv1.GetResourceRequest{Kind: string(form.Kind), Name: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{term.ResourceRef(answer.GetResource())},
				Text: func(p *term.Page, wide bool) {
					text(a, p, form, answer.GetResource(), wide)
					if form.Kind == model.KindPolicy {
						policyText(p, answer.GetResource())
					}
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(form.Kind)),
	}
}

// implied is what a link of one of these kinds leads to while it is not set.
func implied(link schema.Link, kinds ...model.Kind) string {
	switch {
	case !slices.Contains(kinds, link.To):
		return ""
	case link.To == model.KindCluster:
		return model.DefaultCluster
	}
	return policies.Affinity
}

// elsewhere tells whether a resource names a zone or a pod, and then no cluster.
func elsewhere(r *berthv1.Resource) bool {
	return r.GetLinks()[schema.LinkZone] != "" || model.Kind(r.GetKind()) == model.KindVDC && r.GetLinks()[schema.LinkPod] != ""
}

// contents are the sorts of things that a kind has: those that can be set on it, or all that are shown.
func contents(form schema.Form, shown bool) []string {
	var sorts []string
	if len(form.Links) > 0 {
		sorts = append(sorts, "links")
	}
	sorts = append(sorts, "settings")
	if len(form.Lists) > 0 {
		sorts = append(sorts, "lists")
	}
	if shown && form.Kind.Keys() {
		sorts = append(sorts, "keys")
	}
	return sorts
}

func text(a *term.App, p *term.Page, form schema.Form, r *berthv1.Resource, wide bool) {
	p.Line("%s", term.ResourceRef(r))
	var rows [][2]string
	for _, link := range form.Links {
		name := r.GetLinks()[link.Name]
		if there := implied(link, model.KindCluster, model.KindPolicy); name == "" && there != "" && !elsewhere(r) {
			name = there + " (default)"
		}
		rows = append(rows, [2]string{link.Name, cmp.Or(name, term.None)})
	}
	for _, setting := range form.Settings {
		value := cmp.Or(shownSetting(setting, effective(r, setting)), term.None)
		if _, set := r.GetSettings()[setting.Name]; !set && value != term.None && !r.GetBuiltIn() {
			value += " (" + cmp.Or(r.GetEffectiveFrom()[setting.Name], "default") + ")"
		}
		rows = append(rows, [2]string{setting.Name, value})
	}
	rows = append(rows, contentRows(r)...)
	created := a.At(r.GetCreatedAt())
	switch {
	case r.GetBuiltIn():
		created = fmt.Sprintf("built in; 'berth %s copy %s NAME' makes one that can change", form.Kind, r.GetName())
	case r.GetCreatedAt() == nil:
		created = "by itself; it is declared when it is first changed"
	}
	rows = append(rows, [2]string{"created", created})
	if wide {
		rows = append(rows, [2]string{"revision", strconv.FormatUint(r.GetRevision(), 10)}, [2]string{"ID", r.GetId()})
	}
	rows = append(rows, [2]string{"used by", cmp.Or(strings.Join(r.GetUsedBy(), ", "), "nothing")})
	p.Fields("  ", rows...)
	if len(r.GetNodeKeys()) > 0 {
		p.Blank()
		p.Line("node keys")
		keyform.NodeTable(p, "  ", r.GetNodeKeys())
	}
	if len(r.GetKeys()) > 0 {
		p.Blank()
		p.Line("keys")
		keyform.Table(p, "  ", r.GetKeys(), nil)
	}
}
