package term_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli"
	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func TestTheNextCoordinatorIsAsked(t *testing.T) {
	w, servers := clitest.NewSite(t, clitest.Steady())
	w.Context("lab", pki.RoleOperator, clitest.ClosedAddress(t), clitest.SilentAddress(t), servers[0].Address)
	w.Patience = 5 * time.Second
	said := w.Run("vm", "list", "-o", "name")
	if said.Exit != term.Done || !strings.Contains(said.Out, "vm/web1") {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
}

func TestNobodyAnswers(t *testing.T) {
	w, _ := clitest.NewSite(t)
	closed, silent := clitest.ClosedAddress(t), clitest.SilentAddress(t)
	w.Context("lab", pki.RoleOperator, closed, silent, "no.such.host.invalid:7420")
	w.Patience, w.Busy = 300*time.Millisecond, time.Second
	said := w.Run("vm", "list")
	if said.Exit != term.Unreachable {
		t.Errorf("exit %d", said.Exit)
	}
	lines := strings.Split(said.ErrOut, "\n")[1:] // the first tells that it is tried again
	for i, want := range []string{
		"berth: no coordinator answers:", "  " + closed + ": connection refused", "  " + silent + ": no answer within ",
		"  no.such.host.invalid:7420: ", "next step: check that the coordinators run",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: want %q in\n%s", i, want, said.ErrOut)
		}
	}
	var share int // of the time that there is for all of them
	_, rest, _ := strings.Cut(said.ErrOut, "no answer within ")
	if _, err := fmt.Sscanf(rest, "%dms", &share); err != nil || share > 300 {
		t.Errorf("waited %d ms for one of three (%v)", share, err)
	}
	if !strings.Contains(said.ErrOut, `the addresses come from context "lab" in CONFIG/client.yaml`) {
		t.Errorf("does not say where the addresses come from:\n%s", said.ErrOut)
	}
}

// A coordinator without a leader sends the question on: it may be the only one that is cut off.
func TestNoLeaderHereMayBeALeaderThere(t *testing.T) {
	cut := clitest.Refuses(
		connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader, NextStep: "start the others"},
		"the coordinators have no leader",
	)
	w, _ := clitest.NewSite(t, cut, clitest.Steady())
	if said := w.Run("vm", "show", "web1"); said.Exit != term.Done {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	w, _ = clitest.NewSite(t, cut)
	if said := w.Run("vm", "show", "web1"); said.Exit != term.Unreachable ||
		said.ErrOut != "berth: the coordinators have no leader\nnext step: start the others\n" {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

// A write whose outcome is not known is repeated under the same request ID, so that it is done once.
func TestAWriteWithUnknownOutcomeIsRepeated(t *testing.T) {
	first, second := clitest.Steady(), clitest.Steady()
	var servers []*clitest.Server
	first.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		servers[0].Stop() // in the middle of the call
		return nil, connect.NewError(connect.CodeUnavailable, context.Canceled)
	}
	w, all := clitest.NewSite(t, first, second)
	servers = all
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.Done {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	before, after := clitest.Asked[berthv1.StartVMRequest](first), clitest.Asked[berthv1.StartVMRequest](second)
	if len(before) != 1 || len(after) != 1 || before[0].GetRequestId() != after[0].GetRequestId() {
		t.Errorf("asked %v, then %v", before, after)
	}
}

// The same for the coordinator that itself does not know.
func TestAnUnavailableAnswerIsRepeatedWithinBounds(t *testing.T) {
	f := clitest.Refuses(
		connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.Unavailable, NextStep: "run it again"},
		"it is not known whether the change was made",
	)
	w, _ := clitest.NewSite(t, f)
	said := w.Run("vm", "show", "web1")
	if said.Exit != term.Failed || said.ErrOut != "berth: it is not known whether the change was made\nnext step: run it again\n" {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if n := len(clitest.Asked[berthv1.GetVMRequest](f)); n != 3 {
		t.Errorf("asked %d times, want %d", n, 3)
	}
}

// A request that was not taken on is repeated when the answer says, under the same request ID, and people are told.
func TestAnOverloadedAnswerIsRepeatedLater(t *testing.T) {
	f := clitest.Steady()
	start, puts := f.OnStartVM, 0
	f.OnStartVM = func(request *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		if puts++; puts < 3 {
			err := rpc.Errorf(
				connect.CodeResourceExhausted, &berthv1.ErrorDetail{Code: rpc.Overloaded, NextStep: "try again in 1 s: nothing was done"},
				"too much to do",
			)
			err.Meta().Set("Retry-After", "1")
			return nil, err
		}
		return start(request)
	}
	first := f
	w, _ := clitest.NewSite(t, first)
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.Done || strings.Count(said.ErrOut, "berth: the coordinators are busy: asking again in ") != 2 {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	all := clitest.Asked[berthv1.StartVMRequest](first)
	if len(all) != 3 || all[0].GetRequestId() == "" || all[0].GetRequestId() != all[2].GetRequestId() {
		t.Errorf("asked %v", all)
	}
}

// Overload is waited out as long as the caller waits, and no longer. It is told as what it is.
func TestOverloadIsWaitedOutUntilTheCallersTimeout(t *testing.T) {
	refused := rpc.Errorf(connect.CodeResourceExhausted, &berthv1.ErrorDetail{Code: rpc.Overloaded, NextStep: "try later"}, "too much to do")
	f := clitest.Steady()
	f.OnStartVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) { return nil, refused }
	f.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) { return nil, refused }
	for _, c := range []struct {
		args []string
		said string
	}{
		{[]string{"vm", "start", "web1", "--timeout", "4s"}, "4s"},
		{[]string{"vm", "show", "web1"}, "3s"},
		{[]string{"vm", "start", "web1", "--no-wait"}, "3s"},
	} {
		w, _ := clitest.NewSite(t, f)
		w.Busy = 3 * time.Second
		began := time.Now()
		said := w.Run(c.args...)
		want := "berth: the coordinators are busy, and have been for " + c.said +
			": too much to do\nnext step: nothing was done: run it again later"
		if said.Exit != term.Failed || !strings.Contains(said.ErrOut, want) || strings.Count(said.ErrOut, "asking again in ") < 2 {
			t.Errorf("%v: exit %d, %s", c.args, said.Exit, said.ErrOut)
		}
		if took := time.Since(began); took < 3*time.Second || took > 20*time.Second {
			t.Errorf("%v: waited %s", c.args, took)
		}
	}
	if n := len(clitest.Asked[berthv1.GetVMRequest](f)); n < 2 || n > 5 {
		t.Errorf("asked %d times in three seconds", n)
	}
}

// A machine that is busy takes connections before anybody there can answer. It is asked again, as long as the caller waits.
func TestACoordinatorThatIsSlowToSayHelloIsAskedAgain(t *testing.T) {
	w, servers := clitest.NewSite(t, clitest.Steady())
	slow := clitest.SlowAddress(t, servers[0].Address, 3)
	w.Context("lab", pki.RoleOperator, slow)
	w.Patience = 300 * time.Millisecond
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.Done || strings.Count(said.ErrOut, "take connections and do not answer yet, they may be busy: asking again") != 1 {
		t.Errorf("exit %d, %q, %q", said.Exit, said.Out, said.ErrOut)
	}
	w.Busy = time.Second
	w.Context("lab", pki.RoleOperator, clitest.SilentAddress(t))
	said = w.Run("vm", "show", "web1")
	if said.Exit != term.Unreachable || !strings.Contains(said.ErrOut, "though it takes the connection: it is busy, or it hangs\n") ||
		strings.Contains(said.ErrOut, "within 0ms") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

// A coordinator that has taken a request and does not answer in time is busy, and not unreachable. The same request is made again, so
// that it is done once, and then people are told what it is.
func TestACoordinatorThatIsLateIsBusy(t *testing.T) {
	f := clitest.Steady()
	start, answers := f.OnStartVM, make(chan struct{})
	var puts atomic.Int32
	f.OnStartVM = func(request *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		if puts.Add(1) == 1 {
			<-answers
		}
		return start(request)
	}
	f.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		<-answers
		return nil, connect.NewError(connect.CodeUnavailable, context.Canceled)
	}
	w, _ := clitest.NewSite(t, f)
	t.Cleanup(func() { close(answers) })
	w.Limit = 3 * time.Second
	said := w.Run("vm", "start", "web1")
	if said.Exit != term.Done || !strings.Contains(said.ErrOut, "they may be busy: asking again") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	all := clitest.Asked[berthv1.StartVMRequest](f)
	if len(all) < 2 || all[0].GetRequestId() == "" || all[0].GetRequestId() != all[1].GetRequestId() {
		t.Errorf("asked %v", all)
	}
	w.Limit, w.Busy = 100*time.Millisecond, time.Second
	said = w.Run("vm", "show", "web1")
	if said.Exit != term.TimedOut || !strings.Contains(said.ErrOut, "berth: the coordinators are busy, or their disks hang:\n  ") ||
		!strings.Contains(said.ErrOut, ": it has taken the request, and has not answered within 100ms\nnext step: ") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

// A question that may take longer than others says how long it was given.
func TestALateAnswerSaysHowLongItWasGiven(t *testing.T) {
	f := clitest.Steady()
	f.OnExportEstate = func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error) {
		return nil, rpc.Errorf(connect.CodeDeadlineExceeded, &berthv1.ErrorDetail{Code: rpc.Timeout, NextStep: "later"}, "no time is left")
	}
	w, _ := clitest.NewSite(t, f)
	w.Busy = 100 * time.Millisecond
	said := w.Run("export")
	if said.Exit != term.TimedOut || !strings.Contains(said.ErrOut, ": it has taken the request, and has not answered within 2m\n") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

// What has no request ID is not repeated once it may have been done.
func TestARemovalWithUnknownOutcomeIsNotRepeated(t *testing.T) {
	first, second := clitest.Steady(), clitest.Steady()
	var servers []*clitest.Server
	first.OnRemove = func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error) {
		servers[0].Stop()
		return nil, connect.NewError(connect.CodeUnavailable, context.Canceled)
	}
	w, all := clitest.NewSite(t, first, second)
	servers = all
	said := w.Run("coordinator", "delete", "coord3", "--yes")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, "it is not known whether this was done") {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	if n := len(clitest.Asked[berthv1.RemoveMemberRequest](second)); n != 0 {
		t.Errorf("the second coordinator was asked %d times", n)
	}
}

func TestWrongCertificates(t *testing.T) {
	ours, servers := clitest.NewSite(t, clitest.Steady())
	theirs, _ := clitest.NewSite(t)
	address := servers[0].Address
	other, err := pki.NewAuthority("c2", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	theirs.Authority = other

	theirs.Context("lab", pki.RoleOperator, address)
	said := theirs.Run("vm", "list")
	if said.Exit != term.Failed || !strings.Contains(said.ErrOut, address+": its certificate comes from another cluster") {
		t.Errorf("another cluster's server: exit %d, %s", said.Exit, said.ErrOut)
	}

	// Our authority, so that the server is trusted, with a certificate that it does not know.
	cert, key := theirs.Identity(pki.RoleOperator, "eve")
	credentials := clientconfig.Credentials{CA: theirs.Authority.CertificatePEM(), Certificate: cert, Key: key}
	if err := clientconfig.Store(theirs.Config, "mixed", []string{address}, credentials); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(filepath.Dir(theirs.Config), "client", "mixed", "ca.pem")
	clitest.WriteFile(t, ca, ours.Authority.CertificatePEM())
	if said := theirs.Run("vm", "list"); said.Exit != term.Failed || !strings.Contains(said.ErrOut, "is not signed by "+theirs.Stable(ca)) {
		t.Errorf("mixed files: exit %d, %s", said.Exit, said.ErrOut)
	}

	// A coordinator of ours by a name that its certificate does not have.
	ours.Context("lab", pki.RoleOperator, strings.Replace(address, "127.0.0.1", "localhost", 1))
	if said := ours.Run("vm", "list"); said.Exit != term.Failed || !strings.Contains(
		said.ErrOut, "its certificate is for other addresses (127.0.0.1)",
	) {
		t.Errorf("another host name: exit %d, %s", said.Exit, said.ErrOut)
	}
}

// Who has not called while the authority was replaced is told that, and how he comes back.
func TestWhoWasLeftBehindIsToldToLogInAgain(t *testing.T) {
	w, servers := clitest.NewSite(t, clitest.Steady())
	before, err := pki.NewAuthority(w.Authority.ClusterID(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.Authority = before
	w.Context("lab", pki.RoleOperator, servers[0].Address)
	said := w.Run("vm", "list")
	for _, text := range []string{
		"left behind when the authority was replaced", servers[0].Address + ": its certificate is by an authority that is not known here",
		"next step: log in with 'berth login HOST TOKEN'", "berth token add --for operator",
	} {
		if said.Exit != term.Failed || !strings.Contains(said.ErrOut, text) {
			t.Errorf("exit %d, it does not say %q: %s", said.Exit, text, said.ErrOut)
		}
	}
}

func TestExpiredCertificate(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	var out, errOut strings.Builder
	a := term.New("")
	a.Now = func() time.Time { return time.Now().Add(6 * pki.DefaultValidity) }
	a.ClientConfig = w.Config
	exit := cli.RunAs(t.Context(), a, cli.Options{}, []string{"vm", "list", "--client-config", w.Config}, w.In, &out, &errOut)
	if term.Exit(exit) != term.Failed || !strings.Contains(errOut.String(), "expired on 20") || !strings.Contains(
		errOut.String(), "berth login HOST TOKEN",
	) {
		t.Errorf("exit %d, %s", exit, errOut.String())
	}
}

// Flags come before the environment, the environment before the file.
func TestWhichCoordinatorsAreAsked(t *testing.T) {
	names := func(name string) *clitest.Fake {
		f := clitest.Steady()
		f.OnStatus = func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) {
			return &berthv1.StatusResponse{Leader: name, AnsweredBy: name}, nil
		}
		return f
	}
	w, servers := clitest.NewSite(t, names("file"), names("environment"), names("flag"), names("context"))
	w.Context("other", pki.RoleOperator, servers[3].Address)
	w.Context("lab", pki.RoleOperator, servers[0].Address)
	for _, c := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{nil, nil, "file"},
		{map[string]string{term.CoordinatorVariable: servers[1].Address}, nil, "environment"},
		{map[string]string{term.CoordinatorVariable: servers[1].Address}, []string{"--coordinator", servers[2].Address}, "flag"},
		{map[string]string{term.ContextVariable: "other"}, nil, "context"},
		{map[string]string{term.ContextVariable: "nonsense"}, []string{"--context", "other"}, "context"},
	} {
		w.Env = c.env
		if said := w.Run(append([]string{"status"}, c.args...)...); !strings.Contains(said.Out, "answered by "+c.want) {
			t.Errorf("%v %v: want %s, got %q %q", c.env, c.args, c.want, said.Out, said.ErrOut)
		}
	}
	w.Env = map[string]string{term.CoordinatorVariable: "a b"}
	if said := w.Run("status"); said.Exit != term.Failed || !strings.Contains(
		said.ErrOut, term.CoordinatorVariable+`: not an address: "a b"`,
	) {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
	w.Env = map[string]string{term.ContextVariable: "nonsense"}
	if said := w.Run("status"); said.Exit != term.Failed || !strings.Contains(said.ErrOut, `"nonsense", CONFIG/client.yaml has lab, other`) {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

func TestNoClientConfiguration(t *testing.T) {
	w, _ := clitest.NewSite(t)
	w.Env = map[string]string{clientconfig.Variable: "", "HOME": filepath.Dir(w.Config)}
	said := w.Run("vm", "list")
	want := "berth: no client configuration: looked for CONFIG/.config/berth/client.yaml and /etc/berth/client.yaml\n" +
		"next step: log in with 'berth login HOST TOKEN'"
	if said.Exit != term.Failed || !strings.HasPrefix(said.ErrOut, want) {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}
