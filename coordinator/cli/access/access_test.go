package access_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func TestLoginWritesAContextThatWorks(t *testing.T) {
	f := clitest.Steady()
	w, servers := clitest.NewSite(t, f)
	if err := os.RemoveAll(filepath.Dir(w.Config)); err != nil {
		t.Fatal(err)
	}
	f.OnEnrol = func(r *berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
		id := pki.Identity{Role: pki.RoleOperator, ID: "o1", Name: r.GetName(), ClusterID: "c1"}
		cert, err := w.Authority.Sign(r.GetCsrPem(), id, nil, time.Now(), 5*pki.DefaultValidity)
		if err != nil {
			return nil, err
		}
		return &berthv1.EnrolResponse{
			Id: "o1", ClusterId: "c1", CertificatePem: cert, CaPem: w.Authority.CertificatePEM(), ApiAddresses: []string{servers[0].Address},
		}, nil
	}
	token := w.Token(pki.PurposeOperator)
	w.In = strings.NewReader(token + "\n")
	// The name of the host is not in the certificate: enrolment pins the authority instead.
	host := strings.Replace(servers[0].Address, "127.0.0.1", "localhost", 1)
	said := w.Run("login", host, "-", "--name", "alice", "--context", "prod")
	if said.Exit != term.Done || said.Out != "logged in as operator/alice; context \"prod\" in CONFIG/client.yaml is the current one\n" {
		t.Fatalf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	sent := clitest.Asked[berthv1.EnrolRequest](f)
	if parsed, err := pki.ParseToken(token); err != nil || len(sent) != 1 || sent[0].GetTokenSecret() != parsed.Secret ||
		sent[0].GetName() != "alice" {
		t.Errorf("the coordinator got %v", sent)
	}
	if said := w.Run("vm", "list"); said.Exit != term.Done {
		t.Errorf("the new context does not work: %s", said.ErrOut)
	}
	if said := w.Run("context", "list", "--no-headers"); !strings.HasPrefix(said.Out, "*  prod  "+servers[0].Address+"  operator/alice  20") {
		t.Errorf("context list: %q", said.Out)
	}
	if said := w.Run("context", "show", "-o", "json"); !strings.Contains(
		said.Out, `"identity": "operator/alice"`,
	) || !strings.Contains(said.Out, `"cluster_id": "c1"`) {
		t.Errorf("context show: %q %q", said.Out, said.ErrOut)
	}
}

func TestLoginRefusals(t *testing.T) {
	f := clitest.Steady()
	f.OnEnrol = func(*berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
		return nil, rpc.Errorf(
			connect.CodePermissionDenied, &berthv1.ErrorDetail{Code: rpc.Denied, NextStep: "make another one"}, "the token was used before",
		)
	}
	w, servers := clitest.NewSite(t, f)
	other, _ := clitest.NewSite(t)
	before, err := os.ReadFile(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	address, token := servers[0].Address, w.Token(pki.PurposeOperator)
	for _, c := range []struct {
		name, address, token string
		exit                 term.Exit
		say                  string
	}{
		{"cut token", address, token[:len(token)-3], term.Failed, "the token is cut or mistyped; run 'berth token add' again"},
		{"another purpose", address, w.Token(pki.PurposeAgent), term.Failed, "this token is for an agent, not for an operator"},
		{"another cluster", address, other.Token(pki.PurposeOperator), term.Failed, "it belongs to another cluster than the token"},
		{"nobody there", clitest.ClosedAddress(t), token, term.Unreachable, "connection refused"},
		{"used before", address, token, term.Failed, "the token was used before\nnext step: make another one"},
	} {
		said := w.Run("login", c.address, c.token, "--name", "alice")
		if said.Exit != c.exit || !strings.Contains(said.ErrOut, c.say) || said.Out != "" {
			t.Errorf("%s: exit %d, %q, %q", c.name, said.Exit, said.Out, said.ErrOut)
		}
	}
	if after, err := os.ReadFile(w.Config); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused login changed the configuration: %s (%v)", after, err)
	}
}

func TestContexts(t *testing.T) {
	w, _ := clitest.NewSite(t)
	w.Context("prod", pki.RoleOperator, "a:7420", "b:7420")
	w.Context("test", pki.RoleOperator, "c:7420")
	if err := os.Remove(filepath.Join(filepath.Dir(w.Config), "client", "prod", "certificate.pem")); err != nil {
		t.Fatal(err)
	}
	said := w.Run("context", "list")
	want := []string{"NAME", "prod", "*"}
	for i, line := range strings.Split(strings.TrimSpace(said.Out), "\n") {
		if fields := strings.Fields(line); fields[0] != want[i] {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if !strings.Contains(said.Out, "no such file or directory") {
		t.Errorf("the missing certificate is not reported:\n%s", said.Out)
	}
	if said := w.Run("context", "use", "prod"); said.Exit != term.Done {
		t.Errorf("use: %s", said.ErrOut)
	}
	if said := w.Run("context", "show", "-o", "name"); said.Out != "prod\n" {
		t.Errorf("the current context is %q, want prod", said.Out)
	}
	for _, args := range [][]string{{"context", "use", "none"}, {"context", "show", "none"}} {
		if said := w.Run(args...); said.Exit != term.NotFound || !strings.Contains(said.ErrOut, `"none", CONFIG/client.yaml has prod, test`) {
			t.Errorf("%v: exit %d, %s", args, said.Exit, said.ErrOut)
		}
	}
}
