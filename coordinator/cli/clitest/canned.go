package clitest

import (
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Gib is a gibibyte.
const Gib = int64(1) << 30

// Ago is a time before noon, which commands believe it is.
func Ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(-d)) }

// Refuses makes a coordinator that refuses to show VMs.
func Refuses(code connect.Code, detail *berthv1.ErrorDetail, text string) *Fake {
	f := Steady()
	f.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		return nil, rpc.Errorf(code, detail, "%s", text)
	}
	return f
}

// Steady is a coordinator of a cluster in which little happens and everything works.
func Steady() *Fake {
	return &Fake{
		nodeFake: cannedNodeAnswers(), vmFake: cannedVMAnswers(), operationFake: cannedOperationAnswers(),
		decisionFake: cannedDecisionAnswers(), estateFake: cannedEstateAnswers(), groupFake: cannedGroupAnswers(),
		planFake: cannedPlanAnswers(), storageFake: cannedStorageAnswers(), memberFake: cannedMemberAnswers(),
		webhookFake: cannedWebhookAnswers(),
	}
}
