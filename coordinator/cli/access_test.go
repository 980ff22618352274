package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// token makes a token of this cluster.
func (w *world) token(purpose string) string {
	w.t.Helper()
	pin, err := pki.Fingerprint(w.authority.CertificatePEM())
	if err != nil {
		w.t.Fatal(err)
	}
	text, _, err := pki.NewToken(purpose, pin)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func TestLoginWritesAContextThatWorks(t *testing.T) {
	f := steady()
	w, servers := newWorld(t, f)
	if err := os.RemoveAll(filepath.Dir(w.config)); err != nil {
		t.Fatal(err)
	}
	f.enrol = func(r *berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
		id := pki.Identity{Role: pki.RoleOperator, ID: "o1", Name: r.GetName(), ClusterID: "c1"}
		cert, err := w.authority.Sign(r.GetCsrPem(), id, nil, time.Now(), 5*pki.DefaultValidity)
		if err != nil {
			return nil, err
		}
		return &berthv1.EnrolResponse{
			Id: "o1", ClusterId: "c1", CertificatePem: cert, CaPem: w.authority.CertificatePEM(), ApiAddresses: []string{servers[0].address},
		}, nil
	}
	token := w.token(pki.PurposeOperator)
	w.in = strings.NewReader(token + "\n")
	// The name of the host is not in the certificate: enrolment pins the authority instead.
	host := strings.Replace(servers[0].address, "127.0.0.1", "localhost", 1)
	said := w.run("login", host, "-", "--name", "alice", "--context", "prod")
	if said.exit != Done || said.out != "logged in as operator/alice; context \"prod\" in CONFIG/client.yaml is the current one\n" {
		t.Fatalf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
	sent := asked[berthv1.EnrolRequest](f)
	if parsed, err := pki.ParseToken(token); err != nil || len(sent) != 1 || sent[0].GetTokenSecret() != parsed.Secret || sent[0].GetName() != "alice" {
		t.Errorf("the coordinator got %v", sent)
	}
	if said := w.run("vm", "list"); said.exit != Done {
		t.Errorf("the new context does not work: %s", said.errOut)
	}
	if said := w.run("context", "list", "--no-headers"); !strings.HasPrefix(said.out, "*  prod  "+servers[0].address+"  operator/alice  20") {
		t.Errorf("context list: %q", said.out)
	}
	if said := w.run("context", "show", "-o", "json"); !strings.Contains(said.out, `"identity": "operator/alice"`) || !strings.Contains(said.out, `"clusterId": "c1"`) {
		t.Errorf("context show: %q %q", said.out, said.errOut)
	}
}

func TestLoginRefusals(t *testing.T) {
	f := steady()
	f.enrol = func(*berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
		return nil, rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{Code: rpc.Denied, NextStep: "make another one"}, "the token was used before")
	}
	w, servers := newWorld(t, f)
	other, _ := newWorld(t)
	before, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	address, token := servers[0].address, w.token(pki.PurposeOperator)
	for _, c := range []struct {
		name, address, token string
		exit                 Exit
		say                  string
	}{
		{"cut token", address, token[:len(token)-3], Failed, "the token is cut or mistyped; run 'berth token create' again"},
		{"another purpose", address, w.token(pki.PurposeAgent), Failed, "this token is for an agent, not for an operator"},
		{"another cluster", address, other.token(pki.PurposeOperator), Failed, "it belongs to another cluster than the token"},
		{"nobody there", closedAddress(t), token, Unreachable, "connection refused"},
		{"used before", address, token, Failed, "the token was used before\nnext step: make another one"},
	} {
		said := w.run("login", c.address, c.token, "--name", "alice")
		if said.exit != c.exit || !strings.Contains(said.errOut, c.say) || said.out != "" {
			t.Errorf("%s: exit %d, %q, %q", c.name, said.exit, said.out, said.errOut)
		}
	}
	if after, err := os.ReadFile(w.config); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused login changed the configuration: %s (%v)", after, err)
	}
}

func TestContexts(t *testing.T) {
	w, _ := newWorld(t)
	w.context("prod", pki.RoleOperator, "a:7420", "b:7420")
	w.context("test", pki.RoleOperator, "c:7420")
	if err := os.Remove(filepath.Join(filepath.Dir(w.config), "client", "prod", "certificate.pem")); err != nil {
		t.Fatal(err)
	}
	said := w.run("context", "list")
	want := []string{"NAME", "prod", "*"}
	for i, line := range strings.Split(strings.TrimSpace(said.out), "\n") {
		if fields := strings.Fields(line); fields[0] != want[i] {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if !strings.Contains(said.out, "no such file or directory") {
		t.Errorf("the missing certificate is not reported:\n%s", said.out)
	}
	if said := w.run("context", "use", "prod"); said.exit != Done {
		t.Errorf("use: %s", said.errOut)
	}
	if said := w.run("context", "show", "-o", "name"); said.out != "prod\n" {
		t.Errorf("the current context is %q, want prod", said.out)
	}
	for _, args := range [][]string{{"context", "use", "none"}, {"context", "show", "none"}} {
		if said := w.run(args...); said.exit != NotFound || !strings.Contains(said.errOut, `"none", CONFIG/client.yaml has prod, test`) {
			t.Errorf("%v: exit %d, %s", args, said.exit, said.errOut)
		}
	}
}

func TestSnapshots(t *testing.T) {
	content := bytes.Repeat([]byte("berth"), 200_000)
	f := steady()
	f.save = func(send func(*berthv1.SaveSnapshotResponse) error) error {
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 300_000)
			if err := send(&berthv1.SaveSnapshotResponse{Chunk: rest[:n]}); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	}
	var restored []byte
	f.restore = func(data []byte) (*berthv1.RestoreSnapshotResponse, error) {
		restored = data
		return &berthv1.RestoreSnapshotResponse{Index: 1043, Nodes: 3, Vms: 1}, nil
	}
	w, _ := newWorld(t, f)
	path := filepath.Join(filepath.Dir(w.config), "berth.snapshot")
	said := w.run("coordinator", "snapshot", "save", path)
	if said.exit != Done || said.errOut != "snapshot of 976.6 KiB saved to CONFIG/berth.snapshot\n" {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
	if saved, err := os.ReadFile(path); err != nil || !bytes.Equal(saved, content) {
		t.Errorf("saved %d bytes (%v), want %d", len(saved), err, len(content))
	}
	if said := w.run("coordinator", "snapshot", "save", "-"); said.out != string(content) {
		t.Errorf("the standard output got %d bytes", len(said.out))
	}
	said = w.run("coordinator", "snapshot", "restore", path, "--yes")
	if said.exit != Done || !strings.HasPrefix(said.out, "restored 3 nodes and 1 VM at index 1043\nquarantine: no VM is started") || !bytes.Equal(restored, content) {
		t.Errorf("exit %d, %q, %q, sent %d bytes", said.exit, said.out, said.errOut, len(restored))
	}
}

// A snapshot that breaks off leaves neither a file nor a piece of one, and never replaces an older one.
func TestSnapshotThatBreaksOff(t *testing.T) {
	f := steady()
	f.save = func(send func(*berthv1.SaveSnapshotResponse) error) error {
		if err := send(&berthv1.SaveSnapshotResponse{Chunk: []byte("half")}); err != nil {
			return err
		}
		return connect.NewError(connect.CodeUnavailable, errors.New("the coordinator stops"))
	}
	w, _ := newWorld(t, f, steady())
	folder := t.TempDir()
	path := filepath.Join(folder, "berth.snapshot")
	writeFile(t, path, []byte("the old one"))
	if said := w.run("coordinator", "snapshot", "save", path); said.exit != Failed || !strings.Contains(said.errOut, "broke") {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "the old one" {
		t.Errorf("the old snapshot is now %q (%v)", kept, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}

// A refused snapshot shows the coordinator's reason, not that the stream ended.
func TestSnapshotThatIsRefused(t *testing.T) {
	f := steady()
	f.restore = func([]byte) (*berthv1.RestoreSnapshotResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{Code: rpc.Invalid, NextStep: "use another file"}, "not a snapshot of berth")
	}
	w, _ := newWorld(t, f)
	w.in = strings.NewReader("nonsense")
	if said := w.run("coordinator", "snapshot", "restore", "-", "--yes"); said.exit != Failed || said.errOut != "berth: not a snapshot of berth\nnext step: use another file\n" {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
}

func TestCompletionAsksTheCluster(t *testing.T) {
	w, _ := newWorld(t, steady())
	for line, want := range map[string]string{
		"vm show ":                     "db1\nweb1\nweb2\n",
		"node show ":                   "node1\nnode2\nnode3\n",
		"vm migrate web1 --to ":        "node1\nnode2\nnode3\n",
		"vm migrate web1 ":             "",
		"node maintenance node1 ":      "on\noff\n",
		"coordinator remove ":          "coord1\ncoord2\ncoord3\n",
		"decision show ":               "last\n3nqk7d2m0d9zz\tstart big\n3nqk7d2m0d1ab\tstart web1\n",
		"context use ":                 "lab\n",
		"cluster show ":                "default\nprod\n",
		"vdc add v1 --cluster ":        "default\nprod\n",
		"cluster set prod --storage ":  "shared\nlocal\n",
		"cluster set prod --unset ":    "policy\npod\nstorage\nram-ratio\ncpu-ratio\noverhead\ninitial-msav\nfinal-msav\nmsav-steps\ncustomer-key-scope\nphysical-ledger\nenforcement\nbalancing\nbalance-window\ncooldown\nparallel-moves\nparallel-starts\nspare-nodes\nfence-after\ncpu-model\ncapacity-threshold\n",
		"vm add web9 --vdc ":           "acme-prod\nacme-test\n",
		"vm start web9 --attach ":      "web-1-root\ndb-1-root\n",
		"vm why-not web1 --node ":      "node1\nnode2\nnode3\n",
		"key compiled ":                "db1\nweb1\nweb2\n",
		"key set ":                     "cluster/default\ncluster/prod\nbilling-entity/reseller\ncustomer/acme\nvdc/acme-prod\nvdc/acme-test\ndisk/web-1-root\ndisk/db-1-root\nimage/debian\nvm/db1\nvm/web1\nvm/web2\n",
		"key list n":                   "cluster/default\ncluster/prod\nbilling-entity/reseller\ncustomer/acme\nvdc/acme-prod\nvdc/acme-test\ndisk/web-1-root\ndisk/db-1-root\nimage/debian\nvm/db1\nvm/web1\nvm/web2\nnode/node1\nnode/node2\nnode/node3\n",
		"key set vm/web1 A=1 --class ": "system\nbilling-entity\ncustomer\n",
		"decision replay ":             "last\n3nqk7d2m0d9zz\tstart big\n3nqk7d2m0d1ab\tstart web1\n",
		"vm start web1 ":               "db1\nweb2\n",
		"vm set web1 --migration ":     "automatic\nmanual\nnever\n",
		"group edit ":                  "web\nrack-7\n",
		"group create g --vms-rule ":   "positive\nnegative\ndisabled\n",
		"group edit web --add-node ":   "node1\nnode2\nnode3\n",
		"plan show ":                   "last\n3nqk7d2m0p1ab\trunning drain of node/node1\n3nqk7d2m0p2ab\tproposed balance of cluster/default\n3nqk7d2m0p1ab\tdone drain of node/node1\n",
		"policy copy ":                 "vm-evenly-distributed\nmine\ndrawn\n",
		"cluster set prod --policy ":   "vm-evenly-distributed\nmine\ndrawn\n",
		"policy edit mine --selector ": "rank\npercentage-fixed\npercentage-dynamic\nsum\n",
		"node drain ":                  "node1\nnode2\nnode3\n",
		"token create --for ":          "agent\ncoordinator\noperator\n",
		"vm list --output ":            "table\nwide\njson\nyaml\nname\n",
	} {
		said := w.run(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		got, _, _ := strings.Cut(said.out, ":")
		if got != want {
			t.Errorf("berth %s: got %q, want %q", line, got, want)
		}
	}
	nobody, _ := newWorld(t)
	nobody.context("lab", pki.RoleOperator, closedAddress(t))
	if said := nobody.run("__complete", "vm", "show", ""); !strings.HasPrefix(said.out, ":4") {
		t.Errorf("without a cluster: %q", said.out)
	}
}

// Somebody who logs in again keeps the name of the context; another cluster gets another one.
func TestTheNameOfANewContext(t *testing.T) {
	w, _ := newWorld(t)
	a := newApp(Options{})
	a.now = func() time.Time { return noon }
	if got := a.contextFor(w.config, "c1"); got != "default" {
		t.Errorf("the first context is called %q", got)
	}
	w.context("prod", pki.RoleOperator, "a:7420")
	if got := a.contextFor(w.config, "c1"); got != "prod" {
		t.Errorf("a known cluster is called %q", got)
	}
	w.context("default", pki.RoleOperator, "a:7420")
	if got := a.contextFor(w.config, "c2"); got != "c2" {
		t.Errorf("another cluster is called %q", got)
	}
}
