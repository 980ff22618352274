package resource

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Commands are the nouns of everything that is declared: one for each kind of the estate's table, which also says
// what flags there are and what they are about.
func Commands(a *term.App) []*cobra.Command {
	var nouns []*cobra.Command
	for _, form := range schema.Forms() {
		if form.Kind == model.KindGroup {
			continue // it has verbs of its own
		}
		nouns = append(nouns, command(a, form))
	}
	return nouns
}

func command(a *term.App, form schema.Form) *cobra.Command {
	verbs := []*cobra.Command{addCommand(a, form)}
	if form.Kind == model.KindPool {
		verbs = append(verbs, poolListCommand(a), poolShowCommand(a))
	} else {
		verbs = append(verbs, listCommand(a, form), showCommand(a, form))
	}
	if len(changeable(form)) > 0 {
		verbs = append(verbs, setCommand(a, form))
	} else {
		verbs = append(verbs, fixedCommand(form))
	}
	switch form.Kind {
	case model.KindPolicy:
		verbs = append(verbs, policyCopyCommand(a, form))
	case model.KindImage:
		verbs = append(verbs, imageImportCommand(a))
	case model.KindDisk:
		verbs = append(verbs, diskGrowCommand(a))
	case model.KindCustomer:
		verbs = append(verbs, customerSpreadCommand(a))
	}
	verbs = append(verbs, deleteCommand(a, form))
	if form.HasNodeKeys {
		verbs = append(verbs, nodeKeyCommand(a))
	}
	long := fmt.Sprintf("%s: %s.\n\n%s", capital(term.Article(title(form))), form.Doc, about[form.Kind])
	return term.Noun(string(form.Kind)+" COMMAND", capital(form.Doc), long, verbs...)
}

// about says of a kind what its table does not.
var about = map[model.Kind]string{
	model.KindZone: `A zone has pods, a pod clusters, a cluster nodes. A VM or a VDC that names a zone or a pod is placed in one of its
clusters: the planner that the VM's offer names, or the zone's, puts pods and clusters in order. Inside a cluster its
policy decides.`,
	model.KindPod: `A cluster names its pod: 'berth cluster set NAME --pod POD'. A VM may be put into a pod as a whole: 'berth vm add NAME
--pod POD'.`,
	model.KindPool: `The pool itself is libvirt's, of the same name on all nodes that have it: 'virsh pool-list' shows them. A shared one
shows all nodes the same volumes, at the same path; of a local one each node has its own, and a VM with a disk there
moves with --copy-storage only. 'berth pool list' tells how full they are.`,
	model.KindCluster: `Nodes join the cluster "default", which is there before it is declared; 'berth node set NODE --cluster NAME' moves an
empty one. A cluster starts with the special keys #RAM, #CPU and #LOAD, which make VMs go where there is room: 'berth
key list cluster/NAME' shows them. Settings and keys count for the next decision; nothing that runs is touched.`,
	model.KindBillingEntity: `Its keys reach the VMs of all its customers. ` +
		`Keys of the class billing-entity meet those of the same billing entity
only.`,
	model.KindOffer: `An offer is for one kind, and linked to from resources of that kind: they take its keys over unless they have their
own. An offer for VMs may name the planner of its VMs, when it is made and not later: VMs that it has placed are not
placed anew.`,
	model.KindCustomer: `Keys of the class customer, set on a VM and what belongs to it, meet those of the same customer only.`,
	model.KindPolicy: `A cluster links to its policy: 'berth cluster set NAME --policy POLICY'. It says which constraints a node has to
pass, what is weighed and how much each counts, how that is combined, and which balancer evens the cluster out. Four are
built in: affinity (the default), evenly-distributed, vm-evenly-distributed and none; copy one to change it. A policy
that changes counts for the next decision; nothing moves at once.`,
	model.KindVDC: `A VM names its VDC, and gets from it where it runs, its customer and their keys: 'berth vm add NAME --vdc VDC'. With a
zone or a pod its VMs go to any cluster there, with a cluster to that one.`,
	model.KindImage: `'berth image import FILE --pool POOL' makes an image that disks are thin copies of: 'berth vm start NAME --image IMAGE'.
An image with a path is a file on the nodes, the last and read-only disk of VMs that name it: 'berth vm add NAME --from
IMAGE'. Berth neither makes nor copies that file.`,
	model.KindNetwork: `A NIC names its network, and a VM its NICs. The network itself is libvirt's; Berth does not make it.`,
	model.KindDisk: `A VM names its disks: 'berth vm add NAME --attach DISK'. The first one's keys count. A disk with a size or an image is a
volume: the first start of its VM makes it, in a pool that has room, and it goes with its VM unless keep is true. A disk
with a path is a file on the nodes, which Berth neither makes nor copies.`,
	model.KindNIC: `A VM names its NICs: 'berth vm add NAME --nic NIC'. The first one's keys count, and those of its network.`,
}

// title is what a kind is called in a sentence.
func title(form schema.Form) string {
	switch form.Kind {
	case model.KindVDC, model.KindNIC:
		return strings.ToUpper(string(form.Kind))
	}
	return strings.ReplaceAll(string(form.Kind), "-", " ")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func addCommand(a *term.App, form schema.Form) *cobra.Command {
	line := declaration{form: form}
	cmd := &cobra.Command{
		Use: verbAdd + " NAME", Aliases: formerly(form, "create"),
		Short: fmt.Sprintf("Declare a new %s", title(form)), Args: term.Arguments(1, "NAME"),
		Example: addExample(form),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := model.ValidateName(string(form.Kind), args[0]); err != nil {
				return term.Usage(cmd, err)
			}
			said, err := line.read(cmd)
			if err != nil {
				return err
			}
			if err := line.missing(cmd, said); err != nil {
				return err
			}
			return add(a, cmd, form, &berthv1.AddResourceRequest{
				Kind: string(form.Kind), Name: args[0], Links: said.links, Settings: said.settings, Lists: said.lists, RequestId: term.RequestID(),
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	line.flags(a, cmd, allFlags(form))
	return cmd
}

// The verbs of all kinds.
const (
	verbAdd = "add"
	verbSet = "set"
)

// formerly is what a verb of policies was called; they understand that for one release more.
func formerly(form schema.Form, verb string) []string {
	if form.Kind == model.KindPolicy {
		return []string{verb}
	}
	return nil
}

func add(a *term.App, cmd *cobra.Command, form schema.Form, request *berthv1.AddResourceRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.AddResource, request)
	if err != nil {
		return err
	}
	if form.Kind == model.KindPool {
		notePoolless(a, cmd, request.GetName())
	}
	a.Cautions(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{term.ResourceRef(answer.GetResource())},
		Text: func(p *term.Page, _ bool) {
			p.Line("%s added%s", term.ResourceRef(answer.GetResource()), because(declared(form, answer.GetResource())))
		},
	})
}

// declared lists what was set on a resource.
func declared(form schema.Form, r *berthv1.Resource) string {
	var parts []string
	for _, link := range form.Links {
		if name, set := r.GetLinks()[link.Name]; set {
			parts = append(parts, link.Name+" "+name)
		}
	}
	for _, setting := range form.Settings {
		if value, set := r.GetSettings()[setting.Name]; set {
			parts = append(parts, setting.Name+" "+shownSetting(setting, value))
		}
	}
	for _, list := range form.Lists {
		if items := r.GetLists()[list.Name].GetItems(); len(items) > 0 {
			parts = append(parts, list.Name+" "+strings.Join(items, " "))
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

func setCommand(a *term.App, form schema.Form) *cobra.Command {
	line := declaration{form: form}
	var unset []string
	cmd := &cobra.Command{
		Use: verbSet + " NAME", Aliases: formerly(form, "edit"),
		Short: fmt.Sprintf(
			"Change %s: its %s", term.Article(title(form)), strings.Join(contents(form, false), " and "),
		), Args: term.Arguments(1, "NAME"),
		Long:    setLong(form),
		Example: setExample(form),
		RunE: func(cmd *cobra.Command, args []string) error {
			said, err := line.read(cmd)
			if err != nil {
				return err
			}
			fields, err := unsetFields(cmd, form, unset)
			switch {
			case err != nil:
				return err
			case said.nothing() && len(fields) == 0 && !line.stepwise(cmd):
				return term.Usagef(cmd, "say what to set: --%s or --unset", strings.Join(changeable(form), ", --"))
			}
			if err := line.checkSteps(cmd, fields); err != nil {
				return err
			}
			return set(a, cmd, &line, &berthv1.ChangeResourceRequest{
				Kind: string(form.Kind), Name: args[0], Links: said.links, Settings: said.settings, Lists: said.lists, Unset: fields,
				RequestId: term.RequestID(),
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(form.Kind)),
	}
	line.flags(a, cmd, changeable(form))
	line.stepFlags(cmd)
	if names := removable(form); len(names) > 0 {
		cmd.Flags().StringSliceVar(&unset, "unset", nil, "`NAMES` to take back to the default: "+strings.Join(names, ", "))
		term.Complete(cmd, "unset", term.CompleteFixed(names...))
	}
	return cmd
}

// fixedCommand answers who wants to change what never changes. It is in no list of commands.
func fixedCommand(form schema.Form) *cobra.Command {
	return &cobra.Command{
		Use: verbSet + " NAME", Short: "Say why nothing can be changed", Hidden: true, DisableFlagParsing: true,
		Args: cobra.ArbitraryArgs, Example: fmt.Sprintf("  berth %s set %s", form.Kind, samples[form.Kind]),
		RunE: func(*cobra.Command, []string) error {
			why := "what links to it relies on it"
			if form.Kind == model.KindOffer {
				why = "VMs that its planner has placed are not placed anew"
			}
			return term.Failf(rpc.Conflict, fmt.Sprintf("declare another one with 'berth %s %s', and link to that", form.Kind, verbAdd),
				"the %s of %s stay as they were made: %s", strings.Join(contents(form, false), " and "), term.Article(title(form)), why)
		},
	}
}

func setLong(form schema.Form) string {
	text := fmt.Sprintf(`Change %s: its %s. What is not named stays as it is; --unset takes something back to its
default. Nothing that runs is touched: it counts for the next decision.`, term.Article(title(form)), strings.Join(
		contents(form, false), " and ",
	))
	if len(form.Lists) == 0 {
		return text
	}
	return text + fmt.Sprintf(`

--%s replace all that there were; the flags that begin with --add and
--remove change only those that they name.`, strings.Join(listFlagsOf(form), ", --"))
}

func set(a *term.App, cmd *cobra.Command, line *declaration, request *berthv1.ChangeResourceRequest) error {
	form := line.form
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := line.takeSteps(cmd, s, request); err != nil {
		return err
	}
	answer, err := term.Ask(cmd.Context(), s, term.Client.ChangeResource, request)
	if err != nil {
		return err
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{term.ResourceRef(answer.GetResource())},
		Text: func(p *term.Page, _ bool) {
			p.Line(
				"%s%s", term.ResourceRef(answer.GetResource()), because(cmp.Or(declared(form, answer.GetResource()), "nothing set, all as by default")),
			)
		},
	})
}

func deleteCommand(a *term.App, form schema.Form) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: fmt.Sprintf("Forget %s that nothing links to", term.Article(title(form))), Args: term.Arguments(1, "NAME"),
		Long: fmt.Sprintf(`Forget %s, with its keys. One that others link to stays; the error names them.`, term.Article(title(form))),
		Example: fmt.Sprintf(`  berth %[1]s delete %[2]s
  berth %[1]s delete %[2]s --yes`, form.Kind, samples[form.Kind]),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref := string(form.Kind) + "/" + args[0]
			if err := term.Confirm(cmd, yes, fmt.Sprintf("Forget %s and its keys?", ref)); err != nil {
				return err
			}
			answer, err := term.AskOnce(a, cmd, term.Client.DeleteResource,
				&berthv1.DeleteResourceRequest{Kind: string(form.Kind), Name: args[0], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{ref}, Text: func(p *term.Page, _ bool) { p.Line("%s deleted", ref) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ResourceNames(form.Kind)),
	}
	term.ConfirmFlag(cmd, &yes)
	return cmd
}
