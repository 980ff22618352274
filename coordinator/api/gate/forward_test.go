package gate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/consensus"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// A member that was elected may lose to another one before it has committed anything. A call that came to it goes on to that one.
func TestAnElectionThatDoesNotLastLosesNoCall(t *testing.T) {
	for name, next := range map[string]Leader{"another one leads": {Name: "c2", Address: "c2:7420"}, "it is elected again": {Self: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lead, elections, came := Leader{Self: true}, 0, ""
				answer := func(by string, w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					came = fmt.Sprint(by, " has ", string(body), ", ", err)
					w.WriteHeader(http.StatusOK)
				}
				f := NewForwarder(
					func() (Leader, bool) { return lead, true },
					func(context.Context) error {
						if elections++; elections > 1 {
							return nil
						}
						lead = next
						return consensus.ErrNotLeader
					},
					answers(func(r *http.Request) (*http.Response, error) {
						recorder := httptest.NewRecorder()
						answer(r.URL.Host, recorder, r)
						response := recorder.Result()
						response.Request = r
						return response, nil
					}), hclog.NewNullLogger(),
				)
				request := httptest.NewRequest(http.MethodPost, berthv1connect.BerthServiceStartVMProcedure, strings.NewReader("web"))
				recorder := httptest.NewRecorder()
				self := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer("it", w, r) })
				f.Wrap(self).ServeHTTP(recorder, request.WithContext(context.WithValue(t.Context(), callerKey{}, operator("a"))))
				want := "it has web, <nil>"
				if !next.Self {
					want = "c2:7420 has web, <nil>"
				}
				if recorder.Code != http.StatusOK || came != want {
					t.Errorf("answered %d, %s; want %s", recorder.Code, came, want)
				}
			})
		})
	}
}

// What the process itself reads is not compressed for it, unless it comes over the network from the leader. Everybody else has it
// compressed.
func TestACallFromInsideIsAnsweredAsItIs(t *testing.T) {
	const asked = "gzip"
	for name, c := range map[string]struct {
		inside bool
		lead   Leader
		want   string
	}{
		"inside, answered here": {true, Leader{Self: true}, ""}, "inside, forwarded": {true, Leader{Address: "c2:7420"}, asked},
		"from outside": {false, Leader{Self: true}, asked},
	} {
		came := "nothing"
		f := NewForwarder(
			func() (Leader, bool) { return c.lead, true }, func(context.Context) error { return nil },
			answers(func(r *http.Request) (*http.Response, error) {
				came = r.Header.Get("Accept-Encoding")
				response := httptest.NewRecorder().Result()
				response.Request = r
				return response, nil
			}), hclog.NewNullLogger(),
		)
		ctx := context.WithValue(t.Context(), callerKey{}, operator("a"))
		if c.inside {
			ctx = rpc.As(ctx, pki.Bearer{})
		}
		request := httptest.NewRequest(http.MethodPost, berthv1connect.BerthServiceListNodesProcedure, strings.NewReader("")).WithContext(ctx)
		request.Header.Set("Accept-Encoding", asked)
		f.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			came = r.Header.Get("Accept-Encoding")
		})).ServeHTTP(httptest.NewRecorder(), request)
		if came != c.want {
			t.Errorf("%s: it is to be packed by %q, want %q", name, came, c.want)
		}
	}
}

// A leader that cannot commit anything counts as none, and says so after the time that calls wait for a leader.
func TestALeaderThatCannotCommitIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewForwarder(
			func() (Leader, bool) { return Leader{Self: true}, true },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, hclog.NewNullLogger(),
		)
		request := httptest.NewRequest(http.MethodPost, berthv1connect.BerthServiceStartVMProcedure, strings.NewReader("{}"))
		request.Header.Set("Content-Type", "application/json")
		recorder, began := httptest.NewRecorder(), time.Now()
		taken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the call was taken on") })
		f.Wrap(taken).ServeHTTP(recorder, request.WithContext(context.WithValue(t.Context(), callerKey{}, operator("a"))))
		if body := recorder.Body.String(); recorder.Code != http.StatusServiceUnavailable || !strings.Contains(body, errNoLeader.Error()) {
			t.Errorf("answered %d: %s", recorder.Code, body)
		}
		if took := time.Since(began); took != LeaderPatience {
			t.Errorf("answered after %s, want %s", took, LeaderPatience)
		}
	})
}
