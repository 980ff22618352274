package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// hostsAtOnce is how many hosts are worked on at the same time.
const hostsAtOnce = 8

// hostWord is a host as ssh takes it, and never one of its options.
var hostWord = regexp.MustCompile(`^([A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._:-]*$`)

type addFlags struct {
	user          string
	packages      []string
	dryRun, noSSH bool
}

func addCommand(a *term.App) *cobra.Command {
	var flags addFlags
	cmd := &cobra.Command{
		Use: "add HOST...", Short: "Make hosts nodes of the cluster, over ssh", Args: cobra.MinimumNArgs(1),
		Long: `Make hosts nodes of the cluster, over ssh: looks whether a host can be one (libvirt, clock, rights), installs the
agent's package, lets it join with a token on standard input, starts it, and waits until 'berth-agent doctor' is
content. It calls the ssh of this machine, so your agent, your configuration, known hosts and jump hosts count. It never
asks: a host has to be known, and to let you in without a password. Where you are not root on a host, sudo has to work
without a password.

The package is that of --package, else the one that lies in ` + PackagesFolder + `, else the host's own repositories
have it. Run it again after a failure: what is done is left as it is.`,
		Example: `  berth node add hv1 hv2
  berth node add hv3 --user admin --package ./berth-agent_0.1.0_amd64.deb
  berth node add hv4 --no-ssh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			seen := map[string]bool{}
			for _, host := range args {
				switch {
				case !hostWord.MatchString(host):
					return term.Usagef(cmd, "%q is no host: give names or addresses as for ssh", host)
				case seen[host]:
					return term.Usagef(cmd, "%s is there twice", host)
				}
				seen[host] = true
			}
			if flags.dryRun && flags.noSSH {
				return term.Usagef(cmd, "--dry-run and --no-ssh: use one of them")
			}
			for _, file := range flags.packages {
				if _, err := os.Stat(file); err != nil {
					return term.Failf(rpc.Invalid, "'make packages' builds them", "--package: %w", err)
				}
			}
			return addNodes(a, cmd, args, flags)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&flags.user, "user", "", "`ACCOUNT` on the hosts (default what ssh takes)")
	cmd.Flags().StringArrayVar(&flags.packages, "package", nil, "`FILE` of the agent's package; repeat it for hosts of several kinds")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "print the commands, run none")
	cmd.Flags().BoolVar(&flags.noSSH, "no-ssh", false,
		"print a line for each host, to be pasted there once its package berth-agent is installed")
	term.Complete(cmd, "user", cobra.NoFileCompletions)
	return cmd
}

func addNodes(a *term.App, cmd *cobra.Command, hosts []string, flags addFlags) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	members, err := term.Ask(cmd.Context(), s, term.Client.ListMembers, &berthv1.ListMembersRequest{})
	if err != nil {
		return err
	}
	job := &addition{
		flags: flags, session: s, cluster: members.GetClusterId(), out: cmd.OutOrStdout(), now: a.Now, quiet: a.Quiet || a.Format.Structured(),
	}
	for _, member := range members.GetMembers() {
		if job.address == "" || member.GetSelf() {
			job.address = member.GetApiAddress()
		}
	}
	if len(flags.packages) == 0 {
		job.flags.packages = shipped(PackagesFolder)
	}
	if flags.dryRun {
		return job.tellCommands(hosts)
	}
	if _, err := exec.LookPath("ssh"); err != nil && !flags.noSSH {
		fmt.Fprintln(cmd.ErrOrStderr(), "berth: there is no ssh on this machine; install berth-agent on each host and paste its line there")
		flags.noSSH = true
	}
	if flags.noSSH {
		return job.tellLines(cmd.Context(), hosts)
	}
	return job.all(a, cmd, hosts)
}

// addition is one run of node add.
type addition struct {
	flags   addFlags
	cluster string
	address string // of a coordinator, for the hosts
	now     func() time.Time
	quiet   bool

	mu      sync.Mutex // of what follows
	session *term.Session
	out     io.Writer
}

func (j *addition) say(host, format string, a ...any) {
	if j.quiet {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%s: %s\n", host, fmt.Sprintf(format, a...))
}

// tellCommands prints what would be run, less what depends on the host.
func (j *addition) tellCommands(hosts []string) error {
	for _, host := range hosts {
		r := remote{host: host, user: j.flags.user}
		fmt.Fprintf(j.out, "# %s\n", host)
		for _, step := range []struct{ name, script string }{
			{stepCheck, checkScript},
			{stepInstall, "... # the package on standard input: " + strings.Join(j.flags.packages, " or ")},
			{stepJoin, joinLine(j.address, "NAME") + " # the token on standard input"},
			{stepStart, startLine},
			{stepDoctor, "berth-agent doctor"},
			{stepIntroduce, introduceLine + " # once all hosts have joined"},
		} {
			if step.name == stepInstall && len(j.flags.packages) == 0 {
				step.script = "... # berth-agent of the host's repositories"
			}
			words := []string{"ssh"}
			for _, word := range r.arguments(strings.TrimSpace(step.script)) {
				words = append(words, quote(word))
			}
			fmt.Fprintf(j.out, "%s: %s\n", step.name, strings.Join(words, " "))
		}
	}
	return nil
}

// tellLines prints a line for each host that makes it a node.
func (j *addition) tellLines(ctx context.Context, hosts []string) error {
	for _, host := range hosts {
		_, name, found := strings.Cut(host, "@")
		if !found {
			name = host
		}
		name, _, _ = strings.Cut(name, ".")
		token, err := j.token(ctx, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(j.out, "# on %s, as root, within an hour; install the package berth-agent there before:\n", host)
		fmt.Fprintf(j.out, "echo %s | %s && %s && berth-agent doctor\n", token, joinLine(j.address, name), startLine)
	}
	fmt.Fprintf(j.out, "# libvirt of each host hears of the others within minutes; at once with '%s' on each, once all have joined\n",
		introduceLine)
	return nil
}

// token makes one for a host of this name alone.
func (j *addition) token(ctx context.Context, name string) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	answer, err := term.Ask(ctx, j.session, term.Client.CreateToken, &berthv1.CreateTokenRequest{Purpose: pki.PurposeAgent, Name: name})
	return answer.GetToken(), err
}

// added is what became of one host.
type added struct {
	Host   string `json:"host"`
	Node   string `json:"node,omitempty"`
	Step   string `json:"step,omitempty"` // that failed
	Error  string `json:"error,omitempty"`
	Output string `json:"output,omitempty"` // the last lines of it
	Next   string `json:"next_step,omitempty"`

	sudo bool // commands need it there
}

func (j *addition) all(a *term.App, cmd *cobra.Command, hosts []string) error {
	results := make([]added, len(hosts))
	each := func(do func(i int)) {
		places := make(chan struct{}, hostsAtOnce)
		var group sync.WaitGroup
		for i := range hosts {
			group.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				do(i)
			})
		}
		group.Wait()
	}
	each(func(i int) { results[i] = j.host(cmd.Context(), hosts[i]) })
	// A host that joined first was told of no other. Without this its libvirt would let the others in only when its timer runs.
	each(func(i int) {
		if results[i].Step == "" {
			j.introduce(cmd.Context(), hosts[i], &results[i])
		}
	})
	var names, lost []string
	for i := range results {
		if results[i].Step != "" {
			lost = append(lost, results[i].Host)
			continue
		}
		names = append(names, "node/"+results[i].Node)
	}
	if a.Format.Structured() {
		if err := a.PrintLocal(cmd, results, names, nil); err != nil {
			return err
		}
	}
	switch {
	case len(lost) > 0:
		return term.Failf(rpc.Invalid, "mend what is said above, and run the same command again: what is done is left as it is",
			"%d of %d hosts were not added: %s", len(lost), len(hosts), strings.Join(lost, ", "))
	case !j.quiet:
		fmt.Fprintf(j.out, "\nnext:\n  berth node list\n  berth vm start NAME --memory 2G --vcpus 2 ...\n")
	}
	return nil
}

// trouble is why a host could not be added.
type trouble struct {
	step, next string
	err        error
}

// host takes one host through all steps.
func (j *addition) host(ctx context.Context, host string) added {
	result := added{Host: host}
	if problem := j.steps(ctx, host, &result); problem != nil {
		j.tell(problem, host, &result)
	}
	return result
}

// introduce has libvirt on a host let in the nodes that joined after it.
func (j *addition) introduce(ctx context.Context, host string, result *added) {
	r := remote{host: host, user: j.flags.user, sudo: result.sudo}
	if _, err := r.run(ctx, introduceLine, nil, stepLimit); err != nil {
		j.tell(&trouble{stepIntroduce, "run 'berth-agent libvirt-tls renew' there; its timer tries again within minutes", err}, host, result)
	}
}

// tell says why a step of a host failed, and what to do.
func (j *addition) tell(problem *trouble, host string, result *added) {
	result.Step, result.Error, result.Next = problem.step, problem.err.Error(), problem.next
	text := fmt.Sprintf("%s failed: %s", problem.step, problem.err)
	var ran *failed
	if errors.As(problem.err, &ran) {
		if ran.unreachable() {
			result.Next = fmt.Sprintf("log in once with 'ssh %s true', so that the host is known and your key is taken there", host)
		}
		result.Output = strings.Join(ran.said, "\n")
		for _, line := range ran.said {
			text += "\n" + host + ":   | " + line
		}
	}
	j.say(host, "%s\n%s: next: %s", text, host, result.Next)
}

func (j *addition) steps(ctx context.Context, host string, result *added) *trouble {
	r := remote{host: host, user: j.flags.user}
	before := j.now()
	out, err := r.run(ctx, checkScript, nil, stepLimit)
	if err != nil {
		return &trouble{stepCheck, "see to it that a shell works there", err}
	}
	found := readFacts(out)
	r.sudo = found.uid != "0"
	result.sudo = r.sudo
	if r.sudo { // what only root may read
		if out, err = r.run(ctx, checkScript, nil, stepLimit); err != nil {
			return &trouble{stepCheck, "log in as root with --user root, or let the account use sudo without a password", err}
		}
		found = readFacts(out)
	}
	if problem := found.fit(before, j.now()); problem != nil {
		return problem
	}
	result.Node = found.name
	j.say(host, "checked: %s, %s, libvirt is there, clock is right", found.os, found.arch)
	if problem := j.install(ctx, host, &r, &found); problem != nil {
		return problem
	}
	if problem := j.join(ctx, host, &r, &found); problem != nil {
		return problem
	}
	if _, err := r.run(ctx, startLine, nil, stepLimit); err != nil {
		return &trouble{stepStart, "see 'journalctl -u berth-agent' there", err}
	}
	j.say(host, "started: berth-agent is enabled and runs")
	return j.doctor(ctx, host, &r, &found)
}

// fit judges a host by its facts. The clock was read at some time between before and after.
func (f *facts) fit(before, after time.Time) *trouble {
	fail := func(next, format string, a ...any) *trouble {
		return &trouble{stepCheck, next, fmt.Errorf(format, a...)}
	}
	off := time.Duration(0)
	switch {
	case f.now.Before(before):
		off = before.Sub(f.now)
	case f.now.After(after):
		off = f.now.Sub(after)
	}
	switch {
	case f.name == "" || f.arch == "":
		return fail("look what 'ssh HOST uname -a' says", "it does not tell its name and kind: it is no Linux host with a usual shell")
	case f.libvirt == "":
		return fail("install and start libvirt with QEMU there: 'apt-get install libvirt-daemon-system qemu-system-x86' or "+
			"'dnf install libvirt qemu-kvm && systemctl enable --now libvirtd'", "there is no libvirt: no socket in /run/libvirt")
	case off > mostClockOff:
		return fail("set it, and keep it right with chrony or systemd-timesyncd", "its clock is off by %s", off.Round(time.Second))
	case !f.contains("systemd"):
		return fail("run berth-agent by hand there, see 'man berth-agent'", "systemd does not run there")
	case !f.debian() && !f.contains("rpm"):
		return fail("install berth-agent there by hand, then run this again", "it has neither apt nor rpm")
	}
	return nil
}

func (f *facts) contains(program string) bool {
	return slices.Contains(f.has, program)
}

func (j *addition) install(ctx context.Context, host string, r *remote, found *facts) *trouble {
	if found.agent != "" {
		j.say(host, "installed: %s is there already", found.agent)
		return nil
	}
	file := found.packageFor(j.flags.packages)
	if file == "" && len(j.flags.packages) > 0 {
		return &trouble{stepInstall, "give the right one with --package", fmt.Errorf("none of %s is for it (%s, %s)",
			strings.Join(j.flags.packages, ", "), found.os, found.arch)}
	}
	in, err := openPackage(file)
	if err != nil {
		return &trouble{stepInstall, "see to the file, or give another one with --package", err}
	}
	defer in.Close()
	name := ""
	if file != "" {
		name = file[strings.LastIndexByte(file, '/')+1:]
	}
	j.say(host, "installing: %s", cmp.Or(name, "berth-agent of its own repositories"))
	if _, err := r.run(ctx, found.installScript(name), in, installLimit); err != nil {
		return &trouble{stepInstall, "mend that there, or give the agent's package with --package", err}
	}
	j.say(host, "installed")
	return nil
}

// join enrols the agent, unless this cluster has it already.
func (j *addition) join(ctx context.Context, host string, r *remote, found *facts) *trouble {
	if found.identity != "" {
		var is struct {
			ID      string `json:"node_id"`
			Name    string `json:"name"`
			Cluster string `json:"cluster_id"`
		}
		if err := json.Unmarshal([]byte(found.identity), &is); err != nil {
			return &trouble{stepJoin, "look at /var/lib/berth/agent/identity.json there", fmt.Errorf("who its agent is cannot be read: %w", err)}
		}
		if is.Cluster != j.cluster {
			return &trouble{
				stepJoin, "remove it there first with 'berth node delete " + is.Name + "', and empty /var/lib/berth/agent on the host",
				fmt.Errorf("it is node %s of another cluster, %s", is.Name, is.Cluster),
			}
		}
		if _, err := j.node(ctx, is.ID); err != nil {
			return &trouble{
				stepJoin, "on the host, 'systemctl stop berth-agent', then 'berth-agent join --force HOST TOKEN' " +
					"with a token of 'berth token add --for agent'",
				fmt.Errorf("its agent was node %s, which the cluster does not have: %s", is.Name, term.Message(err)),
			}
		}
		found.name = is.Name
		j.say(host, "joined: it is node %s already", is.Name)
		return nil
	}
	token, err := j.token(ctx, found.name)
	if err != nil {
		return &trouble{stepJoin, "see 'berth status'", errors.New(term.Message(err))}
	}
	if _, err := r.run(ctx, joinLine(j.address, found.name), strings.NewReader(token+"\n"), stepLimit); err != nil {
		return &trouble{stepJoin, "see to it that the host reaches " + j.address + ", and read what it says above", err}
	}
	j.say(host, "joined: as node %s", found.name)
	return nil
}

func (j *addition) node(ctx context.Context, ref string) (*berthv1.Node, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	answer, err := term.Ask(ctx, j.session, term.Client.GetNode, &berthv1.GetNodeRequest{Node: ref})
	return answer.GetNode(), err
}

// doctor waits until the doctor finds nothing bad and the node can be given VMs.
func (j *addition) doctor(ctx context.Context, host string, r *remote, found *facts) *trouble {
	for deadline := j.now().Add(doctorLimit); ; {
		_, err := r.run(ctx, "berth-agent doctor", nil, stepLimit)
		if err == nil {
			var node *berthv1.Node
			node, err = j.node(ctx, found.name)
			if err == nil {
				err = ready(node)
			}
			if err == nil {
				j.say(host, "ready: the doctor is content, and node %s is up", found.name)
				return nil
			}
		}
		if ctx.Err() != nil || j.now().After(deadline) {
			return &trouble{stepDoctor, "do there what the last column of 'berth-agent doctor' says", err}
		}
		select {
		case <-ctx.Done():
		case <-time.After(doctorPause):
		}
	}
}

// ready is nil where a decision can take the node. An agent tells its first inventory some seconds after it is heard: libvirt first
// tries what its QEMU can do.
func ready(node *berthv1.Node) error {
	switch {
	case node.GetState() != berthv1.NodeState_NODE_STATE_UP:
		return fmt.Errorf("the coordinators do not hear node %s", node.GetName())
	case node.GetInventory() == nil:
		return fmt.Errorf("node %s has not told yet what it has", node.GetName())
	case node.TelemetryAgeSeconds == nil:
		return fmt.Errorf("node %s has not told yet how busy it is", node.GetName())
	}
	return nil
}
