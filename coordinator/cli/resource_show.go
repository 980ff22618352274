package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	engine "berth/coordinator/placement"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// tableSettings is how many settings a table shows that is not wide. The table of kinds has the most telling ones first.
const tableSettings = 4

func (a *app) resourceListCommand(form estate.Form) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List " + plural(form), Args: arguments(0),
		Example: fmt.Sprintf(`  berth %[1]s list
  berth %[1]s list -o wide`, form.Kind),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListResources,
				&berthv1.ListResourcesRequest{Kind: string(form.Kind)}, everything)
			if err != nil {
				return err
			}
			a.nothing(cmd, len(answer.GetResources()), fmt.Sprintf("no %s: 'berth %s %s --help' shows how to declare one", plural(form), form.Kind, addVerb(form)))
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("", answer.GetResources(), resourceRef),
				text: func(p *page, wide bool) {
					if form.Kind == cluster.KindPolicy {
						a.policyTable(p, answer.GetResources(), wide)
						return
					}
					a.resourceTable(p, form, answer.GetResources(), wide)
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func plural(form estate.Form) string {
	text := strings.ReplaceAll(form.Plural, "_", " ")
	if form.Kind == cluster.KindVDC || form.Kind == cluster.KindNIC {
		return strings.ToUpper(string(form.Kind)) + "s"
	}
	return text
}

func (a *app) resourceTable(p *page, form estate.Form, resources []*berthv1.Resource, wide bool) {
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
			row = append(row, or(linked(r, link), or(implied(link, cluster.KindPolicy), none)))
		}
		for _, setting := range settings {
			row = append(row, or(dense(valueOf(r, setting)), none))
		}
		row = append(row, volumeCells(form, r)...)
		if form.HasNodeKeys {
			row = append(row, strconv.Itoa(len(r.GetNodeKeys())))
		}
		if form.Kind.Keys() {
			row = append(row, strconv.Itoa(len(r.GetKeys())))
		}
		if wide {
			row = append(row, a.at(r.GetCreatedAt()), or(r.GetId(), none))
		}
		rows = append(rows, row)
	}
	p.table(headings, rows)
}

// dense takes the blanks out of a cell, so that programs can tell columns apart.
func dense(s string) string { return strings.ReplaceAll(s, " ", "") }

// effective is a setting's value in force: what was set, or the default.
func effective(r *berthv1.Resource, setting estate.Setting) string {
	if value, set := r.GetSettings()[setting.Name]; set {
		return value
	}
	return or(r.GetEffectiveSettings()[setting.Name], setting.Default)
}

// shownSetting prints a setting. Sizes are stored in bytes.
func shownSetting(setting estate.Setting, value string) string {
	if !setting.Bytes {
		return value
	}
	bytes, err := units.ParseBytes(value)
	if err != nil {
		return value
	}
	return bytes.String()
}

func (a *app) resourceShowCommand(form estate.Form) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: fmt.Sprintf("Show %s: %s, and what uses it", article(title(form)), strings.Join(contents(form, true), ", ")), Args: arguments(1, "NAME"),
		Example: fmt.Sprintf(`  berth %[1]s show %[2]s
  berth %[1]s show %[2]s -o yaml`, form.Kind, samples[form.Kind]),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetResource,
				&berthv1.GetResourceRequest{Kind: string(form.Kind), Name: args[0]})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   []string{resourceRef(answer.GetResource())},
				text: func(p *page, wide bool) {
					a.resourceText(p, form, answer.GetResource(), wide)
					if form.Kind == cluster.KindPolicy {
						policyText(p, answer.GetResource())
					}
				},
			})
		},
		ValidArgsFunction: first(a.resourceNames(form.Kind)),
	}
}

// implied is what a link of one of these kinds leads to while it is not set.
func implied(link estate.Link, kinds ...cluster.Kind) string {
	switch {
	case !slices.Contains(kinds, link.To):
		return ""
	case link.To == cluster.KindCluster:
		return cluster.DefaultCluster
	}
	return engine.PolicyAffinity
}

// elsewhere tells whether a resource names a zone or a pod, and then no cluster.
func elsewhere(r *berthv1.Resource) bool {
	return r.GetLinks()[estate.LinkZone] != "" || cluster.Kind(r.GetKind()) == cluster.KindVDC && r.GetLinks()[estate.LinkPod] != ""
}

// contents are the sorts of things that a kind has: those that can be set on it, or all that are shown.
func contents(form estate.Form, shown bool) []string {
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

func (a *app) resourceText(p *page, form estate.Form, r *berthv1.Resource, wide bool) {
	p.line("%s", resourceRef(r))
	var rows [][2]string
	for _, link := range form.Links {
		name := r.GetLinks()[link.Name]
		if there := implied(link, cluster.KindCluster, cluster.KindPolicy); name == "" && there != "" && !elsewhere(r) {
			name = there + " (default)"
		}
		rows = append(rows, [2]string{link.Name, or(name, none)})
	}
	for _, setting := range form.Settings {
		value := or(shownSetting(setting, effective(r, setting)), none)
		if _, set := r.GetSettings()[setting.Name]; !set && value != none && !r.GetBuiltIn() {
			value += " (default)"
		}
		rows = append(rows, [2]string{setting.Name, value})
	}
	rows = append(rows, contentRows(r)...)
	created := a.at(r.GetCreatedAt())
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
	rows = append(rows, [2]string{"used by", or(strings.Join(r.GetUsedBy(), ", "), "nothing")})
	p.fields("  ", rows...)
	if len(r.GetNodeKeys()) > 0 {
		p.blank()
		p.line("node keys")
		nodeKeyTable(p, "  ", r.GetNodeKeys())
	}
	if len(r.GetKeys()) > 0 {
		p.blank()
		p.line("keys")
		keyTable(p, "  ", r.GetKeys(), nil)
	}
}

// resourceNames completes with the names of one kind, resourceRefs with kind/name of all that can have keys.
func (a *app) resourceNames(kind cluster.Kind) cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) ([]string, error) {
		answer, err := askAll(ctx, s, client.ListResources, &berthv1.ListResourcesRequest{Kind: string(kind)}, everything)
		return prefixed("", answer.GetResources(), (*berthv1.Resource).GetName), err
	})
}

func (a *app) resourceRefs(withNodes bool) cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) ([]string, error) {
		resources, err := askAll(ctx, s, client.ListResources, &berthv1.ListResourcesRequest{}, everything)
		if err != nil {
			return nil, err
		}
		var refs []string
		for _, resource := range resources.GetResources() {
			if cluster.Kind(resource.GetKind()).Keys() {
				refs = append(refs, resourceRef(resource))
			}
		}
		vms, err := askAll(ctx, s, client.ListVMs, &berthv1.ListVMsRequest{}, everything)
		if err != nil {
			return nil, err
		}
		refs = append(refs, prefixed("vm/", vms.GetVms(), (*berthv1.VM).GetName)...)
		if !withNodes {
			return refs, nil
		}
		nodes, err := askAll(ctx, s, client.ListNodes, &berthv1.ListNodesRequest{}, everything)
		return append(refs, prefixed("node/", nodes.GetNodes(), (*berthv1.Node).GetName)...), err
	})
}
