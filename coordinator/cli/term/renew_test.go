package term_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/coordinator/cli"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// later runs a command some days after the certificate was made.
func later(t *testing.T, w *clitest.Site, days int, args ...string) (exit term.Exit, out, errOut string, took time.Duration) {
	t.Helper()
	var said, complained strings.Builder
	a := term.New("")
	a.Now = func() time.Time { return time.Now().AddDate(0, 0, days) }
	a.Patience = time.Minute
	began := time.Now()
	code := cli.RunAs(context.Background(), a, cli.Options{}, append(args, "--client-config", w.Config), w.In, &said, &complained)
	return term.Exit(code), said.String(), complained.String(), time.Since(began)
}

// An operator's certificate is renewed beside a call once its time has come; the call is what it is.
func TestACallRenewsTheCertificateOnItsWay(t *testing.T) {
	f := clitest.Steady()
	var w *clitest.Site
	asked := 0
	f.OnRenew = func(r *berthv1.RenewCertificateRequest) (*berthv1.RenewCertificateResponse, error) {
		if len(r.GetCsrPem()) == 0 { // the new one is seen in use
			return &berthv1.RenewCertificateResponse{CaPem: w.Authority.CertificatePEM()}, nil
		}
		asked++
		id := pki.Identity{Role: pki.RoleOperator, ID: "admin", Name: "admin", ClusterID: w.Authority.ClusterID()}
		certificate, err := w.Authority.Sign(r.GetCsrPem(), id, nil, time.Now().AddDate(0, 0, 20), pki.CertificateLife)
		return &berthv1.RenewCertificateResponse{CertificatePem: certificate, CaPem: w.Authority.CertificatePEM()}, err
	}
	w, servers := clitest.NewSite(t, f)
	_ = servers
	path := filepath.Join(filepath.Dir(w.Config), "client", "lab", "certificate.pem")
	read := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := read()
	if exit, _, errOut, _ := later(t, w, 10, "vm", "list"); exit != term.Done || asked != 0 || read() != before {
		t.Errorf("after 10 days: exit %d, %s, asked %d times", exit, errOut, asked)
	}
	exit, out, errOut, _ := later(t, w, 20, "vm", "list")
	if exit != term.Done || errOut != "" || !strings.Contains(out, "web1") {
		t.Errorf("after 20 days: exit %d, %q, %q", exit, out, errOut)
	}
	if asked != 1 || read() == before {
		t.Errorf("after 20 days it was asked %d times, and the file is another one: %v", asked, read() != before)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file is %v, %v", info, err)
	}
}

// Coordinators that do not renew, or fail to, spoil no call, and nothing is said of it while there is time.
func TestARenewalThatFailsSpoilsNoCall(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	if exit, out, errOut, _ := later(t, w, 20, "vm", "list"); exit != term.Done || errOut != "" || !strings.Contains(out, "web1") {
		t.Errorf("an earlier release: exit %d, %q, %q", exit, out, errOut)
	}
	f := clitest.Steady()
	release := make(chan struct{})
	f.OnRenew = func(*berthv1.RenewCertificateRequest) (*berthv1.RenewCertificateResponse, error) {
		<-release
		return &berthv1.RenewCertificateResponse{}, nil
	}
	w, _ = clitest.NewSite(t, f)
	t.Cleanup(func() { close(release) })
	exit, out, errOut, took := later(t, w, 1800, "vm", "list") // of five years
	if exit != term.Done || !strings.Contains(out, "web1") || took > 10*time.Second {
		t.Errorf("one that hangs: exit %d after %s, %q", exit, took, out)
	}
	if !strings.Contains(errOut, "could not be renewed") {
		t.Errorf("little is left, and it says %q", errOut)
	}
}
