package follow

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// OperationState is the phase while it runs, and how it ended afterwards.
func OperationState(op *berthv1.Operation) string {
	if op.GetCancelled() {
		return "cancelled"
	}
	if Ended(op) {
		return term.Enum(op.GetResult(), "OPERATION_RESULT_")
	}
	return cmp.Or(op.GetPhase(), "running")
}

// WriteOperation writes all that is known of an operation.
func WriteOperation(a *term.App, p *term.Page, op *berthv1.Operation, _ bool) {
	p.Line("operation %s", op.GetId())
	rows := [][2]string{
		{"what", strings.TrimSpace(op.GetKind() + " vm/" + op.GetVm())},
		{"state", OperationState(op)},
		{"message", op.GetMessage()},
		{"waits for", op.GetWaits()},
		{"source", op.GetSource()},
		{"target", op.GetTarget()},
		{"by", op.GetCaller()},
		{"begun", fmt.Sprintf("%s (%s ago)", a.At(op.GetCreatedAt()), a.Since(op.GetCreatedAt()))},
		{"took", term.Differs(Took(op), term.None)},
		{"attempt", strconv.Itoa(int(op.GetAttempt()))},
		{"epoch", strconv.FormatUint(op.GetEpoch(), 10)},
		{"decision", op.GetDecisionId()},
		{"resolved", resolution(op)},
		{"next step", parkedStep(op)},
	}
	if op.GetMigration() != nil {
		rows = append(rows, [2]string{"migration", MigrationPhrase(op.GetMigration())})
	}
	if expected := op.GetPredicted(); expected != nil {
		rows = append(rows, [2]string{"expected", PredictionPhrase(expected)})
	}
	p.Fields("  ", rows...)
	viewTable(p, op)
	if len(op.GetEvidence()) > 0 {
		p.Line("  evidence, oldest first")
		for _, line := range op.GetEvidence() {
			p.Line("    %s", line)
		}
	}
}

// resolution says what an operator has decided.
func resolution(op *berthv1.Operation) string {
	if op.GetResolution() == "" {
		return ""
	}
	return fmt.Sprintf("keep %s, by %s", op.GetResolution(), op.GetResolvedBy())
}

// parkedStep is what a parked operation needs.
func parkedStep(op *berthv1.Operation) string {
	switch {
	case op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_PARKED:
		return ""
	case op.GetEndedAt() != nil:
		return "none: it was at work when the backup was made that the cluster was restored from, and locks nothing"
	default:
		return fmt.Sprintf("decide which copy is the VM: 'berth operation resolve %s --keep source|target|none'", op.GetId())
	}
}

// viewTable shows what the nodes have of the VM now.
func viewTable(p *term.Page, op *berthv1.Operation) {
	if len(op.GetViews()) == 0 {
		return
	}
	p.Line("  what the nodes show now")
	rows := make([][]string, 0, len(op.GetViews()))
	for _, view := range op.GetViews() {
		side := term.None
		switch view.GetNode() {
		case op.GetSource():
			side = "source"
		case op.GetTarget():
			side = "target"
		}
		state := strings.ReplaceAll(term.Enum(view.GetState(), "DOMAIN_STATE_"), "_", "-")
		rows = append(rows, []string{
			"    " + view.GetNode(), side, term.Enum(view.GetNodeState(), "NODE_STATE_"), state, cmp.Or(view.GetStateReason(), term.None),
			strconv.FormatUint(view.GetEpoch(), 10), yesOrNo(view.GetJobActive()), yesOrNo(view.GetHolder()), term.Span(
				term.Seconds(view.GetAgeSeconds()),
			),
		})
	}
	p.Table([]string{"    NODE", "SIDE", "NODE STATE", "VM", "REASON", "EPOCH", "JOB", "HOLDER", "HEARD"}, rows)
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// Took is how long an operation took.
func Took(op *berthv1.Operation) string {
	if op.GetCreatedAt() == nil || op.GetEndedAt() == nil {
		return term.None
	}
	return term.Span(op.GetEndedAt().AsTime().Sub(op.GetCreatedAt().AsTime()))
}

// PredictionPhrase says what a migration was expected to take.
func PredictionPhrase(expected *berthv1.MigrationPrediction) string {
	span := func(seconds float64) string { return term.Span(term.Seconds(seconds)) }
	text := fmt.Sprintf("%v sent in %s", units.Bytes(expected.GetDataProcessedBytes()), span(expected.GetElapsedSeconds()))
	if expected.GetMostSeconds() > 0 {
		text += fmt.Sprintf(" (%s to %s)", span(expected.GetLeastSeconds()), span(expected.GetMostSeconds()))
	}
	if expected.GetDowntimeSeconds() > 0 {
		text += ", downtime " + span(expected.GetDowntimeSeconds())
	}
	if len(expected.GetBy()) == 0 { // of an older coordinator
		return text + fmt.Sprintf(", as by %s before", term.Count(int(expected.GetOf()), "migration"))
	}
	return text + ", by " + strings.Join(expected.GetBy(), ", ")
}

// MigrationPhrase sums a finished migration up.
func MigrationPhrase(stats *berthv1.MigrationStats) string {
	if stats == nil {
		return "no figures were kept"
	}
	parts := []string{units.Bytes(stats.GetDataProcessedBytes()).String() + " sent"}
	if disks := stats.GetDiskProcessedBytes(); disks > 0 {
		parts[0] += fmt.Sprintf(", %v of it from disks", units.Bytes(disks))
	}
	if stats.GetMemoryBps() > 0 {
		parts = append(parts, fmt.Sprintf("%v/s", units.Bytes(stats.GetMemoryBps())))
	}
	if stats.DowntimeSeconds != nil {
		parts = append(parts, "downtime "+term.Span(term.Seconds(stats.GetDowntimeSeconds())))
	}
	if stats.HandoverSeconds != nil {
		parts = append(parts, "hand-over "+term.Span(term.Seconds(stats.GetHandoverSeconds())))
	}
	return strings.Join(parts, ", ")
}
