package access

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// cluster is what the cluster's own authority is called.
const cluster = "cluster"

// mostWaits bounds who is named of those that are waited for.
const mostWaits = 20

// AuthorityCommand is the noun ca.
func AuthorityCommand(a *term.App) *cobra.Command {
	return term.Noun("ca COMMAND", "See and replace the authorities that sign certificates", `
The cluster's authority signs the certificates of coordinators, nodes and operators. It is replaced step by step, and no
call is refused on the way: all come to trust the new one, then it signs and everybody's certificate is renewed, then
the old one is trusted no more. libvirt and QEMU of the nodes have authorities of their own, which sign for live
migration. They are replaced in the same way, and guests can move all the time.`,
		authorityListCommand(a), authorityRotateCommand(a), authorityImportCommand(a))
}

func authorityListCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the authorities, and how far the replacement of one is", Args: term.Arguments(0),
		Long: `List the authorities, and how far the replacement of one is. "announced" is to be trusted by all and signs nothing yet,
"issuing" signs, "outgoing" is trusted and signs no more, "retired" is not trusted.`,
		Example: `  berth ca list`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.ListAuthorities, &berthv1.ListAuthoritiesRequest{})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: term.Prefixed("ca/", answer.GetAuthorities(), authorityRef),
				Text: func(p *term.Page, wide bool) {
					authorityTable(p, a, answer.GetAuthorities(), wide)
					progressText(p, a, answer.GetProgress())
					for _, is := range answer.GetHypervisors() {
						progressText(p, a, is)
					}
				},
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func authorityRef(i *berthv1.Authority) string { return i.GetName() + "/" + shortID(i.GetId()) }

func shortID(id string) string { return id[:min(len(id), 12)] }

func authorityTable(p *term.Page, a *term.App, all []*berthv1.Authority, wide bool) {
	headings := []string{"AUTHORITY", "ID", "STATE", "SINCE", "EXPIRES", "DEPENDANTS"}
	if wide {
		headings = append(headings, "ORIGIN", "BY")
	}
	rows := make([][]string, 0, len(all))
	for _, i := range all {
		depend, origin := fmt.Sprint(i.GetDependants()), "made here"
		if i.GetName() != cluster {
			depend = term.None
		}
		if i.GetImported() {
			origin = "imported"
		}
		row := []string{i.GetName(), shortID(i.GetId()), i.GetState(), day(a, i.GetSince()), day(a, i.GetExpires()), depend}
		if wide {
			row = append(row, origin, cmp.Or(i.GetBy(), term.None))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
}

func progressText(p *term.Page, a *term.App, is *berthv1.AuthorityProgress) {
	if is == nil {
		return
	}
	fields := [][2]string{
		{"new authority", cmp.Or(shortID(is.GetId()), "one that is made then")},
		{"state", is.GetState()},
		{"waits", cmp.Or(is.GetWaiting(), "for nobody: the next step is taken now")},
	}
	if waits := is.GetWaits(); len(waits) > 0 && len(is.GetAwaited()) == 0 {
		fields = append(fields, [2]string{"for", fmt.Sprintf("%d: %s", len(waits), units.Some(waits, mostWaits, ", "))})
	}
	if passed := is.GetPassed(); len(passed) > 0 {
		fields = append(fields, [2]string{"left behind", units.Some(passed, mostWaits, ", ")})
	}
	if is.GetNextStep() != "" {
		fields = append(fields, [2]string{"next", is.GetNextStep()})
	}
	if name := is.GetName(); name != "" && name != cluster {
		fields = append([][2]string{{"authority", name}}, fields...)
	}
	p.Blank()
	p.Fields("", fields...)
	awaitedTable(p, a, is.GetAwaited())
}

// awaitedTable names who is waited for, and what to do about each.
func awaitedTable(p *term.Page, a *term.App, all []*berthv1.AuthorityWait) {
	if len(all) == 0 {
		return
	}
	rows := make([][]string, 0, len(all))
	for _, one := range all[:min(len(all), mostWaits)] {
		until := "it comes"
		if one.GetUntil() != nil {
			until = a.At(one.GetUntil())
		}
		rows = append(rows, []string{one.GetSubject(), a.At(one.GetSince()), until, one.GetNextStep()})
	}
	p.Blank()
	p.Table([]string{"WAITS-FOR", "SINCE", "UNTIL", "NEXT"}, rows)
	if more := len(all) - mostWaits; more > 0 {
		p.Line("and %d more", more)
	}
}

func authorityRotateCommand(a *term.App) *cobra.Command {
	request := &berthv1.RotateAuthorityRequest{}
	cmd := &cobra.Command{
		Use: "rotate [AUTHORITY]", Short: "Replace an authority by a new one", Args: term.Arguments(0, "AUTHORITY"),
		Long: `Replace an authority by a new one: cluster (if left out), libvirt or qemu. The command begins that and returns;
'berth ca list' tells how far it is.

The cluster's waits for all whose certificates are good, also for nodes that are off and operators who have not called.
An operator's command line learns of the new authority with its next call. --force goes on without those who are waited
for now. Who is left behind needs a token once the old authority is retired: a node joins again, an operator logs in
again, a coordinator is deleted and joins again.

Those of libvirt and QEMU wait for all nodes and coordinators. Each node asks every two minutes what it has to do. With
--force, guests do not move to and from a node that was left behind until it is up and has asked.`,
		Example: `  berth ca rotate --dry-run
  berth ca rotate
  berth ca rotate libvirt
  berth ca rotate --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				request.Name = args[0]
			}
			if request.GetForce() && request.GetCancel() {
				return term.Failf(rpc.Invalid, "give one of them", "--force and --cancel exclude each other")
			}
			return rotate(a, cmd, request)
		},
		ValidArgsFunction: term.CompleteFirst(cobra.FixedCompletions([]string{cluster, "libvirt", "qemu"}, cobra.ShellCompDirectiveNoFileComp)),
	}
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "only say who would be waited for")
	cmd.Flags().BoolVar(&request.Force, "force", false, "go on without those who are waited for now")
	cmd.Flags().BoolVar(&request.Cancel, "cancel", false, "take back a new authority that signs nothing yet")
	return cmd
}

func authorityImportCommand(a *term.App) *cobra.Command {
	request := &berthv1.RotateAuthorityRequest{}
	var certificate, key string
	cmd := &cobra.Command{
		Use: "import --cert FILE --key FILE", Short: "Replace the cluster's authority by one of your own", Args: term.Arguments(0),
		Long: `Replace the cluster's authority by one of your own: an intermediate that your root has issued for this cluster. It is
checked first, then it follows the present one as with 'berth ca rotate'. FILE of --cert has its certificate, and may
have those above it after it. The key is ECDSA, PKCS #8, not encrypted; every coordinator gets it.`,
		Example: `  berth ca import --cert intermediate.pem --key intermediate.key`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if certificate == "" || key == "" {
				return term.Failf(rpc.Invalid, "see 'berth ca import --help'", "--cert and --key are both needed")
			}
			if request.CertificatePem, err = os.ReadFile(certificate); err != nil {
				return term.Failf(rpc.Invalid, "name a file that can be read", "--cert: %w", err)
			}
			if request.KeyPem, err = os.ReadFile(key); err != nil {
				return term.Failf(rpc.Invalid, "name a file that can be read", "--key: %w", err)
			}
			return rotate(a, cmd, request)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&certificate, "cert", "", "file with the certificate, PEM, and those above it")
	cmd.Flags().StringVar(&key, "key", "", "file with its key, PEM")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "only check it, and say who would be waited for")
	return cmd
}

func rotate(a *term.App, cmd *cobra.Command, request *berthv1.RotateAuthorityRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.RotateAuthority, request)
	if err != nil {
		return err
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"ca/" + cmp.Or(request.GetName(), cluster)},
		Text: func(p *term.Page, _ bool) {
			did := "a new authority is announced; 'berth ca list' tells how far it is"
			switch {
			case request.GetDryRun():
				did = "nothing is changed"
			case request.GetCancel():
				did = "the new authority is taken back"
			case request.GetForce():
				did = "it goes on without those who were waited for"
			}
			p.Line("%s", did)
			progressText(p, a, answer.GetProgress())
		},
	})
}
