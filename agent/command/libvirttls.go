package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth/agent/hostpki"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const libvirtTLSHelp = `A live migration goes from one libvirt to the other, and memory from one QEMU to the other, both over TLS. These
commands set that up with two authorities of the cluster, which are none of Berth's own: one for libvirt, one for QEMU. No libvirt takes what QEMU has.
Keys are made on this host and stay here. libvirt lets in the nodes of the cluster only.

'berth-agent join' does this too. The timer berth-libvirt-tls.timer renews certificates, and tells libvirt of nodes that have come or gone.`

func libvirtTLSCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "libvirt-tls", Short: "Set up what live migration needs of libvirt and QEMU", Long: libvirtTLSHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{command: cmd, message: fmt.Sprintf("unknown command %q", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	var assent, replace bool
	setup := &cobra.Command{
		Use: "setup", Short: "Make keys, get certificates, and have libvirt use them; again: make all of it anew",
		Long: `Makes keys, gets certificates for them, and has libvirt use them. It shows what it will change, and asks. Done again it makes all
anew: this is how a host is mended whose QEMU has libvirt's key. Guests run on; migrations are waited for.`,
		Example: "  berth-agent libvirt-tls setup\n  berth-agent libvirt-tls setup --yes --replace", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := newLibvirtTLS(cmd)
			if err != nil {
				return err
			}
			t.assent, t.replace = assent, replace
			return t.setUp()
		},
	}
	addAssentFlags(setup, &assent, &replace)
	renew := &cobra.Command{
		Use: "renew", Short: "Renew certificates that are about to end, and the names that libvirt lets in", Args: exactly(),
		Long: `Asks the cluster for its nodes and its authorities, and has libvirt let in these nodes only. Certificates with less than a third of
their time left are renewed, with the same keys; so are those by an authority that another one follows. It does nothing on
a host that Berth has not set up.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := newLibvirtTLS(cmd)
			if err != nil {
				return err
			}
			return t.renew()
		},
	}
	remove := &cobra.Command{
		Use: "remove", Short: "Put back what was there before setup", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := newLibvirtTLS(cmd)
			if err != nil {
				return err
			}
			t.assent = assent
			return t.remove()
		},
	}
	remove.Flags().BoolVar(&assent, "yes", false, "do not ask")
	show := &cobra.Command{
		Use: "show", Short: "Show what is set up", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := newLibvirtTLS(cmd)
			if err != nil {
				return err
			}
			return t.show()
		},
	}
	for _, sub := range []*cobra.Command{setup, renew, remove, show} {
		addConfigFlag(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func addAssentFlags(cmd *cobra.Command, assent, replace *bool) {
	cmd.Flags().BoolVar(assent, "yes", false, "change libvirt's TLS files without asking")
	cmd.Flags().BoolVar(replace, "replace", false, "replace TLS files of libvirt and QEMU that are not Berth's; copies are kept")
}

// libvirtTLS is one run of one of the commands.
type libvirtTLS struct {
	cmd             *cobra.Command
	settings        Settings
	host            *hostpki.Host
	service         *hostpki.Service
	assent, replace bool
}

func newLibvirtTLS(cmd *cobra.Command) (*libvirtTLS, error) {
	settings, err := load(cmd)
	if err != nil {
		return nil, err
	}
	return libvirtTLSOf(cmd, settings), nil
}

func libvirtTLSOf(cmd *cobra.Command, settings Settings) *libvirtTLS {
	service := hostpki.NewService(settings.LibvirtURI)
	return &libvirtTLS{
		cmd: cmd, settings: settings, service: service, host: &hostpki.Host{Daemon: service.Daemon(cmd.Context())},
	}
}

func (t *libvirtTLS) say(format string, a ...any) {
	fmt.Fprintf(t.cmd.OutOrStdout(), format+"\n", a...)
}

// needRoot says early what would fail half way.
func needRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("TLS files of libvirt are root's: run this as root")
	}
	return nil
}

func (t *libvirtTLS) setUp() error {
	if err := needRoot(); err != nil {
		return err
	}
	who, err := t.settings.enrolment()
	if err != nil {
		return err
	}
	var group string
	if t.host.Group, group, err = hostpki.QEMUGroup(""); err != nil {
		return err
	}
	plan, err := t.host.Plan()
	if err != nil {
		return err
	}
	t.say("live migration over TLS, for node %s; QEMU's keys can be read by group %s:", who.Name, group)
	t.tell(plan)
	if foreign := hostpki.Foreign(plan); len(foreign) > 0 && !t.replace {
		return fmt.Errorf("%w: %s: nothing was changed; to replace them: berth-agent libvirt-tls setup --replace",
			hostpki.ErrForeign, strings.Join(foreign, ", "))
	}
	if err := t.assented("Change this, and restart " + t.host.Daemon + "? Guests run on"); err != nil {
		return err
	}
	material, err := hostpki.Issue(who.Name, nil, t.certify)
	if err != nil {
		return err
	}
	if _, err := t.host.Install(material, t.replace); err != nil {
		return err
	}
	if _, err := t.takeUp(true); err != nil {
		return err
	}
	if todo := t.service.KeepRenewing(t.cmd.Context()); todo != "" {
		t.say("next: %s", todo)
	}
	t.say("libvirt takes migrations over TLS (port 16514) from %s; memory uses ports 49152 to 49215", strings.Join(material.Names, ", "))
	return nil
}

// afterJoin sets TLS up. The node is enrolled whatever comes of it, so what is only left undone is told and is no failure.
func (t *libvirtTLS) afterJoin() error {
	t.settings.Coordinators = t.settings.members() // join has just stored them
	t.say("")
	err := t.setUp()
	if errors.Is(err, hostpki.ErrForeign) || errors.Is(err, errUnasked) || errors.Is(err, errRefused) {
		t.say("live migration is not set up: %s", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the node is enrolled, but live migration is not set up: %w\nnext: berth-agent libvirt-tls setup", err)
	}
	return nil
}

func (t *libvirtTLS) tell(plan []hostpki.Change) {
	table := tabwriter.NewWriter(t.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, change := range plan {
		note := ""
		if change.Foreign {
			note = "not Berth's"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", change.Path, change.What, note)
	}
	_ = table.Flush() // it ends in the command's output, which nobody may be reading
}

// errUnasked says that nobody was there to ask.
var errUnasked = errors.New("nothing was changed: there is no terminal to ask on; to change it: berth-agent libvirt-tls setup --yes")

// errRefused says that the answer was no.
var errRefused = errors.New("nothing was changed")

func (t *libvirtTLS) assented(question string) error {
	if t.assent {
		return nil
	}
	in, isFile := t.cmd.InOrStdin().(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return errUnasked
	}
	return asked(t.cmd.OutOrStdout(), in, question)
}

func asked(out io.Writer, in io.Reader, question string) error {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errRefused
}

// takeUp has libvirt use what was written. Told: the administrator was told to do it.
func (t *libvirtTLS) takeUp(restart bool) (told bool, err error) {
	todo, err := t.service.TakeUp(t.cmd.Context(), t.host, restart)
	if err != nil {
		return false, fmt.Errorf("the files are in their places, but %s does not use them yet: %w", t.host.Daemon, err)
	}
	if todo != "" {
		t.say("next: %s", todo)
	}
	return todo != "", nil
}

// How long the leader is looked for: an election takes about a second.
const (
	certifyPatience = 20 * time.Second
	certifyPause    = time.Second
)

// certify asks the coordinators in turn until one leads.
func (t *libvirtTLS) certify(question hostpki.Question) (m hostpki.Material, err error) {
	request := &berthv1.CertifyHypervisorRequest{
		ControlCsrPem: question.Requests[pki.Control], DataCsrPem: question.Requests[pki.Data],
		ControlTrusts: question.Uses[pki.Control].Trusts, ControlAuthority: question.Uses[pki.Control].By,
		DataTrusts: question.Uses[pki.Data].Trusts, DataAuthority: question.Uses[pki.Data].By,
	}
	answer, err := t.ask(request)
	if err != nil {
		return m, err
	}
	m.Control = hostpki.Pair{CA: answer.GetControlCaPem(), Certificate: answer.GetControlCertificatePem()}
	m.Data = hostpki.Pair{CA: answer.GetDataCaPem(), Certificate: answer.GetDataCertificatePem()}
	m.Names = answer.GetNames()
	return m, nil
}

func (t *libvirtTLS) ask(request *berthv1.CertifyHypervisorRequest) (*berthv1.CertifyHypervisorResponse, error) {
	tlsConfig, err := pki.ClientConfig(t.settings.files(), pki.RolePeer)
	if err != nil {
		return nil, err
	}
	hostName, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	request.MigrationUri, request.DataAddress = t.settings.migrationURI(hostName), t.settings.MigrateDataAddress
	client := rpc.NewHTTPClient(tlsConfig)
	defer client.CloseIdleConnections()
	// The agents' port takes framed messages only, which gRPC's are.
	asGRPC := connect.WithGRPC()
	ctx, cancel := context.WithTimeout(t.cmd.Context(), certifyPatience)
	defer cancel()
	for {
		var failures []error
		for _, address := range t.settings.members() {
			service := berthv1connect.NewAgentServiceClient(client, "https://"+address, asGRPC)
			response, err := service.CertifyHypervisor(ctx, connect.NewRequest(request))
			if err == nil {
				return response.Msg, nil
			}
			if connect.CodeOf(err) == connect.CodeUnimplemented {
				err = errors.New("it is of a release that gives no certificates for libvirt: update it")
			}
			failures = append(failures, fmt.Errorf("coordinator %s: %w", address, err))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(failures...)
		case <-time.After(certifyPause):
		}
	}
}

func (t *libvirtTLS) renew() error {
	if err := needRoot(); err != nil {
		return err
	}
	if !t.host.IsSet() {
		t.say("%s: nothing to renew", hostpki.ErrNotSet)
		return nil
	}
	who, err := t.settings.enrolment()
	if err != nil {
		return err
	}
	if t.host.Group, _, err = hostpki.QEMUGroup(""); err != nil {
		return err
	}
	return hostpki.Renewal{Host: t.host, Name: who.Name, Ask: t.certify, TakeUp: t.takeUp, Say: t.say}.Once()
}

func (t *libvirtTLS) remove() error {
	if err := needRoot(); err != nil {
		return err
	}
	if !t.host.IsSet() {
		t.say("%s: nothing to remove", hostpki.ErrNotSet)
		return nil
	}
	if err := t.assented("Put back what was there before, and restart " + t.host.Daemon + "? Guests run on, and move no more"); err != nil {
		return err
	}
	group, _, err := hostpki.QEMUGroup("")
	if err != nil {
		return err
	}
	t.host.Group = group
	t.service.StopRenewing(t.cmd.Context())
	socket := t.host.Socket()
	kept, err := t.host.Remove()
	for _, path := range kept {
		t.say("%s was changed by somebody since: it stays", path)
	}
	if err != nil {
		return err
	}
	todo, err := t.service.Leave(t.cmd.Context(), t.host.Daemon, socket)
	if todo != "" {
		t.say("next: %s", todo)
	}
	return err
}

func (t *libvirtTLS) show() error {
	if !t.host.IsSet() {
		t.say("%s: berth-agent libvirt-tls setup", hostpki.ErrNotSet)
		return nil
	}
	here, err := t.host.Material()
	if err != nil {
		return err
	}
	for _, part := range []struct {
		what string
		pair hostpki.Pair
	}{{"libvirt", here.Control}, {"QEMU", here.Data}} {
		certificate, err := pki.CertificateIn(part.pair.Certificate)
		if err != nil {
			return fmt.Errorf("the certificate of %s: %w", part.what, err)
		}
		t.say("%s: %s until %s, signed by %s", part.what, certificate.Subject, certificate.NotAfter.Format(time.RFC3339),
			certificate.Issuer.CommonName)
	}
	t.say("libvirt lets in: %s", strings.Join(here.Names, ", "))
	return nil
}
