package rpc

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

func TestEveryMethodHasItsTraits(t *testing.T) {
	methods := 0
	RangeMethods(func(procedure string, method protoreflect.MethodDescriptor) {
		methods++
		if !proto.HasExtension(method.Options(), berthv1.E_Traits) {
			t.Errorf("%s has no traits, so nobody may call it", procedure)
			return
		}
		of := TraitsOf(procedure)
		if len(of.said.GetRoles()) == 0 || of.said.GetClass() == berthv1.Class_CLASS_UNSPECIFIED {
			t.Errorf("%s has no roles or no class: %v", procedure, of.said)
		}
		streams := method.IsStreamingClient() || method.IsStreamingServer()
		if streams != (of.Class() == berthv1.Class_CLASS_STREAM) {
			t.Errorf("%s: streams %v, %s", procedure, streams, of.Class())
		}
		if of.Class() == berthv1.Class_CLASS_READ && method.Input().Fields().ByName("request_id") != nil {
			t.Errorf("%s reads, and its request has an ID under which a write is found again", procedure)
		}
	})
	if methods < 70 {
		t.Errorf("%d methods were looked at", methods)
	}
}

// A write may be sent twice because its request ID tells that it is the same one. What has none and may be sent twice all the
// same is written down here, with the reason.
func TestWritesAreRepeatedOnlyWithARequestID(t *testing.T) {
	harmless := map[string]string{
		"/berth.v1.BerthService/CreateToken":      "a token whose answer was lost expires by itself",
		"/berth.v1.MemberService/Join":            "a member that is there already is added once",
		"/berth.v1.MemberService/Report":          "the newer report replaces the older one",
		"/berth.v1.MemberService/TakeAuthorities": "what is trusted is written down once",
	}
	RangeMethods(func(procedure string, method protoreflect.MethodDescriptor) {
		of := TraitsOf(procedure)
		if of.Class() != berthv1.Class_CLASS_WRITE {
			return
		}
		named := method.Input().Fields().ByName("request_id") != nil
		if of.Repeatable() != (named || harmless[procedure] != "") {
			t.Errorf("%s: repeatable %v, and its request has an ID: %v", procedure, of.Repeatable(), named)
		}
	})
}

// What does not exist, or says nothing, is refused to everybody and counts as the dearest kind of call.
func TestAMethodWithoutTraitsIsRefused(t *testing.T) {
	for _, procedure := range []string{
		"", "/", "/berth.v1.BerthService/Unheard", "/berth.v1.BerthService/Status/", "/berth.v1.BerthService/status",
	} {
		of := TraitsOf(procedure)
		for _, role := range []pki.Role{"", pki.RoleOperator, pki.RolePeer, pki.RoleAgent, "made up"} {
			if of.MayCall(role) {
				t.Errorf("role %q may call %q", role, procedure)
			}
		}
		if of.Class() != berthv1.Class_CLASS_WRITE || of.Relief() || of.Repeatable() || of.AnyMember() || of.MaxMessage() != DefaultMessageBytes {
			t.Errorf("%q is treated as %s, relief %v, repeatable %v, by any member %v, up to %d bytes",
				procedure, of.Class(), of.Relief(), of.Repeatable(), of.AnyMember(), of.MaxMessage())
		}
	}
	RangeMethods(func(procedure string, _ protoreflect.MethodDescriptor) {
		if TraitsOf(procedure).MayCall("made up") {
			t.Errorf("an unknown role may call %s", procedure)
		}
	})
}
