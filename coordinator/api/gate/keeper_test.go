package gate

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// calls is a member without a leader and without a log: it has records, and calls that are open.
type calls struct {
	*statetest.Site
	keeper *Keeper
}

// silent takes an answer and keeps nothing of it.
type silent struct{ header http.Header }

func (s silent) Header() http.Header              { return s.header }
func (s silent) Write(data []byte) (int, error)   { return len(data), nil }
func (s silent) WriteHeader(int)                  {}
func (s silent) SetReadDeadline(time.Time) error  { return nil }
func (s silent) SetWriteDeadline(time.Time) error { return nil }

func member(t *testing.T, founders ...pki.Bearer) *calls {
	t.Helper()
	c := &calls{Site: statetest.New(t)}
	c.keeper = NewKeeper(c.Store, func() time.Time { return statetest.Noon })
	c.Apply(state.RaiseLevel(state.IdentityLevel))
	begun, due := identities.Begin(c.Snapshot(), founders, statetest.Noon)
	if !due {
		t.Fatal("records do not begin")
	}
	c.Apply(begun)
	return c
}

func known(role pki.Role, id string) pki.Bearer {
	return pki.Bearer{
		Identity: pki.Identity{Role: role, ID: id, Name: "name-" + id, ClusterID: "c1"}, Key: "key-" + id,
		Until: statetest.Noon.AddDate(0, 0, 30),
	}
}

// open is a call that lasts, of somebody whom a connection has proved, perhaps for another one. Its end is told with how long it took.
func (c *calls) open(ctx context.Context, procedure string, who pki.Bearer, original *Caller) <-chan time.Time {
	ended := make(chan time.Time, 1)
	began := make(chan struct{})
	r, err := http.NewRequestWithContext(rpc.As(ctx, who), http.MethodPost, "https://member"+procedure, http.NoBody)
	if err != nil {
		c.Fatal(err)
	}
	r.RemoteAddr = "192.0.2.7:1"
	if original != nil {
		r.Header.Set(forwardedHeader, original.header())
	}
	handler := c.keeper.Authorise(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		ended <- time.Now()
	}))
	go handler.ServeHTTP(silent{http.Header{}}, r)
	<-began
	return ended
}

func (c *calls) revoke(id string) {
	identity, _ := c.Snapshot().Identity(id)
	var command state.Command
	identities.Put(&command, identity.Revoke(statetest.Noon, "operator/x", "lost"))
	c.Apply(command)
}

// A member asks its own records. So what is open at a follower ends by what that has received, and nobody has to lead.
func TestWhatIsOpenEndsWithinASecondOnEveryMember(t *testing.T) {
	session, events := berthv1connect.AgentServiceSessionProcedure, berthv1connect.BerthServiceWatchEventsProcedure
	alice, bob := known(pki.RoleOperator, "o1"), known(pki.RoleOperator, "o2")
	node, other := known(pki.RoleAgent, "n1"), known(pki.RolePeer, "m1")
	ofAlice := &Caller{Bearer: alice, Address: "192.0.2.9", Forwarded: true}
	for what, open := range map[string]struct {
		procedure string
		who       pki.Bearer
		original  *Caller
		revoked   string
	}{
		"an operator's":                           {events, alice, nil, "o1"},
		"a node's session":                        {session, node, nil, "n1"},
		"one that another member has forwarded":   {events, other, ofAlice, "o1"},
		"one that a removed member has forwarded": {events, other, ofAlice, "m1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := member(t, alice, bob, node, other)
			ctx, end := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer end()
			go c.keeper.Watch(ctx)
			ended := c.open(ctx, open.procedure, open.who, open.original)
			stays := c.open(ctx, events, bob, nil)
			time.Sleep(10*time.Second + 137*time.Millisecond)
			select {
			case <-ended:
				t.Fatalf("%s ended before", what)
			default:
			}
			c.revoke(open.revoked)
			begun := time.Now()
			select {
			case at := <-ended:
				if took := at.Sub(begun); took > time.Second {
					t.Errorf("%s ended after %v", what, took)
				}
			case <-time.After(time.Minute):
				t.Errorf("%s goes on", what)
			}
			select {
			case <-stays:
				t.Errorf("%s was ended, and bob's, too", what)
			case <-time.After(time.Minute):
			}
		})
	}
}

// A call that is judged by what was before a revocation, and that begins after it was looked for, ends as well.
func TestACallThatBeginsInTheMomentOfARevocationEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alice, bob := known(pki.RoleOperator, "o1"), known(pki.RoleOperator, "o2")
		c := member(t, alice, bob)
		ctx, end := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer end()
		go c.keeper.Watch(ctx)
		synctest.Wait()
		c.revoke("o1")
		time.Sleep(lookAgain + time.Millisecond) // it was looked for
		v := &visit{who: []pki.Bearer{alice}, control: http.NewResponseController(silent{http.Header{}})}
		called, cancel := context.WithCancel(ctx)
		v.cancel = cancel
		c.keeper.enter(v)
		select {
		case <-called.Done():
		case <-time.After(time.Second):
			t.Error("it goes on")
		}
		c.keeper.leave(v)
	})
}
