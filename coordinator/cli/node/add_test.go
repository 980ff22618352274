package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// ssh runs what it is told on this machine, with the programs of the host's folder before those of the system. What the host is, is in a
// file, because a test cannot have a libvirt of its own.
const ssh = `#!/bin/sh
echo "$*" >> "$HOSTS/calls"
while [ $# -gt 2 ]; do
	case $1 in -l|-o) shift 2 ;; *) break ;; esac
done
folder=$HOSTS/$1
if [ ! -d "$folder" ]; then
	echo "ssh: Could not resolve hostname $1" >&2
	exit 255
fi
case $2 in *PRETTY_NAME*) cat "$folder/facts"; exit ;; esac
cd "$folder" && PATH=$folder/bin:$PATH exec sh -c "$2"
`

// hosts is a folder of hosts that the ssh on the path leads to.
type hosts struct {
	t      *testing.T
	folder string
}

func newHosts(t *testing.T) *hosts {
	t.Helper()
	h := &hosts{t, t.TempDir()}
	h.program("bin/ssh", ssh)
	t.Setenv("PATH", filepath.Join(h.folder, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("HOSTS", h.folder)
	return h
}

func (h *hosts) program(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

// add makes a Debian host whose programs write down how they were called and what they were given.
func (h *hosts) add(host, node string, facts ...string) {
	h.t.Helper()
	all := []string{
		"os=Debian GNU/Linux 12 (bookworm)", "arch=x86_64", "name=" + node + ".example", "uid=0",
		"now=" + fmt.Sprint(clitest.Ago(0).AsTime().Unix()),
		"libvirt=/run/libvirt/libvirt-sock", "has=dpkg", "has=apt-get", "has=systemd",
	}
	h.program(host+"/facts", strings.Join(append(all, facts...), "\n")+"\n")
	h.program(host+"/bin/apt-get", "#!/bin/sh\necho \"apt-get $*\" >> log\nfor last; do :; done\ncat \"$last\" >> log\n")
	h.program(host+"/bin/systemctl", "#!/bin/sh\necho \"systemctl $*\" >> log\n")
	h.program(host+"/bin/berth-agent", `#!/bin/sh
case $* in
*--help) echo "      --yes   do not ask" ;;
join*) echo "berth-agent $*" >> log; cat >> log ;;
*) echo "berth-agent $*" >> log ;;
esac
`)
}

func (h *hosts) read(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.folder, name))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return string(data)
}

func (h *hosts) agentPackage() string {
	h.t.Helper()
	h.program("berth-agent_1_amd64.deb", "all of the agent\n")
	return filepath.Join(h.folder, "berth-agent_1_amd64.deb")
}

// of are the lines about one host, in their order.
func of(out, host string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if text, found := strings.CutPrefix(line, host+": "); found {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "")
}

// told is a coordinator whose nodes have told what they have.
func told() *clitest.Fake {
	f := clitest.Steady()
	get := f.OnGetNode
	f.OnGetNode = func(r *berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
		answer, err := get(r)
		if err == nil && answer.GetNode().GetInventory() == nil {
			answer.Node.Inventory = &berthv1.NodeInventory{}
		}
		return answer, err
	}
	return f
}

func TestAddMakesHostsNodes(t *testing.T) {
	h := newHosts(t)
	h.add("hv1", "node1")
	h.add("hv2", "node2")
	w, _ := clitest.NewSite(t, told())
	said := w.Run("node", "add", "hv1", "hv2", "--package", h.agentPackage())
	if said.Exit != term.Done {
		t.Fatalf("exit %d\n%s\n%s", said.Exit, said.Out, said.ErrOut)
	}
	for host, node := range map[string]string{"hv1": "node1", "hv2": "node2"} {
		want := `checked: Debian GNU/Linux 12 (bookworm), x86_64, libvirt is there, clock is right
installing: berth-agent_1_amd64.deb
installed
joined: as node ` + node + `
started: berth-agent is enabled and runs
ready: the doctor is content, and node ` + node + ` is up
`
		if got := of(said.Out, host); got != want {
			t.Errorf("of %s it says\n%s\nwant\n%s", host, got, want)
		}
		log := h.read(host + "/log")
		for _, did := range []string{
			"berth-agent_1_amd64.deb\nall of the agent\n",
			"berth-agent join coord1:7420 - --name " + node + " --yes\nberth1.agent.secret.fingerprint\n",
			"systemctl enable --now berth-agent\n", "berth-agent doctor\n", "systemctl start berth-libvirt-tls.service\n",
		} {
			if !strings.Contains(log, did) {
				t.Errorf("%s did not do %q:\n%s", host, did, log)
			}
		}
	}
	if calls := h.read("calls"); strings.Contains(calls, "secret") || !strings.Contains(calls, "BatchMode=yes") {
		t.Errorf("the token stands on a command line, or ssh may ask:\n%s", calls)
	}
	if !strings.Contains(said.Out, "\nnext:\n  berth node list\n") {
		t.Errorf("it does not say what is next:\n%s", said.Out)
	}
}

// Who starts a VM right after 'node add' may count on every node that it called ready.
func TestAddWaitsUntilADecisionCanTakeTheNode(t *testing.T) {
	h := newHosts(t)
	h.add("hv1", "node1")
	f := told()
	get, asked := f.OnGetNode, 0
	f.OnGetNode = func(r *berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
		answer, err := get(r)
		if asked++; err == nil && asked == 1 {
			answer.Node.Inventory = nil
		}
		return answer, err
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("node", "add", "hv1", "--package", h.agentPackage())
	if said.Exit != term.Done || asked < 2 {
		t.Errorf("exit %d after %d looks at the node\n%s%s", said.Exit, asked, said.Out, said.ErrOut)
	}
}

func TestAddTellsWhatFailedAndGoesOnElsewhere(t *testing.T) {
	h := newHosts(t)
	h.add("hv1", "node1")
	h.add("hv2", "node2")
	h.program("hv2/bin/apt-get", "#!/bin/sh\necho Reading lists\necho 'E: \033[31mno room on the disk' >&2\nexit 100\n")
	w, _ := clitest.NewSite(t, told())
	said := w.Run("node", "add", "hv1", "hv2", "nowhere", "--package", h.agentPackage())
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "2 of 3 hosts were not added: hv2, nowhere") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if !strings.Contains(of(said.Out, "hv1"), "ready: ") {
		t.Errorf("hv1 was left:\n%s", said.Out)
	}
	for host, lines := range map[string][]string{
		"hv2": {"install failed: exit status 100\n", "  | Reading lists\n", "no room on the disk\n", "next: mend that there"},
		"nowhere": {
			"check failed: exit status 255\n", "  | ssh: Could not resolve hostname nowhere\n", "next: log in once with 'ssh nowhere true'",
		},
	} {
		for _, line := range lines {
			if got := of(said.Out, host); !strings.Contains(got, line) || strings.Contains(got, "\033") {
				t.Errorf("of %s it does not say %q:\n%s", host, line, got)
			}
		}
	}
	if strings.Contains(h.read("hv2/log"), "join") {
		t.Error("hv2 joined without a package")
	}
}

func TestAddAgainLeavesWhatIsDone(t *testing.T) {
	h := newHosts(t)
	h.add("hv1", "node1", "agent=berth-agent 0.1.0", `identity={"node_id":"node1","name":"node1","cluster_id":"3nqk7d2m0c1aa"}`)
	w, _ := clitest.NewSite(t, told())
	said := w.Run("node", "add", "hv1", "--package", h.agentPackage())
	if got := of(said.Out, "hv1"); said.Exit != term.Done || !strings.Contains(got, "installed: berth-agent 0.1.0 is there already\n") ||
		!strings.Contains(got, "joined: it is node node1 already\n") || !strings.Contains(got, "ready: ") {
		t.Errorf("exit %d\n%s%s", said.Exit, said.Out, said.ErrOut)
	}
	if log := h.read("hv1/log"); strings.Contains(log, "apt-get") || strings.Contains(log, "join") {
		t.Errorf("it was done again:\n%s", log)
	}
}

func TestAddRefusesHostsThatCannotBeNodes(t *testing.T) {
	h := newHosts(t)
	late := fmt.Sprint(clitest.Ago(2 * time.Minute).AsTime().Unix())
	w, _ := clitest.NewSite(t, told())
	for name, c := range map[string]struct{ fact, says, next string }{
		"bare":    {"libvirt=", "there is no libvirt", "apt-get install libvirt-daemon-system"},
		"late":    {"now=" + late, "its clock is off by 2m0s", "chrony"},
		"foreign": {`identity={"node_id":"x","name":"n","cluster_id":"other"}`, "it is node n of another cluster, other", "berth node delete n"},
		"gone":    {`identity={"node_id":"x","name":"n","cluster_id":"3nqk7d2m0c1aa"}`, "which the cluster does not have", "join --force"},
		"arm":     {"arch=aarch64", "is for it (Debian GNU/Linux 12 (bookworm), aarch64)", "--package"},
	} {
		facts := []string{c.fact}
		if name == "foreign" || name == "gone" {
			facts = append(facts, "agent=berth-agent 0.1.0")
		}
		h.add(name, "node1", facts...)
		said := w.Run("node", "add", name, "--package", h.agentPackage())
		got := of(said.Out, name)
		if said.Exit != term.Failed || !strings.Contains(got, c.says) || !strings.Contains(got, "next: ") || !strings.Contains(got, c.next) {
			t.Errorf("%s: exit %d\n%s%s", name, said.Exit, said.Out, said.ErrOut)
		}
		if strings.Contains(h.read(name+"/log"), "join") {
			t.Errorf("%s joined", name)
		}
	}
}

func TestAddAsAnAccountUsesSudo(t *testing.T) {
	h := newHosts(t)
	h.add("hv1", "node1", "uid=1000", "agent=berth-agent 0.1.0")
	h.program("hv1/bin/sudo", "#!/bin/sh\necho \"sudo $1\" >> log\nshift\nexec \"$@\"\n")
	w, _ := clitest.NewSite(t, told())
	said := w.Run("node", "add", "hv1", "--user", "admin", "-o", "json")
	if said.Exit != term.Done || !strings.Contains(said.Out, `"node": "node1"`) {
		t.Fatalf("exit %d\n%s%s", said.Exit, said.Out, said.ErrOut)
	}
	if calls := h.read("calls"); !strings.Contains(calls, "-l admin ") || !strings.Contains(h.read("hv1/log"), "sudo -n\n") {
		t.Errorf("it called\n%s\n%s", calls, h.read("hv1/log"))
	}
}

func TestAddWithoutSSH(t *testing.T) {
	h := newHosts(t)
	w, _ := clitest.NewSite(t, told())
	said := w.Run("node", "add", "hv1", "root@hv2.example", "--no-ssh")
	const line = "echo berth1.agent.secret.fingerprint | berth-agent join coord1:7420 - --name hv"
	if said.Exit != term.Done || strings.Count(said.Out, line) != 2 ||
		!strings.Contains(said.Out, "--name hv2 ") || strings.Count(said.Out, "install the package berth-agent there before:\n") != 2 ||
		strings.Count(said.Out, "'systemctl start berth-libvirt-tls.service' on each") != 1 {
		t.Errorf("exit %d\n%s%s", said.Exit, said.Out, said.ErrOut)
	}
	said = w.Run("node", "add", "hv1", "--dry-run")
	if said.Exit != term.Done || !strings.Contains(said.Out, "join: ssh -o BatchMode=yes -o ConnectTimeout=15 hv1 ") ||
		strings.Contains(said.Out, "secret") {
		t.Errorf("exit %d\n%s%s", said.Exit, said.Out, said.ErrOut)
	}
	if calls := h.read("calls"); calls != "" {
		t.Errorf("ssh was called:\n%s", calls)
	}
}

func TestAddMisused(t *testing.T) {
	w, _ := clitest.NewSite(t, told())
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "HOST"},
		{[]string{"--", "-oProxyCommand=x"}, "is no host"},
		{[]string{"hv1;reboot"}, "is no host"},
		{[]string{"hv1", "hv1"}, "hv1 is there twice"},
		{[]string{"hv1", "--dry-run", "--no-ssh"}, "use one of them"},
	} {
		said := w.Run(append([]string{"node", "add"}, c.args...)...)
		if said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, c.says) {
			t.Errorf("%v: exit %d, %s", c.args, said.Exit, said.ErrOut)
		}
	}
	said := w.Run("node", "add", "hv1", "--package", "/nowhere.deb")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "/nowhere.deb") {
		t.Errorf("a package that is not there: %s", said.ErrOut)
	}
}
