package clitest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/cli"
	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/term"
	"berth/integration/loopback"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// WriteFile writes a file that only its owner reads.
func WriteFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Token makes a token of this cluster.
func (w *Site) Token(purpose string) string {
	w.t.Helper()
	pin, err := pki.Fingerprint(w.Authority.CertificatePEM())
	if err != nil {
		w.t.Fatal(err)
	}
	text, _, err := pki.NewToken(purpose, pin)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

var update = flag.Bool("update", false, "rewrite the golden files")

// noon is the time that commands believe it is, so that ages are always the same.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Server is a fake that listens.
type Server struct {
	Address string
	Stop    func() // at once, connections too
}

// Site is one cluster of fakes, and a client configuration that reaches it.
type Site struct {
	t         *testing.T
	Authority *pki.Authority
	Config    string // path
	In        io.Reader
	Env       map[string]string
	Patience  time.Duration // long, because a machine that tests is a busy one
	Busy      time.Duration // how long overload is waited out; 0: that of the product
	Limit     time.Duration // for one answer; 0: that of the product

	NextInterrupt func(context.Context) (context.Context, context.CancelFunc) // nil: that of the product
}

// NewSite starts the coordinators and makes a context for them.
func NewSite(t *testing.T, coordinators ...*Fake) (*Site, []*Server) {
	t.Helper()
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := &Site{
		t: t, Authority: authority, Config: filepath.Join(t.TempDir(), "client.yaml"), In: strings.NewReader(""),
		Env: map[string]string{}, Patience: time.Minute,
	}
	var servers []*Server
	var addresses []string
	for _, f := range coordinators {
		s := w.serve(f)
		servers, addresses = append(servers, s), append(addresses, s.Address)
	}
	if len(addresses) > 0 {
		w.Context("lab", pki.RoleOperator, addresses...)
	}
	return w, servers
}

// Identity makes a certificate.
func (w *Site) Identity(role pki.Role, name string) (certPEM, keyPEM []byte) {
	w.t.Helper()
	csr, key, err := pki.NewRequest(name)
	if err != nil {
		w.t.Fatal(err)
	}
	id := pki.Identity{Role: role, ID: name, Name: name, ClusterID: w.Authority.ClusterID()}
	cert, err := w.Authority.Sign(csr, id, []string{"127.0.0.1"}, time.Now(), 5*pki.DefaultValidity)
	if err != nil {
		w.t.Fatal(err)
	}
	return cert, key
}

// Context writes a context for these coordinators and makes it the current one.
func (w *Site) Context(name string, role pki.Role, coordinators ...string) {
	w.t.Helper()
	cert, key := w.Identity(role, "admin")
	err := clientconfig.Store(w.Config, name, coordinators, clientconfig.Credentials{
		CA: w.Authority.CertificatePEM(), Certificate: cert, Key: key,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *Site) serve(f *Fake) *Server {
	w.t.Helper()
	cert, key := w.Identity(pki.RolePeer, "coord")
	folder := w.t.TempDir()
	files := pki.Files{CA: filepath.Join(folder, "ca"), Certificate: filepath.Join(folder, "cert"), Key: filepath.Join(folder, "key")}
	for path, data := range map[string][]byte{files.CA: w.Authority.CertificatePEM(), files.Certificate: cert, files.Key: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	settings, err := pki.ServerConfig(files, tls.VerifyClientCertIfGiven)
	if err != nil {
		w.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	httpServer := rpc.NewServer("", f.handler(), settings, hclog.NewNullLogger())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := httpServer.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			w.t.Error(err)
		}
	}()
	stop := sync.OnceFunc(func() {
		_ = httpServer.Close()
		<-done
	})
	w.t.Cleanup(stop)
	return &Server{Address: listener.Addr().String(), Stop: stop}
}

// Outcome is the exit code of a command and what it wrote.
type Outcome struct {
	Exit        term.Exit
	Out, ErrOut string
}

// Run runs a command.
func (w *Site) Run(args ...string) Outcome {
	w.t.Helper()
	return w.RunContext(w.t.Context(), args...)
}

// RunContext runs a command until the context ends.
func (w *Site) RunContext(ctx context.Context, args ...string) Outcome {
	w.t.Helper()
	var out, errOut bytes.Buffer
	exit := w.RunTo(ctx, &out, &errOut, args...)
	said := Outcome{Exit: exit, Out: out.String(), ErrOut: errOut.String()}
	// Ports and folders are never the same twice.
	said.Out, said.ErrOut = w.Stable(said.Out), w.Stable(said.ErrOut)
	return said
}

// Stable replaces the folder of the configuration, which is another one in each run.
func (w *Site) Stable(text string) string {
	return strings.ReplaceAll(text, filepath.Dir(w.Config), "CONFIG")
}

// RunTo runs a command with streams of the caller.
func (w *Site) RunTo(ctx context.Context, out, errOut io.Writer, args ...string) term.Exit {
	a := term.New("1.2.3")
	a.Now = func() time.Time { return noon }
	a.Patience = w.Patience
	if w.Busy > 0 {
		a.Busy = w.Busy
	}
	if w.Limit > 0 {
		a.Limit = w.Limit
	}
	if w.NextInterrupt != nil {
		a.NextInterrupt = w.NextInterrupt
	}
	env := map[string]string{clientconfig.Variable: w.Config}
	for name, value := range w.Env {
		env[name] = value
	}
	a.Env = func(name string) string { return env[name] }
	return term.Exit(cli.RunAs(ctx, a, cli.Options{}, args, w.In, out, errOut))
}

// Golden compares text with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update if this is meant:\n%s", path, diff)
	}
}

// ErrSection is the error output as a section of a golden file.
func ErrSection(errOut string) string {
	if errOut == "" {
		return ""
	}
	return "--- standard error\n" + errOut
}

// SilentAddress accepts connections and never says a word, like a host that hangs.
func SilentAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// SlowAddress leads to another address, but for the first connections, which it takes and leaves without a word.
func SlowAddress(t *testing.T, to string, first int) string {
	t.Helper()
	listener, err := net.Listen("tcp", to[:strings.LastIndex(to, ":")]+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			if n <= first {
				continue
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = conn.Close()
				continue
			}
			go func() { _, _ = io.Copy(there, conn); _ = there.Close() }()
			go func() { _, _ = io.Copy(conn, there); _ = conn.Close() }()
		}
	}()
	return listener.Addr().String()
}

// ClosedAddress is one where nobody listens.
func ClosedAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
