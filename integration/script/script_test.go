package script

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/coordinator/cli/clientconfig"
	"berth/integration/simagent"
	"berth/shared/pki"
)

// binaries is the folder with the program under test.
var binaries string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "berth-script-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "berth"), "berth/coordinator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build berth: %v\n%s", err, out)
		return 1
	}
	binaries = folder
	return m.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binaries+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Values[stoppers{}] = map[string]func(){}
			env.Values[processes{}] = map[string]*os.Process{}
			env.Values[fleet{}] = new(simagent.Fleet)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"coordinator": coordinator,
			"joins":       joins,
			"stops":       stops,
			"begins":      begins,
			"exits":       exits,
			"context":     contextFile,
			"hinders":     hinders,
			"holds":       holds,
			"interrupts":  interrupts,
			"lets-go":     letsGo,
			"nodes":       nodes,
			"estate":      largeEstate,
			"listen":      listen,
			"token":       token,
		},
	})
}

// exits CODE COMMAND...: the command ends with exactly this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// context FILE NAME LIFE ADDRESS...: FILE gets a context with a certificate of a new cluster that is valid for LIFE, which
// may be over.
func contextFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: context FILE NAME LIFE ADDRESS...")
	}
	life, err := time.ParseDuration(args[2])
	ts.Check(err)
	began := time.Now()
	if life < 0 {
		began, life = began.Add(2*life), -life
	}
	authority, err := pki.NewAuthority("c1", began)
	ts.Check(err)
	cert, key, err := certificate(authority, pki.RoleOperator, began, life)
	ts.Check(err)
	ts.Check(clientconfig.Store(ts.MkAbs(args[0]), args[1], args[3:], clientconfig.Credentials{
		CA: authority.CertificatePEM(), Certificate: cert, Key: key,
	}))
}

func certificate(authority *pki.Authority, role pki.Role, began time.Time, life time.Duration) (certPEM, keyPEM []byte, err error) {
	csr, keyPEM, err := pki.NewRequest("admin")
	if err != nil {
		return nil, nil, err
	}
	id := pki.Identity{Role: role, ID: "admin", Name: "admin", ClusterID: authority.ClusterID()}
	certPEM, err = authority.Sign(csr, id, []string{"127.0.0.1"}, began, life)
	return certPEM, keyPEM, err
}

// listen VARIABLE other|silent: the variable becomes the address of a coordinator of another cluster, or of something
// that takes connections and never answers.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: listen VARIABLE other|silent")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	ts.Setenv(args[0], listener.Addr().String())
	if args[1] == "silent" {
		return
	}
	authority, err := pki.NewAuthority("c2", time.Now())
	ts.Check(err)
	certPEM, keyPEM, err := certificate(authority, pki.RolePeer, time.Now(), time.Hour)
	ts.Check(err)
	pair, err := tls.X509KeyPair(append(certPEM, authority.CertificatePEM()...), keyPEM)
	ts.Check(err)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			// Whoever trusts it may say hello; the scripts show that nobody does.
			_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}).Handshake()
			_ = conn.Close()
		}
	}()
}

// token VARIABLE PURPOSE: the variable becomes a token of some cluster.
func token(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: token VARIABLE PURPOSE")
	}
	authority, err := pki.NewAuthority("c1", time.Now())
	ts.Check(err)
	pin, err := pki.Fingerprint(authority.CertificatePEM())
	ts.Check(err)
	text, _, err := pki.NewToken(args[1], pin)
	ts.Check(err)
	ts.Setenv(args[0], text)
}
