package console

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// moveView is an operation that runs.
type moveView struct {
	*berthv1.Operation

	Progress string // of a live migration, in words
	Share    string // of the data that has been sent, of 100; empty: not known
}

// movesPage is what the page of moves shows.
type movesPage struct {
	Moves  []moveView
	Others []moveView
	Drains []*berthv1.Plan
	Parked []*berthv1.Operation
	More   bool
}

// showMoves shows what is under way: live migrations, other operations, and plans that move VMs.
func showMoves(v *visit) (*page, error) {
	running, err := v.API.ListOperations(v.ctx, connect.NewRequest(&berthv1.ListOperationsRequest{RunningOnly: true}))
	if err != nil {
		return nil, err
	}
	plans, err := v.API.ListPlans(v.ctx, connect.NewRequest(&berthv1.ListPlansRequest{LiveOnly: true}))
	if err != nil {
		return nil, err
	}
	shown := movesPage{More: running.Msg.GetNextPageToken() != ""}
	for _, op := range running.Msg.GetOperations() {
		one := moveView{Operation: op}
		one.Progress, one.Share = progress(op.GetProgress())
		switch {
		case op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_PARKED:
			shown.Parked = append(shown.Parked, op)
		case op.GetKind() == "migrate":
			shown.Moves = append(shown.Moves, one)
		default:
			shown.Others = append(shown.Others, one)
		}
	}
	shown.Drains = slices.DeleteFunc(plans.Msg.GetPlans(), func(p *berthv1.Plan) bool { return p.GetState() != "running" })
	return &page{
		name: "moves", Title: "Moves", Here: "moves", Refresh: 5, Body: shown,
		Command: "berth operation list --running; berth plan list --live",
	}, nil
}

// progress tells what a node has last said of a migration.
func progress(stats *berthv1.MigrationStats) (text, share string) {
	if stats == nil {
		return "its node has told nothing yet", ""
	}
	total, left := stats.GetDataTotalBytes(), stats.GetDataRemainingBytes()
	text = fmt.Sprintf("%s of %s left", size(left), size(total))
	if rate := stats.GetMemoryBps(); rate > 0 {
		text += fmt.Sprintf(", at %s a second", size(rate))
		if left > 0 {
			text += ", about " + lasting(time.Duration(float64(left)/float64(rate)*float64(time.Second))) + " to go"
		}
	} else {
		text += ", rate " + unknown
	}
	if n := stats.GetIteration(); n > 0 {
		text += fmt.Sprintf(", pass %d", n)
	}
	if total > 0 {
		share = fmt.Sprintf("%.0f", 100*float64(max(0, total-left))/float64(total))
	}
	return text, share
}

// operationPage is what the page of one operation shows.
type operationPage struct {
	Op       moveView
	Live     bool
	Progress bool
}

func showOperation(v *visit) (*page, error) {
	answer, err := v.API.GetOperation(v.ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: v.path("id")}))
	if err != nil {
		return nil, err
	}
	op := answer.Msg.GetOperation()
	shown := operationPage{Op: moveView{Operation: op}, Live: op.GetEndedAt() == nil}
	refresh := 0
	if shown.Live {
		refresh = 5
		if shown.Progress = op.GetKind() == "migrate"; shown.Progress {
			shown.Op.Progress, shown.Op.Share = progress(op.GetProgress())
		}
	}
	return &page{
		name: "operation", Title: "Operation " + op.GetId(), Here: "moves", Refresh: refresh, Body: shown,
		Command: "berth operation show " + quoted(op.GetId()),
	}, nil
}

func cancelOperation(v *visit) (string, error) {
	_, err := v.API.CancelOperation(v.ctx, connect.NewRequest(&berthv1.CancelOperationRequest{Id: v.path("id"), RequestId: v.requestID()}))
	return "/operations/" + url.PathEscape(v.path("id")), err
}
