package clitest

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// operationFake answers about operations.
type operationFake struct {
	OnListOps func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error)
	OnGetOp   func(*berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error)
	OnWatchOp func(context.Context, *berthv1.WatchOperationRequest, func(*berthv1.WatchOperationResponse) error) error
	cancelOp  func(*berthv1.CancelOperationRequest) (*berthv1.CancelOperationResponse, error)
	resolveOp func(*berthv1.ResolveOperationRequest) (*berthv1.ResolveOperationResponse, error)
}

func (f *operationFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListOperationsProcedure, &f.OnListOps)
	unary(l, berthv1connect.BerthServiceGetOperationProcedure, &f.OnGetOp)
	serverStream(l, berthv1connect.BerthServiceWatchOperationProcedure, &f.OnWatchOp)
	unary(l, berthv1connect.BerthServiceCancelOperationProcedure, &f.cancelOp)
	unary(l, berthv1connect.BerthServiceResolveOperationProcedure, &f.resolveOp)
}

func cannedOperationAnswers() operationFake {
	return operationFake{
		OnListOps: func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error) {
			stuck := CannedOperation("stop", Parked)
			stuck.Message = "node2 shows the guest running, its agent said stopped"
			return &berthv1.ListOperationsResponse{
				SchemaVersion: "1", Operations: []*berthv1.Operation{CannedOperation("migrate", Running), CannedOperation("start", Done), stuck},
			}, nil
		},
		OnGetOp: func(r *berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error) {
			switch r.GetId() {
			case "parked":
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: CannedParked()}, nil
			case "restored":
				op := CannedParked()
				op.EndedAt, op.Views = Ago(time.Second), nil
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			case "silent":
				op := CannedOperation("migrate", Running)
				op.Waits = "node2, which is silent: it goes on once that is heard, or 'berth node fence node2' has proven that it is off " +
					"(--confirmed-off: somebody has seen that)"
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			case "resolved":
				op := CannedOperation("migrate", Done)
				op.Resolution, op.ResolvedBy = "target", "operator/ann"
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			}
			return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: CannedOperation("migrate", Running)}, nil
		},
		OnWatchOp: EndsWell,
		cancelOp: func(*berthv1.CancelOperationRequest) (*berthv1.CancelOperationResponse, error) {
			return &berthv1.CancelOperationResponse{SchemaVersion: "1", Operation: CannedOperation("migrate", Running)}, nil
		},
		resolveOp: func(r *berthv1.ResolveOperationRequest) (*berthv1.ResolveOperationResponse, error) {
			op := CannedOperation("migrate", Running)
			op.Resolution, op.ResolvedBy = r.GetKeep(), "operator/admin"
			return &berthv1.ResolveOperationResponse{SchemaVersion: "1", Operation: op}, nil
		},
	}
}

// CannedOperation is an operation on web1.
func CannedOperation(kind string, result berthv1.OperationResult) *berthv1.Operation {
	op := &berthv1.Operation{
		Id: "3nqk7d2m0x1ab", Kind: kind, Vm: "web1", VmId: "aaaaaaaa-0000-4000-8000-000000000001", Caller: "operator/admin",
		Target: "node2", Phase: "ordered", Result: result, Attempt: 1, Epoch: 3, DecisionId: "3nqk7d2m0d1ab",
		CreatedAt: Ago(10 * time.Second), UpdatedAt: Ago(8 * time.Second),
		Evidence: []string{"begun on decision 3nqk7d2m0d1ab", "node2 answered: done"},
	}
	switch kind {
	case "start":
		op.Doing = "starting on node2"
	case "stop":
		op.Source, op.Target, op.Doing = "node2", "", "stopping on node2"
	case "reboot":
		op.Source, op.Target, op.Doing = "node2", "", "rebooting on node2"
	case "migrate":
		op.Source, op.Doing = "node1", "migrating from node1 to node2"
	case "delete":
		op.Doing = "removing its disks"
	case "adopt":
		op.Doing = "being adopted on node2"
	case "release":
		op.Doing = "being released on node2"
	}
	if result != berthv1.OperationResult_OPERATION_RESULT_RUNNING {
		op.EndedAt = Ago(7900 * time.Millisecond)
		op.Phase = "ended"
	}
	return op
}

// The results of operations, under names short enough for tables of cases.
const (
	Running = berthv1.OperationResult_OPERATION_RESULT_RUNNING
	Done    = berthv1.OperationResult_OPERATION_RESULT_DONE
	Failed  = berthv1.OperationResult_OPERATION_RESULT_FAILED
	Parked  = berthv1.OperationResult_OPERATION_RESULT_PARKED
)

func cannedMigration() *berthv1.MigrationStats {
	return &berthv1.MigrationStats{
		ElapsedSeconds: 1.9, DataTotalBytes: 132 << 20, DataProcessedBytes: 132 << 20, MemoryBps: 70 << 20, Iteration: 3,
		DowntimeSeconds: proto.Float64(0.185), HandoverSeconds: proto.Float64(0.045),
	}
}

// CannedParked is a migration that no rule could decide.
func CannedParked() *berthv1.Operation {
	op := CannedOperation("migrate", Running)
	op.Result, op.Phase, op.Message = Parked, "judging", "both nodes run it"
	op.Evidence = []string{
		"node1 shows domain running, epoch 2, job false", "node2 shows domain running, epoch 3, job false", "verdict: running on both",
	}
	op.Views = []*berthv1.CopyView{
		{
			Node: "node1", NodeId: "n1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, StateReason: "booted", Epoch: 2, Holder: true,
			AgeSeconds: 1.2, NodeState: berthv1.NodeState_NODE_STATE_UP,
		},
		{
			Node: "node2", NodeId: "n2", State: berthv1.DomainState_DOMAIN_STATE_PAUSED, StateReason: "user", Epoch: 3, JobActive: true,
			AgeSeconds: 4, NodeState: berthv1.NodeState_NODE_STATE_UP,
		},
		{
			Node: "node3", NodeId: "n3", State: berthv1.DomainState_DOMAIN_STATE_UNKNOWN, AgeSeconds: 90,
			NodeState: berthv1.NodeState_NODE_STATE_UNREACHABLE,
		},
	}
	return op
}

// Send sends one message of the stream of an operation.
type Send = func(*berthv1.WatchOperationResponse) error

// Migrates sends the given progress and then the end.
func Migrates(progress ...*berthv1.MigrationStats) func(context.Context, *berthv1.WatchOperationRequest, Send) error {
	return func(_ context.Context, _ *berthv1.WatchOperationRequest, send Send) error {
		op := CannedOperation("migrate", Running)
		for _, stats := range progress {
			if err := send(&berthv1.WatchOperationResponse{Operation: op, Progress: stats}); err != nil {
				return err
			}
		}
		op = CannedOperation("migrate", Done)
		op.Migration = cannedMigration()
		return send(&berthv1.WatchOperationResponse{Operation: op})
	}
}

// Never is an operation that does not end.
func Never(ctx context.Context, _ *berthv1.WatchOperationRequest, send Send) error {
	if err := send(&berthv1.WatchOperationResponse{Operation: CannedOperation("start", Running)}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// EndsWell sends the operation's end as the stream's first message: by the time of the watch it is over.
func EndsWell(_ context.Context, r *berthv1.WatchOperationRequest, send func(*berthv1.WatchOperationResponse) error) error {
	kind := r.GetId()
	if kind == "3nqk7d2m0x1ab" {
		kind = "start"
	}
	return send(&berthv1.WatchOperationResponse{Operation: CannedOperation(kind, Done)})
}
