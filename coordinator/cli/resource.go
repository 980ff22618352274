package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	berthv1 "berth/shared/gen/berth/v1"
)

// estateCommands are the nouns of everything that is declared: one for each kind of the estate's table, which also says
// what flags there are and what they are about.
func (a *app) estateCommands() []*cobra.Command {
	var nouns []*cobra.Command
	for _, form := range estate.Forms() {
		nouns = append(nouns, a.resourceCommand(form))
	}
	return nouns
}

func (a *app) resourceCommand(form estate.Form) *cobra.Command {
	verbs := []*cobra.Command{a.resourceAddCommand(form), a.resourceListCommand(form), a.resourceShowCommand(form)}
	if len(changeable(form)) > 0 {
		verbs = append(verbs, a.resourceSetCommand(form))
	}
	verbs = append(verbs, a.resourceDeleteCommand(form))
	if form.HasNodeKeys {
		verbs = append(verbs, a.nodeKeyCommand())
	}
	long := fmt.Sprintf("%s: %s.\n\n%s", capital(article(title(form))), form.Doc, about[form.Kind])
	return noun(string(form.Kind)+" COMMAND", capital(form.Doc), long, verbs...)
}

// about says of a kind what its table does not.
var about = map[cluster.Kind]string{
	cluster.KindCluster: `Nodes join the cluster "default", which is there before it is declared; 'berth node set NODE --cluster NAME' moves an
empty one. A cluster starts with the special keys #RAM, #CPU and #LOAD, which make VMs go where there is room: 'berth
key list cluster/NAME' shows them. Settings and keys count for the next decision; nothing that runs is touched.`,
	cluster.KindBillingEntity: `Its keys reach the VMs of all its customers. Keys of the class billing-entity meet those of the same billing entity
only.`,
	cluster.KindOffer: `An offer is for one kind, and linked to from resources of that kind: they take its keys over unless they have their
own.`,
	cluster.KindCustomer: `Keys of the class customer, set on a VM and what belongs to it, meet those of the same customer only.`,
	cluster.KindVDC:      `A VM names its VDC, and gets from it its cluster, its customer and their keys: 'berth vm add NAME --vdc VDC'.`,
	cluster.KindImage:    `A VM names its image: 'berth vm add NAME --from IMAGE'. Berth neither makes nor copies the file.`,
	cluster.KindNetwork:  `A NIC names its network, and a VM its NICs. The network itself is libvirt's; Berth does not make it.`,
	cluster.KindDisk: `A VM names its disks: 'berth vm add NAME --attach DISK'. The first one's keys count. Berth neither makes nor copies
the file.`,
	cluster.KindNIC: `A VM names its NICs: 'berth vm add NAME --nic NIC'. The first one's keys count, and those of its network.`,
}

// title is what a kind is called in a sentence.
func title(form estate.Form) string {
	switch form.Kind {
	case cluster.KindVDC, cluster.KindNIC:
		return strings.ToUpper(string(form.Kind))
	}
	return strings.ReplaceAll(string(form.Kind), "-", " ")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// flagName is a link or a setting as a flag: billing_entity is --billing-entity.
func flagName(name string) string { return strings.ReplaceAll(name, "_", "-") }

func fieldName(flag string) string { return strings.ReplaceAll(strings.TrimSpace(flag), "-", "_") }

// changeable are the flags of what can change once a resource is there.
func changeable(form estate.Form) []string {
	var flags []string
	for _, link := range form.Links {
		flags = append(flags, flagName(link.Name))
	}
	for _, setting := range form.Settings {
		if !setting.Fixed {
			flags = append(flags, flagName(setting.Name))
		}
	}
	return flags
}

// removable are the flags of what can be taken away again.
func removable(form estate.Form) []string {
	var flags []string
	for _, link := range form.Links {
		if !link.Required {
			flags = append(flags, flagName(link.Name))
		}
	}
	for _, setting := range form.Settings {
		if !setting.Fixed && !setting.Required {
			flags = append(flags, flagName(setting.Name))
		}
	}
	return flags
}

// declaration are the links and settings of one kind on the command line.
type declaration struct {
	form   estate.Form
	values map[string]*worded // by flag
}

// worded is a flag's text, with the word that help shows in its place.
type worded struct{ text, word string }

func (w *worded) String() string { return w.text }

func (w *worded) Set(text string) error { w.text = text; return nil }

func (w *worded) Type() string { return w.word }

// flags defines those that a verb can give: all of a new resource, and of one that is there those that can change.
func (d *declaration) flags(a *app, cmd *cobra.Command, given []string) {
	d.values = map[string]*worded{}
	define := func(flag, word, doc string, completion cobra.CompletionFunc) {
		if slices.Contains(given, flag) {
			d.values[flag] = &worded{word: word}
			cmd.Flags().Var(d.values[flag], flag, doc)
			complete(cmd, flag, completion)
		}
	}
	for _, link := range d.form.Links {
		define(flagName(link.Name), strings.ToUpper(string(link.To)), link.Doc, a.resourceNames(link.To))
	}
	for _, setting := range d.form.Settings {
		doc, completion := setting.Doc, fixed(setting.Words...)
		if setting.Default != "" {
			doc += " (default " + setting.Default + ")"
		}
		if setting.Name == estate.SettingPath {
			completion = files
		}
		define(flagName(setting.Name), "VALUE", doc, completion)
	}
}

// read checks what stands on the line with the rules of the table and parts it into links and settings.
func (d *declaration) read(cmd *cobra.Command) (links, settings map[string]string, err error) {
	links, settings = map[string]string{}, map[string]string{}
	for _, link := range d.form.Links {
		flag := flagName(link.Name)
		if value := d.values[flag]; value != nil && cmd.Flags().Changed(flag) {
			if value.text == "" {
				return nil, nil, Usagef(cmd, "--%s: %s is missing", flag, value.word)
			}
			links[link.Name] = value.text
		}
	}
	for _, setting := range d.form.Settings {
		flag := flagName(setting.Name)
		if value := d.values[flag]; value != nil && cmd.Flags().Changed(flag) {
			if settings[setting.Name], err = setting.Canonical(value.text); err != nil {
				return nil, nil, usage(cmd, err)
			}
		}
	}
	return links, settings, nil
}

// missing names the first flag that a new resource needs and the line does not have.
func (d *declaration) missing(cmd *cobra.Command, links, settings map[string]string) error {
	for _, link := range d.form.Links {
		if _, given := links[link.Name]; link.Required && !given {
			return Usagef(cmd, "--%s is missing: %s", flagName(link.Name), link.Doc)
		}
	}
	for _, setting := range d.form.Settings {
		if _, given := settings[setting.Name]; setting.Required && !given {
			return Usagef(cmd, "--%s is missing: %s", flagName(setting.Name), setting.Doc)
		}
	}
	return nil
}

func (a *app) resourceAddCommand(form estate.Form) *cobra.Command {
	line := declaration{form: form}
	cmd := &cobra.Command{
		Use: "add NAME", Short: fmt.Sprintf("Declare a new %s", title(form)), Args: arguments(1, "NAME"),
		Example: addExample(form),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cluster.ValidateName(string(form.Kind), args[0]); err != nil {
				return usage(cmd, err)
			}
			links, settings, err := line.read(cmd)
			if err != nil {
				return err
			}
			if err := line.missing(cmd, links, settings); err != nil {
				return err
			}
			return a.resourceAdd(cmd, form, &berthv1.AddResourceRequest{
				Kind: string(form.Kind), Name: args[0], Links: links, Settings: settings, RequestId: requestID(),
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	line.flags(a, cmd, allFlags(form))
	return cmd
}

func (a *app) resourceAdd(cmd *cobra.Command, form estate.Form, request *berthv1.AddResourceRequest) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.AddResource, request)
	if err != nil {
		return err
	}
	return a.print(cmd, result{
		message: answer, names: []string{resourceRef(answer.GetResource())},
		text: func(p *page, _ bool) {
			p.line("%s added%s", resourceRef(answer.GetResource()), because(declared(form, answer.GetResource())))
		},
	})
}

func allFlags(form estate.Form) []string {
	var flags []string
	for _, link := range form.Links {
		flags = append(flags, flagName(link.Name))
	}
	for _, setting := range form.Settings {
		flags = append(flags, flagName(setting.Name))
	}
	return flags
}

func resourceRef(r *berthv1.Resource) string { return r.GetKind() + "/" + r.GetName() }

// declared lists what was set on a resource.
func declared(form estate.Form, r *berthv1.Resource) string {
	var parts []string
	for _, link := range form.Links {
		if name, set := r.GetLinks()[link.Name]; set {
			parts = append(parts, link.Name+" "+name)
		}
	}
	for _, setting := range form.Settings {
		if value, set := r.GetSettings()[setting.Name]; set {
			parts = append(parts, setting.Name+" "+shownSetting(setting.Name, value))
		}
	}
	return strings.Join(parts, ", ")
}

// because puts details behind what they belong to.
func because(details string) string {
	if details == "" {
		return ""
	}
	return ": " + details
}

func (a *app) resourceSetCommand(form estate.Form) *cobra.Command {
	line := declaration{form: form}
	var unset []string
	cmd := &cobra.Command{
		Use: "set NAME", Short: fmt.Sprintf("Change %s: its links and settings", article(title(form))), Args: arguments(1, "NAME"),
		Long: fmt.Sprintf(`Change %s: its links and settings. What is not named stays as it is; --unset takes something back to its
default. Nothing that runs is touched: it counts for the next decision.`, article(title(form))),
		Example: setExample(form),
		RunE: func(cmd *cobra.Command, args []string) error {
			links, settings, err := line.read(cmd)
			if err != nil {
				return err
			}
			fields, err := unsetFields(cmd, unset, removable(form))
			switch {
			case err != nil:
				return err
			case len(links)+len(settings)+len(fields) == 0:
				return Usagef(cmd, "say what to set: --%s or --unset", strings.Join(changeable(form), ", --"))
			}
			return a.resourceSet(cmd, form, &berthv1.ChangeResourceRequest{
				Kind: string(form.Kind), Name: args[0], Links: links, Settings: settings, Unset: fields, RequestId: requestID(),
			})
		},
		ValidArgsFunction: first(a.resourceNames(form.Kind)),
	}
	line.flags(a, cmd, changeable(form))
	if names := removable(form); len(names) > 0 {
		cmd.Flags().StringSliceVar(&unset, "unset", nil, "`NAMES` to take back to the default: "+strings.Join(names, ", "))
		complete(cmd, "unset", fixed(names...))
	}
	return cmd
}

// unsetFields reads --unset. Flags have dashes where fields have underscores; both are understood.
func unsetFields(cmd *cobra.Command, unset, removable []string) ([]string, error) {
	var fields []string
	for _, name := range unset {
		flag := flagName(fieldName(name))
		switch {
		case !slices.Contains(removable, flag):
			return nil, Usagef(cmd, "--unset %s: use %s", name, strings.Join(removable, ", "))
		case cmd.Flags().Changed(flag):
			return nil, Usagef(cmd, "--%s and --unset %s exclude each other", flag, name)
		}
		fields = append(fields, fieldName(flag))
	}
	return fields, nil
}

func (a *app) resourceSet(cmd *cobra.Command, form estate.Form, request *berthv1.ChangeResourceRequest) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.ChangeResource, request)
	if err != nil {
		return err
	}
	return a.print(cmd, result{
		message: answer, names: []string{resourceRef(answer.GetResource())},
		text: func(p *page, _ bool) {
			p.line("%s%s", resourceRef(answer.GetResource()), because(or(declared(form, answer.GetResource()), "nothing set, all as by default")))
		},
	})
}

func (a *app) resourceDeleteCommand(form estate.Form) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: fmt.Sprintf("Forget %s that nothing links to", article(title(form))), Args: arguments(1, "NAME"),
		Long: fmt.Sprintf(`Forget %s, with its keys. One that others link to stays; the error names them.`, article(title(form))),
		Example: fmt.Sprintf(`  berth %[1]s delete %[2]s
  berth %[1]s delete %[2]s --yes`, form.Kind, samples[form.Kind]),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref := string(form.Kind) + "/" + args[0]
			if err := confirm(cmd, yes, fmt.Sprintf("Forget %s and its keys?", ref)); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.DeleteResource,
				&berthv1.DeleteResourceRequest{Kind: string(form.Kind), Name: args[0], RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: []string{ref}, text: func(p *page, _ bool) { p.line("%s deleted", ref) },
			})
		},
		ValidArgsFunction: first(a.resourceNames(form.Kind)),
	}
	confirmFlag(cmd, &yes)
	return cmd
}

// samples are names and values for examples.
var (
	samples = map[cluster.Kind]string{
		cluster.KindCluster: "prod", cluster.KindBillingEntity: "reseller", cluster.KindOffer: "small", cluster.KindCustomer: "acme",
		cluster.KindVDC: "acme-prod", cluster.KindImage: "debian", cluster.KindNetwork: "lan", cluster.KindDisk: "web-1-root",
		cluster.KindNIC: "web-1-nic",
	}
	sampleSettings = map[string]string{
		cluster.SettingRAMRatio: "1.5", estate.SettingMaster: "true", estate.SettingFor: "vm", estate.SettingFormat: "qcow2",
		estate.SettingPath: "/srv/images/web-1.qcow2", estate.SettingSource: "bridge:br0",
	}
)

func addExample(form estate.Form) string {
	bare := fmt.Sprintf("  berth %s add %s", form.Kind, samples[form.Kind])
	full := bare
	for _, link := range form.Links {
		flag := " --" + flagName(link.Name) + " " + samples[link.To]
		full += flag
		if link.Required {
			bare += flag
		}
	}
	for _, setting := range form.Settings {
		value, known := sampleSettings[setting.Name]
		if !known {
			continue
		}
		flag := " --" + flagName(setting.Name) + " " + value
		full += flag
		if setting.Required {
			bare += flag
		}
	}
	if full == bare {
		return bare
	}
	return bare + "\n" + full
}

func setExample(form estate.Form) string {
	start := fmt.Sprintf("  berth %s set %s", form.Kind, samples[form.Kind])
	var lines []string
	for _, link := range form.Links {
		lines = append(lines, start+" --"+flagName(link.Name)+" "+samples[link.To])
	}
	for _, setting := range form.Settings {
		if value, known := sampleSettings[setting.Name]; known && !setting.Fixed {
			lines = append(lines, start+" --"+flagName(setting.Name)+" "+value)
		}
	}
	lines = lines[:min(len(lines), 2)]
	if names := removable(form); len(names) > 0 {
		lines = append(lines, start+" --unset "+names[0])
	}
	return strings.Join(lines, "\n")
}
