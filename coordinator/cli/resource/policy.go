package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/balance"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/weigher"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
)

func policyCopyCommand(a *term.App, form schema.Form) *cobra.Command {
	line := declaration{form: form}
	cmd := &cobra.Command{
		Use: "copy POLICY NAME", Short: "Make a policy of your own from another one", Args: term.Arguments(2, "POLICY", "NAME"),
		Long: `Make a policy of your own from another one, built in or not. The flags change the copy: --weigher and its likes replace
the whole list, and 'berth policy set' changes single entries afterwards. 'berth cluster set CLUSTER --policy NAME'
puts it to use.`,
		Example: `  berth policy copy evenly-distributed mine
  berth policy copy vm-evenly-distributed mine --parameter MigrationThreshold=3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := model.ValidateName(string(form.Kind), args[1]); err != nil {
				return term.Usage(cmd, err)
			}
			said, err := line.read(cmd)
			if err != nil {
				return err
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			answer, err := term.Ask(cmd.Context(), s, term.Client.GetResource,
				&berthv1.GetResourceRequest{Kind: string(form.Kind), Name: args[0]})
			s.Close()
			if err != nil {
				return err
			}
			return add(a, cmd, form, copied(form, answer.GetResource(), args[1], said))
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(form.Kind)),
	}
	line.flags(a, cmd, allFlags(form))
	return cmd
}

// copied asks for a resource like another one, but for what the line says. What the other one has by default is left out, so
// that the copy follows a default that changes with a release.
func copied(form schema.Form, of *berthv1.Resource, name string, said saidOf) *berthv1.AddResourceRequest {
	request := &berthv1.AddResourceRequest{
		Kind: string(form.Kind), Name: name, Links: said.links, Settings: map[string]string{}, Lists: map[string]*berthv1.Names{},
		RequestId: term.RequestID(),
	}
	for _, setting := range form.Settings {
		if value := effective(of, setting); value != setting.Default {
			request.Settings[setting.Name] = value
		}
		if value, given := said.settings[setting.Name]; given {
			request.Settings[setting.Name] = value
		}
	}
	for _, list := range form.Lists {
		if items := effectiveList(of, list); !sameItems(items, list.Default) {
			request.Lists[list.Name] = &berthv1.Names{Names: items}
		}
		if names, given := said.lists[list.Name]; given {
			request.Lists[list.Name] = names
		}
	}
	return request
}

func sameItems(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// listOf is one of the lists of policies, as the table of kinds has it.
func listOf(name string) schema.List {
	form, _ := schema.FormOf(model.KindPolicy)
	at := slices.IndexFunc(form.Lists, func(l schema.List) bool { return l.Name == name })
	return form.Lists[at]
}

// settingOf is the value in force of one of the settings of policies.
func settingOf(r *berthv1.Resource, name string) string {
	form, _ := schema.FormOf(model.KindPolicy)
	at := slices.IndexFunc(form.Settings, func(s schema.Setting) bool { return s.Name == name })
	return effective(r, form.Settings[at])
}

func policyTable(a *term.App, p *term.Page, policies []*berthv1.Resource, wide bool) {
	headings := []string{"NAME", "GATE", "SELECTOR", "BALANCER", "PARAMETERS", "WEIGHERS"}
	if wide {
		headings = append(headings, "PLANNER", "CONSTRAINTS", "CREATED", "ID")
	}
	cell := func(r *berthv1.Resource, list string) string {
		return cmp.Or(strings.Join(effectiveList(r, listOf(list)), ","), term.None)
	}
	rows := make([][]string, 0, len(policies))
	for _, r := range policies {
		row := []string{
			r.GetName(), settingOf(r, schema.SettingGate), settingOf(r, schema.SettingSelector), settingOf(r, schema.SettingBalancer),
			cell(r, schema.ListParameters), cell(r, schema.ListWeighers),
		}
		if wide {
			created := a.At(r.GetCreatedAt())
			if r.GetBuiltIn() {
				created = "built-in"
			}
			row = append(row, settingOf(r, schema.SettingPlanner), cell(r, schema.ListConstraints), created, r.GetId())
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

// policyText writes what a policy switches on: each rule with its factor or value, its default, and what it does.
func policyText(p *term.Page, r *berthv1.Resource) {
	var rows [][]string
	for _, pair := range effectiveList(r, listOf(schema.ListWeighers)) {
		name, factor := schema.CutPair(pair)
		known, _ := weigher.ByName(name)
		rows = append(rows, []string{name, term.Exact(factor), cmp.Or(known.Doc, unknownRule)})
	}
	section(p, "weighers, of which several are combined by "+settingOf(r, schema.SettingSelector), []string{"WEIGHER", "FACTOR", "WHAT"}, rows,
		"no weighers: a node is drawn of those that pass")
	rows = nil
	for _, name := range effectiveList(r, listOf(schema.ListConstraints)) {
		known, _ := constraint.ByName(name)
		rows = append(rows, []string{name, cmp.Or(known.Doc, unknownRule)})
	}
	section(p, "constraints, all of which a node has to pass", []string{"CONSTRAINT", "WHAT"}, rows, "")
	parametersText(p, r)
}

// unknownRule stands for the description of a rule that another release of the coordinator has.
const unknownRule = "not known to this release of the command line"

// parametersText writes the balancer of a policy with all of its parameters.
func parametersText(p *term.Page, r *berthv1.Resource) {
	name := settingOf(r, schema.SettingBalancer)
	if name == balance.None {
		p.Blank()
		p.Line("no balancer: VMs stay where they are while the cluster is uneven")
		return
	}
	balancer, _ := balance.ByName(name)
	set := map[string]float64{}
	for _, pair := range effectiveList(r, listOf(schema.ListParameters)) {
		parameter, value := schema.CutPair(pair)
		set[parameter] = value
	}
	rows := make([][]string, 0, len(balancer.Parameters))
	for _, parameter := range balancer.Parameters {
		value, given := set[parameter.Name]
		if !given {
			value = parameter.Default
		}
		rows = append(rows, []string{
			parameter.Name, term.Exact(value), term.Exact(parameter.Default),
			term.Exact(parameter.Least) + ".." + term.Exact(parameter.Most), parameter.Doc,
		})
	}
	section(
		p, fmt.Sprintf("balancer %s: %s", name, cmp.Or(balancer.Doc, unknownRule)),
		[]string{"PARAMETER", "VALUE", "DEFAULT", "RANGE", "WHAT"}, rows, "",
	)
}

// section writes a table below a title, or what it means that it is empty.
func section(p *term.Page, title string, headings []string, rows [][]string, otherwise string) {
	p.Blank()
	if len(rows) == 0 && otherwise != "" {
		p.Line("%s", otherwise)
		return
	}
	p.Line("%s", title)
	p.Indented("  ", headings, rows)
}
