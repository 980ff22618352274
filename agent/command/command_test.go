package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor/fake"
	"berth/agent/jobs"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// cluster is a coordinator that enrols everyone who has the secret and welcomes every agent.
type cluster struct {
	*testing.T
	berthv1connect.UnimplementedAgentServiceHandler
	id        string
	authority *pki.Authority
	secret    string
	address   string
	asked     *berthv1.EnrolRequest
	welcomed  chan string
}

func (c *cluster) Enrol(_ context.Context, r *connect.Request[berthv1.EnrolRequest]) (*connect.Response[berthv1.EnrolResponse], error) {
	c.asked = r.Msg
	if pki.HashSecret(r.Msg.GetTokenSecret()) != c.secret {
		return nil, rpc.Errorf(
			connect.CodePermissionDenied, &berthv1.ErrorDetail{Code: rpc.Denied, NextStep: "make a new token"}, "the token is not known",
		)
	}
	identity := pki.Identity{Role: pki.RoleAgent, ID: "node-id-1", Name: r.Msg.GetName(), ClusterID: c.id}
	certificate, err := c.authority.Sign(r.Msg.GetCsrPem(), identity, nil, time.Now(), 365*24*time.Hour)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.EnrolResponse{
		Id: "node-id-1", ClusterId: c.id, CertificatePem: certificate, CaPem: c.authority.CertificatePEM(),
		AgentAddresses: []string{c.address},
	}), nil
}

func (c *cluster) Session(ctx context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse]) error {
	hello, err := stream.Receive()
	if err != nil {
		return err
	}
	if err := stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{
		ClusterId: c.id, AgentAddresses: []string{c.address, "second.example:7421"},
	}}}); err != nil {
		return err
	}
	c.welcomed <- hello.GetHello().GetNodeId()
	<-ctx.Done()
	return nil
}

// found makes a cluster whose one coordinator listens.
func found(t *testing.T, id string) *cluster {
	t.Helper()
	authority, err := pki.NewAuthority(id, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, id: id, authority: authority, welcomed: make(chan string, 8)}
	csr, key, err := pki.NewRequest("coordinator1")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Sign(csr, pki.Identity{Role: pki.RolePeer, ID: "p", Name: "coordinator1", ClusterID: id},
		[]string{"127.0.0.1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := pki.Files{CA: dir + "/ca", Certificate: dir + "/cert", Key: dir + "/key"}
	for path, data := range map[string][]byte{files.CA: authority.CertificatePEM(), files.Certificate: certificate, files.Key: key} {
		if err := config.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := pki.ServerConfig(files, tls.VerifyClientCertIfGiven)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewEnrolmentServiceHandler(c))
	mux.Handle(berthv1connect.NewAgentServiceHandler(c))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = listener.Addr().String()
	server := rpc.NewServer("", mux, settings, hclog.NewNullLogger())
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

// token makes a token that the cluster takes.
func (c *cluster) token(purpose string) string {
	c.Helper()
	pin, err := pki.Fingerprint(c.authority.CertificatePEM())
	if err != nil {
		c.Fatal(err)
	}
	text, hash, err := pki.NewToken(purpose, pin)
	if err != nil {
		c.Fatal(err)
	}
	c.secret = hash
	return text
}

// machine is a node's files.
type machine struct{ config, data string }

func newMachine(t *testing.T) machine {
	t.Helper()
	dir := t.TempDir()
	return machine{filepath.Join(dir, "etc", "agent.yaml"), filepath.Join(dir, "data")}
}

func (m machine) join(t *testing.T, want int, address, token string, more ...string) (out, errOut string) {
	t.Helper()
	args := []string{
		"join", address, token, "--config", m.config, "--data-dir", m.data, "--name", "node1", "--libvirt-uri", "test:///default",
		"--no-libvirt-tls",
	}
	return execute(t, want, append(args, more...)...)
}

func execute(t *testing.T, want int, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	if code := Run(t.Context(), args, &o, &e); code != want {
		t.Fatalf("berth-agent %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, o.String(), e.String())
	}
	return o.String(), e.String()
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

func TestJoin(t *testing.T) {
	c, m := found(t, "c1"), newMachine(t)
	out, _ := m.join(t, 0, c.address, c.token(pki.PurposeAgent))
	says(t, out, "node node1 (node-id-1) is enrolled", "berth-agent doctor --config "+m.config, "systemctl enable --now berth-agent")
	if c.asked.GetName() != "node1" || bytes.Contains(c.asked.GetCsrPem(), []byte("PRIVATE")) {
		t.Errorf("it asked for %+v", c.asked)
	}
	for _, name := range []string{"tls/ca.pem", "tls/agent.pem", "tls/agent.key", "identity.json", "coordinators.json"} {
		info, err := os.Stat(filepath.Join(m.data, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, info, err)
		}
	}
	written, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(written), "coordinators:", c.address, "data_dir: "+m.data, "libvirt_uri: test:///default")

	// Twice is a slip, unless somebody means it.
	_, errOut := m.join(t, 1, c.address, c.token(pki.PurposeAgent))
	says(t, errOut, "enrolled already, as node1 (node-id-1)", "berth node delete node1", "--force")
	m.join(t, 0, c.address, c.token(pki.PurposeAgent), "--force")
}

// Other accounts of the machine see what is on a command line.
func TestANodeJoinsByATokenThatIsOnNoCommandLine(t *testing.T) {
	c, m := found(t, "c1"), newMachine(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(c.token(pki.PurposeAgent)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := m.join(t, 0, c.address, "@"+file)
	says(t, out, "node node1 (node-id-1) is enrolled")
}

func TestJoinKeepsTheAdministratorsFile(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"only comments": {
			"# Berth agent.\n#coordinators:\n#  - c:7421\n",
			"# Berth agent.\n#coordinators:\n#  - c:7421\n\ndata_dir: DATA\nlibvirt_uri: test:///default\ncoordinators:\n  - ADDRESS\n",
		},
		"some keys": {
			"# ours\nlog_level: debug # loud\n# who\ncoordinators: [old:7421]\n\nvirt_type: qemu\n",
			"# ours\nlog_level: debug # loud\n# who\ncoordinators:\n  - ADDRESS\nvirt_type: qemu\ndata_dir: DATA\nlibvirt_uri: test:///default\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, m := found(t, "c1"), newMachine(t)
			if err := config.WriteFile(m.config, []byte(c.before), 0o644); err != nil {
				t.Fatal(err)
			}
			m.join(t, 0, cluster.address, cluster.token(pki.PurposeAgent))
			got, err := os.ReadFile(m.config)
			want := strings.NewReplacer("DATA", m.data, "ADDRESS", cluster.address).Replace(c.after)
			if err != nil || string(got) != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestJoinRefuses(t *testing.T) {
	c, other, m := found(t, "c1"), found(t, "c2"), newMachine(t)
	for name, x := range map[string]struct {
		address, token string
		want           []string
	}{
		"no token":             {c.address, "hello", []string{"token"}},
		"a coordinator's":      {c.address, c.token(pki.PurposeCoordinator), []string{"enrols a coordinator", "--for agent"}},
		"another cluster":      {c.address, other.token(pki.PurposeAgent), []string{c.address, "does not let this node in"}},
		"nobody there":         {"127.0.0.1:1", c.token(pki.PurposeAgent), []string{"127.0.0.1:1", "is open"}},
		"not an address":       {"https://x", c.token(pki.PurposeAgent), []string{"https://x", "not an address"}},
		"a secret it lost":     {c.address, c.token(pki.PurposeAgent), []string{"the token is not known", "make a new token"}},
		"unknown virtualisers": {c.address, c.token(pki.PurposeAgent), []string{"virt_type", "xen"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.secret = "another"
			if name == "unknown virtualisers" {
				if err := config.WriteFile(m.config, []byte("virt_type: xen\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(m.config)
			}
			_, errOut := m.join(t, 1, x.address, x.token)
			says(t, errOut, x.want...)
			if _, err := os.Stat(m.data); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was left behind: %v", err)
			}
		})
	}
}

// The cluster tells machines apart by libvirt's host UUID, so there is no use in asking it without one.
func TestJoinWithoutLibvirtAsksNobody(t *testing.T) {
	c, m := found(t, "c1"), newMachine(t)
	_, errOut := m.join(t, 1, c.address, c.token(pki.PurposeAgent), "--libvirt-uri", "qemu+unix:///system?socket=/nonexistent")
	says(t, errOut, "host UUID", "/nonexistent", "see to libvirt", "the token is still good")
	if _, err := os.Stat(m.data); c.asked != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it asked for %v and left %v", c.asked, err)
	}
}

func TestJoinAnotherClusterForgetsTheJournal(t *testing.T) {
	first, second, m := found(t, "c1"), found(t, "c2"), newMachine(t)
	m.join(t, 0, first.address, first.token(pki.PurposeAgent))
	path := filepath.Join(m.data, "journal.db")
	work, err := jobs.Open(jobs.Config{Journal: path, Hypervisor: fake.NewWire().Host("n1"), Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	_, errOut := m.join(t, 1, second.address, second.token(pki.PurposeAgent), "--force")
	says(t, errOut, "a berth-agent runs on this node", "systemctl stop berth-agent")
	if err := work.Close(); err != nil {
		t.Fatal(err)
	}
	m.join(t, 0, first.address, first.token(pki.PurposeAgent), "--force")
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the same cluster's journal is gone: %v", err)
	}
	m.join(t, 0, second.address, second.token(pki.PurposeAgent), "--force")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another cluster's journal is there still: %v", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"frobnicate"}, {"join"}, {"join", "host"}, {"join", "a", "b", "c"}, {"run", "now"}, {"run", "--fast"}} {
		_, errOut := execute(t, 64, args...)
		says(t, errOut, "error: ", "--help")
	}
	out, _ := execute(t, 0)
	says(t, out, "join", "run", "doctor", "version")
	out, _ = execute(t, 0, "version")
	says(t, out, "berth-agent ")
}

func TestRunRefuses(t *testing.T) {
	m := newMachine(t)
	_, errOut := execute(t, 1, "run", "--config", m.config)
	says(t, errOut, m.config, "berth-agent join")
	for text, want := range map[string]string{
		"data_dir: " + m.data + "\n":        "not enrolled",
		"colour: red\n":                     `unknown key "colour"`,
		"virt_type: xen\n":                  "virt_type",
		"coordinators: [nowhere]\n":         "nowhere",
		"minimum_libvirt: newest\n":         "minimum_libvirt",
		"migration_uri: ':'\n":              "migration_uri",
		"migrate_data_address: eth0\n":      "migrate_data_address",
		"log_level: loud\n":                 "loud",
		"coordinators: {a: 1}\n":            "agent.yaml:1",
		"virt_type: qemu\nvirt_type: kvm\n": "agent.yaml",
	} {
		if err := config.WriteFile(m.config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, errOut := execute(t, 1, "run", "--config", m.config)
		says(t, errOut, want)
	}
}

// The agent finds its leader, remembers what it is told, and ends in peace when it is asked to, with libvirt or without.
func TestRun(t *testing.T) {
	for _, uri := range []string{"test:///default", "qemu+unix:///system?socket=/nonexistent"} {
		t.Run(uri, func(t *testing.T) {
			c, m := found(t, "c1"), newMachine(t)
			m.join(t, 0, c.address, c.token(pki.PurposeAgent))
			before, err := os.ReadFile(m.config)
			if err != nil {
				t.Fatal(err)
			}
			if err := amend(m.config, []change{{"libvirt_uri", uri}}); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan int, 1)
			var log bytes.Buffer
			go func() { ended <- Run(ctx, []string{"run", "--config", m.config}, &log, &log) }()
			select {
			case id := <-c.welcomed:
				if id != "node-id-1" {
					t.Errorf("welcomed %q", id)
				}
			case code := <-ended:
				t.Fatalf("ended with %d: %s", code, log.String())
			case <-time.After(20 * time.Second):
				t.Fatal("never connected")
			}
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if text, err := os.ReadFile(
					filepath.Join(m.data, "coordinators.json"),
				); err == nil && strings.Contains(string(text), "second.example:7421") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the other coordinator was not remembered")
				}
			}
			stop()
			if code := <-ended; code != 0 {
				t.Errorf("exit code %d: %s", code, log.String())
			}
			says(t, log.String(), "the guests run on")
			after, err := os.ReadFile(m.config)
			if err != nil || strings.Replace(string(after), uri, "test:///default", 1) != string(before) {
				t.Errorf("the configuration was touched: %v\n%s", err, after)
			}
		})
	}
}

func TestDoctor(t *testing.T) {
	c, m := found(t, "c1"), newMachine(t)
	_, errOut := execute(t, 1, "doctor", "--config", m.config)
	says(t, errOut, "berth-agent join")

	m.join(t, 0, c.address, c.token(pki.PurposeAgent))
	if err := amend(
		m.config,
		[]change{{"libvirt_uri", "qemu+unix:///system?socket=/nonexistent"}, {"migration_uri", "qemu+tcp://no.such.host.invalid/system"}},
	); err != nil {
		t.Fatal(err)
	}
	out, errOut := execute(t, 1, "doctor", "--config", m.config)
	says(t, out, "CHECK", "VERDICT", "NEXT", "enrolment", "node1 (node-id-1)", "coordinator "+c.address, "the clocks agree",
		"libvirt", "FAIL", "/nonexistent", "systemctl status libvirtd", "no.such.host.invalid", "is not used", "PSI")
	says(t, errOut, "checks failed")
}
