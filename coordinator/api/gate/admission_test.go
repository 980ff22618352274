package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func TestThoseWhoWaitGoByRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{most: 1, queue: 3}
		var order []string
		enter := func(name string, as rank) {
			go func() {
				admitted, err := g.enter(t.Context(), as)
				if err != nil {
					t.Error(err)
				}
				order = append(order, fmt.Sprint(name, " ", admitted))
			}()
			synctest.Wait()
		}
		enter("first", rankPeople)
		enter("people", rankPeople)
		enter("anonymous", rankAnonymous)
		enter("later", rankPeople)
		enter("one too many", rankPeople) // takes the place of the anonymous call
		enter("nobody's place", rankPeople)
		enter("relief", rankRelief) // takes the last one's place
		for range 4 {
			g.leave()
			synctest.Wait()
		}
		want := "first true, anonymous false, nobody's place false, one too many false, relief true, people true, later true"
		if got := strings.Join(order, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if g.inside != 0 || g.length() != 0 {
			t.Errorf("%d are inside and %d wait when all have left", g.inside, g.length())
		}
	})
}

func TestWhoeverWaitsNoMoreLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{most: 1, queue: 10}
		if admitted, err := g.enter(t.Context(), rankPeople); !admitted || err != nil {
			t.Fatal(admitted, err)
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if admitted, err := g.enter(gone, rankPeople); admitted || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", admitted, err)
		}
		g.leave()
		if g.inside != 0 || g.length() != 0 {
			t.Errorf("%d are inside and %d wait", g.inside, g.length())
		}
	})
}

// door is an admission with a handler behind it that counts, and holds what it lets in until it is told.
type door struct {
	*Admission
	inside, most, served atomic.Int64
	hold                 chan struct{}
}

func newDoor(limits Limits) *door {
	d := &door{Admission: NewAdmission(limits, time.Now), hold: make(chan struct{})}
	return d
}

func (d *door) ServeHTTP(http.ResponseWriter, *http.Request) {
	d.most.Store(max(d.most.Load(), d.inside.Add(1)))
	<-d.hold
	d.inside.Add(-1)
	d.served.Add(1)
}

func (d *door) call(ctx context.Context, who Caller, procedure, timeout string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, procedure, strings.NewReader("{}"))
	request.Header.Set("Content-Type", "application/json")
	if timeout != "" {
		request.Header.Set("Connect-Timeout-Ms", timeout)
	}
	answer := httptest.NewRecorder()
	d.Wrap(d).ServeHTTP(answer, request.WithContext(context.WithValue(ctx, callerKey{}, who)))
	return answer
}

func operator(name string) Caller {
	return Caller{Bearer: pki.Bearer{Identity: pki.Identity{Role: pki.RoleOperator, ID: name, Name: name}}}
}

func TestOnlySoManyWritesAreTakenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(Limits{Writes: 3, Waiting: 5, Rate: -1})
		codes := map[int]int{}
		retry := ""
		done := make(chan *httptest.ResponseRecorder)
		for i := range 20 {
			timeout := ""
			if i >= 3 && i < 5 {
				timeout = "1000" // these two wait in vain
			}
			go func() {
				done <- d.call(t.Context(), operator("a"), berthv1connect.BerthServiceStartVMProcedure, timeout)
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		close(d.hold)
		for range 20 {
			answer := <-done
			codes[answer.Code]++
			if answer.Code == http.StatusTooManyRequests {
				retry = answer.Header().Get(retryHeader)
				if body := answer.Body.String(); !strings.Contains(body, "resource_exhausted") {
					t.Errorf("the answer is %s", body)
				}
			}
		}
		if d.most.Load() != 3 || d.served.Load() != 6 {
			t.Errorf("%d were inside at a time, and %d served", d.most.Load(), d.served.Load())
		}
		if codes[http.StatusOK] != 6 || codes[http.StatusTooManyRequests] != 14 || retry == "" || retry == "0" {
			t.Errorf("the answers are %v, to be repeated after %q s", codes, retry)
		}
	})
}

// One caller who asks too often is put off; others are not, and neither is who makes room.
func TestACallerHasARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(Limits{Rate: 10, Burst: 5})
		close(d.hold)
		refused := 0
		for range 8 {
			if answer := d.call(
				t.Context(), operator("a"), berthv1connect.BerthServiceListVMsProcedure, "",
			); answer.Code == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 3 {
			t.Errorf("%d of 8 calls at once were put off, with a burst of 5", refused)
		}
		for who, procedure := range map[Caller]string{
			operator("b"): berthv1connect.BerthServiceListVMsProcedure, operator("a"): berthv1connect.BerthServiceStopVMProcedure,
			{Bearer: pki.Bearer{Identity: pki.Identity{Role: pki.RolePeer, ID: "c"}}}: berthv1connect.BerthServiceStartVMProcedure,
		} {
			if answer := d.call(t.Context(), who, procedure, ""); answer.Code != http.StatusOK {
				t.Errorf("%s calls %s: %d", who, procedure, answer.Code)
			}
		}
		time.Sleep(200 * time.Millisecond)
		for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
			if answer := d.call(t.Context(), operator("a"), berthv1connect.BerthServiceListVMsProcedure, ""); answer.Code != want {
				t.Errorf("after a fifth of a second: %d, want %d", answer.Code, want)
			}
		}
	})
}

// Each procedure passes the gate of its class. One without a class counts as a change.
func TestEveryProcedureHasItsGate(t *testing.T) {
	a := NewAdmission(Limits{}, time.Now)
	for procedure, want := range map[string]*gate{
		berthv1connect.BerthServiceStartVMProcedure: a.writes, berthv1connect.BerthServiceApplyEstateProcedure: a.writes,
		berthv1connect.BerthServiceListVMsProcedure: a.reads, berthv1connect.BerthServiceWhyNotProcedure: a.reads,
		berthv1connect.BerthServiceWatchEventsProcedure: nil, berthv1connect.BerthServiceSaveSnapshotProcedure: nil,
		berthv1connect.BerthServiceConsoleProcedure: nil, "/berth.v1.BerthService/SomethingNew": a.writes,
	} {
		if got := a.gateOf(rpc.TraitsOf(procedure).Class()); got != want {
			t.Errorf("%s passes another gate", procedure)
		}
	}
	if a.limits != (Limits{Writes: 256, Reads: 64, Waiting: 1000, Rate: 100, Burst: 500}) {
		t.Errorf("the defaults are %+v", a.limits)
	}
}

// Who has no certificate has less: ten calls a second and fifty at once, whatever others may ask for.
func TestAnAddressWithoutACertificateHasLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(Limits{})
		close(d.hold)
		count := func(calls int) (taken int) {
			for range calls {
				answer := d.call(t.Context(), Caller{Address: "10.0.0.9"}, berthv1connect.EnrolmentServiceEnrolProcedure, "")
				if answer.Code == http.StatusOK {
					taken++
				} else if text := answer.Body.String(); !strings.Contains(text, "anonymous/10.0.0.9 asks for more than 10 calls a second") {
					t.Fatalf("put off with %s", text)
				}
			}
			return taken
		}
		if taken := count(80); taken != anonymousBurst {
			t.Errorf("%d calls at once", taken)
		}
		time.Sleep(time.Second)
		if taken := count(80); taken != anonymousRate {
			t.Errorf("%d calls in the next second", taken)
		}
	})
}

// The deadline that a caller names counts from before its message is read, in the words of either protocol.
func TestDeadlinesOfBothProtocols(t *testing.T) {
	for _, c := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Connect-Timeout-Ms", "250", 250 * time.Millisecond},
		{"Connect-Timeout-Ms", "0", 0},
		{"Connect-Timeout-Ms", "-5", 0},
		{"Connect-Timeout-Ms", "99999999999", 0},
		{"Connect-Timeout-Ms", "soon", 0},
		{"Grpc-Timeout", "3S", 3 * time.Second},
		{"Grpc-Timeout", "250m", 250 * time.Millisecond},
		{"Grpc-Timeout", "2M", 2 * time.Minute},
		{"Grpc-Timeout", "1H", time.Hour},
		{"Grpc-Timeout", "7u", 7 * time.Microsecond},
		{"Grpc-Timeout", "9n", 9},
		{"Grpc-Timeout", "25H", 0},
		{"Grpc-Timeout", "3", 0},
		{"Grpc-Timeout", "S", 0},
		{"Grpc-Timeout", "", 0},
		{"Grpc-Timeout", "3x", 0},
	} {
		header := http.Header{}
		header.Set(c.header, c.value)
		if left, named := timeoutOf(header); left != c.want || named != (c.want > 0) {
			t.Errorf("%s: %q leaves %s, %t", c.header, c.value, left, named)
		}
	}
}

// Writes wait only while there are more than are taken on at a time.
func TestWritesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(Limits{Writes: 1, Rate: -1})
		call := func() { go d.call(t.Context(), operator("a"), berthv1connect.BerthServiceStartVMProcedure, "") }
		call()
		synctest.Wait()
		if d.WritesWait() {
			t.Error("one call is a crowd")
		}
		call()
		synctest.Wait()
		if !d.WritesWait() {
			t.Error("a call that waits is none")
		}
		close(d.hold)
		synctest.Wait()
		if d.WritesWait() {
			t.Error("a crowd is left when all are gone")
		}
	})
}
