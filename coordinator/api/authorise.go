package api

import (
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// strangersTime is how long a caller without a certificate may take to send its message.
const strangersTime = 10 * time.Second

// anyone is the role of a caller without a certificate.
const anyone pki.Role = ""

var (
	people   = []pki.Role{pki.RoleOperator, pki.RolePeer}
	peers    = []pki.Role{pki.RolePeer}
	agents   = []pki.Role{pki.RoleAgent}
	everyone = []pki.Role{anyone, pki.RoleOperator, pki.RolePeer, pki.RoleAgent}
)

// access says who may call what. A procedure that is not here is refused to everybody.
var access = map[string][]pki.Role{
	berthv1connect.BerthServiceStatusProcedure:             people,
	berthv1connect.BerthServiceListNodesProcedure:          people,
	berthv1connect.BerthServiceGetNodeProcedure:            people,
	berthv1connect.BerthServiceSetNodeProcedure:            people,
	berthv1connect.BerthServiceSetNodeMaintenanceProcedure: people,
	berthv1connect.BerthServiceRemoveNodeProcedure:         people,
	berthv1connect.BerthServiceFenceNodeProcedure:          people,
	berthv1connect.BerthServiceAdoptVMsProcedure:           people,
	berthv1connect.BerthServiceReleaseVMProcedure:          people,
	berthv1connect.BerthServiceResolveOperationProcedure:   people,
	berthv1connect.BerthServiceListResourcesProcedure:      people,
	berthv1connect.BerthServiceGetResourceProcedure:        people,
	berthv1connect.BerthServiceAddResourceProcedure:        people,
	berthv1connect.BerthServiceChangeResourceProcedure:     people,
	berthv1connect.BerthServiceDeleteResourceProcedure:     people,
	berthv1connect.BerthServiceSetKeyProcedure:             people,
	berthv1connect.BerthServiceUnsetKeyProcedure:           people,
	berthv1connect.BerthServiceListKeysProcedure:           people,
	berthv1connect.BerthServiceCompiledKeysProcedure:       people,
	berthv1connect.BerthServiceDeclareNodeKeyProcedure:     people,
	berthv1connect.BerthServiceDropNodeKeyProcedure:        people,
	berthv1connect.BerthServiceApplyEstateProcedure:        people,
	berthv1connect.BerthServiceExportEstateProcedure:       people,
	berthv1connect.BerthServiceAddVMProcedure:              people,
	berthv1connect.BerthServiceChangeVMProcedure:           people,
	berthv1connect.BerthServiceReplayDecisionProcedure:     people,
	berthv1connect.BerthServiceWhyVMProcedure:              people,
	berthv1connect.BerthServiceWhyNotProcedure:             people,
	berthv1connect.BerthServiceCapacityProcedure:           people,
	berthv1connect.BerthServiceImportImageProcedure:        people,
	berthv1connect.BerthServiceGrowDiskProcedure:           people,
	berthv1connect.BerthServiceListPoolsProcedure:          people,
	berthv1connect.BerthServiceSpreadProcedure:             people,
	berthv1connect.BerthServiceConsoleProcedure:            people,
	berthv1connect.BerthServiceListVMsProcedure:            people,
	berthv1connect.BerthServiceGetVMProcedure:              people,
	berthv1connect.BerthServiceStartVMProcedure:            people,
	berthv1connect.BerthServiceStopVMProcedure:             people,
	berthv1connect.BerthServiceMigrateVMProcedure:          people,
	berthv1connect.BerthServiceDeleteVMProcedure:           people,
	berthv1connect.BerthServiceStartVMsProcedure:           people,
	berthv1connect.BerthServiceListGroupsProcedure:         people,
	berthv1connect.BerthServiceGetGroupProcedure:           people,
	berthv1connect.BerthServiceCreateGroupProcedure:        people,
	berthv1connect.BerthServiceChangeGroupProcedure:        people,
	berthv1connect.BerthServiceDeleteGroupProcedure:        people,
	berthv1connect.BerthServiceCheckGroupsProcedure:        people,
	berthv1connect.BerthServiceDrainNodeProcedure:          people,
	berthv1connect.BerthServiceUndrainNodeProcedure:        people,
	berthv1connect.BerthServiceListPlansProcedure:          people,
	berthv1connect.BerthServiceGetPlanProcedure:            people,
	berthv1connect.BerthServiceProposePlanProcedure:        people,
	berthv1connect.BerthServiceApplyPlanProcedure:          people,
	berthv1connect.BerthServiceDiscardPlanProcedure:        people,
	berthv1connect.BerthServiceCancelPlanProcedure:         people,
	berthv1connect.BerthServiceWatchPlanProcedure:          people,
	berthv1connect.BerthServiceListOperationsProcedure:     people,
	berthv1connect.BerthServiceGetOperationProcedure:       people,
	berthv1connect.BerthServiceWatchOperationProcedure:     people,
	berthv1connect.BerthServiceCancelOperationProcedure:    people,
	berthv1connect.BerthServiceListDecisionsProcedure:      people,
	berthv1connect.BerthServiceGetDecisionProcedure:        people,
	berthv1connect.BerthServiceWatchEventsProcedure:        people,
	berthv1connect.BerthServiceListMembersProcedure:        people,
	berthv1connect.BerthServiceRemoveMemberProcedure:       people,
	berthv1connect.BerthServiceSaveSnapshotProcedure:       people,
	berthv1connect.BerthServiceRestoreSnapshotProcedure:    people,
	berthv1connect.BerthServiceCreateTokenProcedure:        people,

	berthv1connect.EnrolmentServiceEnrolProcedure: everyone, // the token is the proof

	berthv1connect.MemberServiceJoinProcedure:   peers,
	berthv1connect.MemberServiceReportProcedure: peers,

	berthv1connect.AgentServiceSessionProcedure: agents,
	berthv1connect.AgentServiceTunnelProcedure:  agents,
}

// Authorise lets through only calls that the caller's role may make. It looks before any message is read. Both the API
// and the agents' listener stand behind it. The records tell which coordinators are still members.
func Authorise(records *state.Store, next http.Handler) http.Handler {
	return identified(records, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := callerOf(r.Context())
		if !slices.Contains(access[r.URL.Path], caller.Role) {
			refuse(w, r, denied(caller, r.URL.Path))
			return
		}
		if caller.Role == anyone {
			// A stranger has not long to say what it wants. Where this cannot be set, the message is still bounded.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangersTime))
		}
		next.ServeHTTP(w, r)
	}))
}

func denied(caller caller, procedure string) *connect.Error {
	if caller.Role == anyone {
		return rpc.Errorf(connect.CodeUnauthenticated, &berthv1.ErrorDetail{
			Code:     rpc.Denied,
			Subject:  procedure,
			NextStep: "use a client certificate of this cluster: copy the client configuration that 'berth coordinator init' wrote",
		}, "this needs a client certificate, and none was given")
	}
	return rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{
		Code:     rpc.Denied,
		Subject:  procedure,
		NextStep: "use a certificate of another role",
	}, "%s may not call %s", caller.Identity, procedure)
}
