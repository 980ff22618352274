package gate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func TestRefusedCallsAreToldAndBoundedForEachIdentity(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	k := NewKeeper(state.NewStore(), func() time.Time { return now })
	caller := func(name string) Caller {
		return Caller{Bearer: pki.Bearer{Identity: pki.Identity{Role: pki.RoleOperator, ID: "id-" + name, Name: name}}, Address: "192.0.2.7"}
	}
	no := func(code, subject string) *connect.Error {
		return rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{Code: code, Subject: subject}, "not permitted: a host path")
	}
	const procedure = "/berth.v1.BerthService/AddVM"
	for range 100 {
		k.NoteRefused(caller("alice"), procedure, no(rpc.Denied, "vm/web1"))
	}
	k.NoteRefused(caller("bob"), procedure, no(rpc.Denied, procedure))
	k.NoteRefused(caller("bob"), procedure, no(rpc.Invalid, "vm/web1"))
	for i := range 100 { // whoever has no certificate is one caller, whatever its address
		k.NoteRefused(Caller{Address: strings.Repeat("9", i)}, procedure, no(rpc.Denied, procedure))
	}
	events := k.Refused()
	count := map[string]int{}
	for _, e := range events {
		who, _, _ := strings.Cut(e.Caller, "/9")
		count[strings.TrimSuffix(who, "/")]++
		if e.Kind != "call.refused" || !strings.HasPrefix(e.Message, "AddVM was refused: not permitted: a host path") || !e.At.Equal(now) {
			t.Errorf("%+v", e)
		}
	}
	if count["operator/alice"] != refusedBurst || count["operator/bob"] != 1 || count["anonymous"] != refusedBurst {
		t.Errorf("%v", count)
	}
	if events[0].Subject != "vm/web1" || events[0].CallerID != "id-alice" || events[refusedBurst].Subject != "identity/operator/bob" {
		t.Errorf("%+v", events)
	}
	if again := k.Refused(); len(again) != 0 {
		t.Errorf("they are told twice: %v", again)
	}
	now = now.Add(refusedEvery)
	k.NoteRefused(caller("alice"), procedure, no(rpc.Denied, "vm/web1"))
	if events := k.Refused(); len(events) != 1 || !strings.HasSuffix(events[0].Message, "(and 95 more of this caller before)") {
		t.Errorf("%+v", events)
	}
	for i := range 2 * refusedInAll {
		k.NoteRefused(caller(strings.Repeat("c", i+1)), procedure, no(rpc.Denied, "vm/web1"))
	}
	if events := k.Refused(); len(events) != refusedInAll {
		t.Errorf("%d wait, want %d", len(events), refusedInAll)
	}
	k.NoteRefused(caller("alice"), procedure, connect.NewError(connect.CodeInternal, errors.New("a defect")))
	if events := k.Refused(); len(events) != 0 {
		t.Errorf("%+v", events)
	}
}
