package cli

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clientconfig"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/loopback"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// silentAddress accepts connections and never says a word, like a host that hangs.
func silentAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// closedAddress is one where nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func TestTheNextCoordinatorIsAsked(t *testing.T) {
	w, servers := newWorld(t, steady())
	w.context("lab", pki.RoleOperator, closedAddress(t), silentAddress(t), servers[0].address)
	w.patience = connectPatience
	said := w.run("vm", "list", "-o", "name")
	if said.exit != Done || !strings.Contains(said.out, "vm/web1") {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
}

func TestNobodyAnswers(t *testing.T) {
	w, _ := newWorld(t)
	closed, silent := closedAddress(t), silentAddress(t)
	w.context("lab", pki.RoleOperator, closed, silent, "no.such.host.invalid:7420")
	w.patience = 300 * time.Millisecond
	said := w.run("vm", "list")
	if said.exit != Unreachable {
		t.Errorf("exit %d", said.exit)
	}
	lines := strings.Split(said.errOut, "\n")
	for i, want := range []string{
		"berth: no coordinator answers:", "  " + closed + ": connection refused", "  " + silent + ": no answer within ",
		"  no.such.host.invalid:7420: ", "next step: check that the coordinators run",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: want %q in\n%s", i, want, said.errOut)
		}
	}
	var share int // of the time that there is for all of them
	_, rest, _ := strings.Cut(said.errOut, "no answer within ")
	if _, err := fmt.Sscanf(rest, "%dms", &share); err != nil || share > 300 {
		t.Errorf("waited %d ms for one of three (%v)", share, err)
	}
	if !strings.Contains(said.errOut, `the addresses come from context "lab" in CONFIG/client.yaml`) {
		t.Errorf("does not say where the addresses come from:\n%s", said.errOut)
	}
}

// A coordinator without a leader sends the question on: it may be the only one that is cut off.
func TestNoLeaderHereMayBeALeaderThere(t *testing.T) {
	cut := refuses(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start the others"}, "the coordinators have no leader")
	w, _ := newWorld(t, cut, steady())
	if said := w.run("vm", "show", "web1"); said.exit != Done {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	w, _ = newWorld(t, cut)
	if said := w.run("vm", "show", "web1"); said.exit != Unreachable || said.errOut != "berth: the coordinators have no leader\nnext step: start the others\n" {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
}

// A write whose outcome is not known is repeated under the same request ID, so that it is done once.
func TestAWriteWithUnknownOutcomeIsRepeated(t *testing.T) {
	first, second := steady(), steady()
	var servers []*server
	first.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		servers[0].stop() // in the middle of the call
		return nil, connect.NewError(connect.CodeUnavailable, context.Canceled)
	}
	w, all := newWorld(t, first, second)
	servers = all
	said := w.run("vm", "start", "web1")
	if said.exit != Done {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	before, after := asked[berthv1.StartVMRequest](first), asked[berthv1.StartVMRequest](second)
	if len(before) != 1 || len(after) != 1 || before[0].GetRequestId() != after[0].GetRequestId() {
		t.Errorf("asked %v, then %v", before, after)
	}
}

// The same for the coordinator that itself does not know.
func TestAnUnavailableAnswerIsRepeatedWithinBounds(t *testing.T) {
	f := refuses(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.Unavailable, NextStep: "run it again"}, "it is not known whether the change was made")
	w, _ := newWorld(t, f)
	said := w.run("vm", "show", "web1")
	if said.exit != Failed || said.errOut != "berth: it is not known whether the change was made\nnext step: run it again\n" {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	if n := len(asked[berthv1.GetVMRequest](f)); n != callRounds {
		t.Errorf("asked %d times, want %d", n, callRounds)
	}
}

// A request that was not taken on is repeated when the answer says, under the same request ID, and people are told.
func TestAnOverloadedAnswerIsRepeatedLater(t *testing.T) {
	f := steady()
	start, puts := f.startVM, 0
	f.startVM = func(request *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		if puts++; puts < callRounds {
			err := rpc.Errorf(connect.CodeResourceExhausted, &berthv1.ErrorDetail{Code: rpc.Overloaded, NextStep: "try again in 1 s: nothing was done"}, "too much to do")
			err.Meta().Set("Retry-After", "1")
			return nil, err
		}
		return start(request)
	}
	first := f
	w, _ := newWorld(t, first)
	said := w.run("vm", "start", "web1")
	if said.exit != Done || strings.Count(said.errOut, "berth: the coordinators are busy: asking again in ") != callRounds-1 {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	f = refuses(connect.CodeResourceExhausted, &berthv1.ErrorDetail{Code: rpc.Overloaded, NextStep: "try later"}, "too much to do")
	always, _ := newWorld(t, f)
	if said := always.run("vm", "show", "web1"); said.exit != Failed || len(asked[berthv1.GetVMRequest](f)) != callRounds || !strings.HasSuffix(said.errOut, "berth: too much to do\nnext step: try later\n") {
		t.Errorf("asked %d times, exit %d, %s", len(asked[berthv1.GetVMRequest](f)), said.exit, said.errOut)
	}
	all := asked[berthv1.StartVMRequest](first)
	if len(all) != callRounds || all[0].GetRequestId() == "" || all[0].GetRequestId() != all[callRounds-1].GetRequestId() {
		t.Errorf("asked %v", all)
	}
}

// What has no request ID is not repeated once it may have been done.
func TestARemovalWithUnknownOutcomeIsNotRepeated(t *testing.T) {
	first, second := steady(), steady()
	var servers []*server
	first.remove = func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error) {
		servers[0].stop()
		return nil, connect.NewError(connect.CodeUnavailable, context.Canceled)
	}
	w, all := newWorld(t, first, second)
	servers = all
	said := w.run("coordinator", "remove", "coord3", "--yes")
	if said.exit != Failed || !strings.Contains(said.errOut, "it is not known whether this was done") {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	if n := len(asked[berthv1.RemoveMemberRequest](second)); n != 0 {
		t.Errorf("the second coordinator was asked %d times", n)
	}
}

func TestWrongCertificates(t *testing.T) {
	ours, servers := newWorld(t, steady())
	theirs, _ := newWorld(t)
	address := servers[0].address

	theirs.context("lab", pki.RoleOperator, address)
	said := theirs.run("vm", "list")
	if said.exit != Failed || !strings.Contains(said.errOut, address+": its certificate comes from another cluster") {
		t.Errorf("another cluster's server: exit %d, %s", said.exit, said.errOut)
	}

	// Our authority, so that the server is trusted, with a certificate that it does not know.
	cert, key := theirs.identity(pki.RoleOperator, "eve")
	credentials := clientconfig.Credentials{CA: theirs.authority.CertificatePEM(), Certificate: cert, Key: key}
	if err := clientconfig.Store(theirs.config, "mixed", []string{address}, credentials); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(filepath.Dir(theirs.config), "client", "mixed", "ca.pem")
	writeFile(t, ca, ours.authority.CertificatePEM())
	if said := theirs.run("vm", "list"); said.exit != Failed || !strings.Contains(said.errOut, "is not signed by "+theirs.stable(ca)) {
		t.Errorf("mixed files: exit %d, %s", said.exit, said.errOut)
	}

	// A coordinator of ours by a name that its certificate does not have.
	ours.context("lab", pki.RoleOperator, strings.Replace(address, "127.0.0.1", "localhost", 1))
	if said := ours.run("vm", "list"); said.exit != Failed || !strings.Contains(said.errOut, "its certificate is for other addresses (127.0.0.1)") {
		t.Errorf("another host name: exit %d, %s", said.exit, said.errOut)
	}
}

func TestExpiredCertificate(t *testing.T) {
	w, _ := newWorld(t, steady())
	var out, errOut strings.Builder
	a := newApp(Options{})
	a.now = func() time.Time { return time.Now().Add(6 * pki.DefaultValidity) }
	a.clientConfig = w.config
	exit := a.run(t.Context(), a.root(Options{}), []string{"vm", "list", "--client-config", w.config}, w.in, &out, &errOut)
	if Exit(exit) != Failed || !strings.Contains(errOut.String(), "expired on 20") || !strings.Contains(errOut.String(), "berth login HOST TOKEN") {
		t.Errorf("exit %d, %s", exit, errOut.String())
	}
}

// Flags come before the environment, the environment before the file.
func TestWhichCoordinatorsAreAsked(t *testing.T) {
	names := func(name string) *fake {
		f := steady()
		f.status = func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
			return &berthv1.StatusResponse{Leader: name, AnsweredBy: name}, nil
		}
		return f
	}
	w, servers := newWorld(t, names("file"), names("environment"), names("flag"), names("context"))
	w.context("other", pki.RoleOperator, servers[3].address)
	w.context("lab", pki.RoleOperator, servers[0].address)
	for _, c := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{nil, nil, "file"},
		{map[string]string{coordinatorVariable: servers[1].address}, nil, "environment"},
		{map[string]string{coordinatorVariable: servers[1].address}, []string{"--coordinator", servers[2].address}, "flag"},
		{map[string]string{contextVariable: "other"}, nil, "context"},
		{map[string]string{contextVariable: "nonsense"}, []string{"--context", "other"}, "context"},
	} {
		w.env = c.env
		if said := w.run(append([]string{"status"}, c.args...)...); !strings.Contains(said.out, "answered by "+c.want) {
			t.Errorf("%v %v: want %s, got %q %q", c.env, c.args, c.want, said.out, said.errOut)
		}
	}
	w.env = map[string]string{coordinatorVariable: "a b"}
	if said := w.run("status"); said.exit != Failed || !strings.Contains(said.errOut, coordinatorVariable+`: not an address: "a b"`) {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	w.env = map[string]string{contextVariable: "nonsense"}
	if said := w.run("status"); said.exit != Failed || !strings.Contains(said.errOut, `"nonsense", CONFIG/client.yaml has lab, other`) {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
}

func TestNoClientConfiguration(t *testing.T) {
	w, _ := newWorld(t)
	w.env = map[string]string{clientconfig.Variable: "", "HOME": filepath.Dir(w.config)}
	said := w.run("vm", "list")
	want := "berth: no client configuration: looked for CONFIG/.config/berth/client.yaml and /etc/berth/client.yaml\nnext step: log in with 'berth login HOST TOKEN'"
	if said.exit != Failed || !strings.HasPrefix(said.errOut, want) {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
}
