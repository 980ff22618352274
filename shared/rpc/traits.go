package rpc

import (
	"cmp"
	"slices"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// DefaultMessageBytes bounds one message of a caller where the method names no bound.
const DefaultMessageBytes = 1 << 20

// Traits are how calls of one method are treated. The zero value belongs to methods that do not exist or say nothing: nobody may
// call them, and they count as writes that are not repeated.
type Traits struct{ said *berthv1.Traits }

// TraitsOf gives the traits of a procedure, by its path: /berth.v1.BerthService/GetVM.
func TraitsOf(procedure string) Traits { return Traits{traits()[procedure]} }

// traits reads the descriptors of all services, once.
var traits = sync.OnceValue(func() map[string]*berthv1.Traits {
	all := make(map[string]*berthv1.Traits)
	RangeMethods(func(procedure string, method protoreflect.MethodDescriptor) {
		all[procedure], _ = proto.GetExtension(method.Options(), berthv1.E_Traits).(*berthv1.Traits)
	})
	return all
})

// RangeMethods calls do for each method of the protocol.
func RangeMethods(do func(procedure string, method protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage(berthv1.File_berth_v1_traits_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				do("/"+string(service.FullName())+"/"+string(method.Name()), method)
			}
		}
		return true
	})
}

// roles gives each role of a certificate its name in the protocol. The empty role is that of a caller without a certificate.
var roles = map[pki.Role]berthv1.Role{
	"":               berthv1.Role_ROLE_ANONYMOUS,
	pki.RoleOperator: berthv1.Role_ROLE_OPERATOR,
	pki.RolePeer:     berthv1.Role_ROLE_PEER,
	pki.RoleAgent:    berthv1.Role_ROLE_AGENT,
}

// MayCall tells whether a caller with this role may call the method.
func (t Traits) MayCall(role pki.Role) bool {
	known, is := roles[role]
	return is && slices.Contains(t.said.GetRoles(), known)
}

// Class is which limit on calls at a time a call counts against.
func (t Traits) Class() berthv1.Class {
	return cmp.Or(t.said.GetClass(), berthv1.Class_CLASS_WRITE)
}

// Relief tells whether a call goes before others because it takes load or danger away.
func (t Traits) Relief() bool { return t.said.GetRelief() }

// Repeatable tells whether a request may be sent again when it is not known whether it was carried out.
func (t Traits) Repeatable() bool {
	return t.said.GetRepeatable() || t.said.GetClass() == berthv1.Class_CLASS_READ
}

// AnyMember tells whether every coordinator answers a call itself, where other calls are forwarded to the leader.
func (t Traits) AnyMember() bool { return t.said.GetAnyMember() }

// MaxMessage bounds one message of the caller, in bytes.
func (t Traits) MaxMessage() int {
	return cmp.Or(int(t.said.GetMaxMessageBytes()), DefaultMessageBytes)
}

// HandlerOptions are the options that every handler has. Those that differ between methods follow from their traits. Answers from
// compressFrom bytes on are compressed, unless the method carries what is not worth it.
func HandlerOptions(compressFrom int) connect.HandlerOption {
	return connect.WithHandlerOptions(withJSON(), connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
		of := TraitsOf(spec.Procedure)
		bound := connect.WithReadMaxBytes(of.MaxMessage())
		if of.said.GetIncompressible() {
			return []connect.HandlerOption{bound, connect.WithCompression("gzip", nil, nil)}
		}
		return []connect.HandlerOption{bound, compression(of.MaxMessage()), connect.WithCompressMinBytes(compressFrom)}
	}))
}
