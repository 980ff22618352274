package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/members"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestOperations(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	ctx := t.Context()
	at := time.Now().UTC()
	moving := operation.Operation{
		ID: "o1", Kind: operation.Migrate, VM: "v1", VMName: "web", SourceName: "hv1", TargetName: "hv2",
		Phase: operation.Copying, CreatedAt: at, UpdatedAt: at,
	}
	m.begin(moving)

	t.Run("are watched to their end", func(t *testing.T) {
		stream, err := client.WatchOperation(ctx, connect.NewRequest(&berthv1.WatchOperationRequest{Id: "o1"}))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		next := func() *berthv1.WatchOperationResponse {
			t.Helper()
			if !stream.Receive() {
				t.Fatalf("the stream ended: %v", stream.Err())
			}
			return stream.Msg()
		}
		if got := next(); got.GetOperation().GetPhase() != "copying" || got.GetOperation().GetTarget() != "hv2" || got.Progress != nil {
			t.Errorf("at first %v", got)
		}
		m.report("n1", "o1", &berthv1.MigrationStats{DataProcessedBytes: 42})
		if got := next(); got.GetProgress().GetDataProcessedBytes() != 42 {
			t.Errorf("then %v", got)
		}
		moving.Phase, moving.Result = operation.Ended, operation.Done
		m.update(moving)
		if got := next(); got.GetOperation().GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
			t.Errorf("at last %v", got)
		}
		if stream.Receive() || stream.Err() != nil {
			t.Errorf("after the end: %v, %v", stream.Msg(), stream.Err())
		}
	})

	t.Run("that are parked end the watch", func(t *testing.T) {
		m.begin(operation.Operation{
			ID: "o2", Kind: operation.Migrate, VM: "v2", VMName: "db", Phase: operation.Judging, Result: operation.Parked,
			CreatedAt: at.Add(time.Second),
		})
		stream, err := client.WatchOperation(ctx, connect.NewRequest(&berthv1.WatchOperationRequest{Id: "o2"}))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		if !stream.Receive() || stream.Msg().GetOperation().GetResult() != berthv1.OperationResult_OPERATION_RESULT_PARKED || stream.Receive() {
			t.Errorf("got %v, %v", stream.Msg(), stream.Err())
		}
	})

	t.Run("are listed, newest first", func(t *testing.T) {
		list := func(request *berthv1.ListOperationsRequest) string {
			answer, err := client.ListOperations(ctx, connect.NewRequest(request))
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, op := range answer.Msg.GetOperations() {
				ids = append(ids, op.GetId())
			}
			return strings.Join(ids, " ")
		}
		if got := list(&berthv1.ListOperationsRequest{}); got != "o2 o1" {
			t.Errorf("all: %s", got)
		}
		if got := list(&berthv1.ListOperationsRequest{RunningOnly: true}); got != "o2" {
			t.Errorf("running: %s", got)
		}
		if got := list(&berthv1.ListOperationsRequest{Limit: 1}); got != "o2" {
			t.Errorf("one: %s", got)
		}
		_, err := client.ListOperations(ctx, connect.NewRequest(&berthv1.ListOperationsRequest{Limit: -1}))
		wantRefusal(t, err, rpc.Invalid, "")
	})

	t.Run("that do not exist", func(t *testing.T) {
		_, err := client.GetOperation(ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: "o9"}))
		wantRefusal(t, err, rpc.NotFound, "operation/o9")
		stream, err := client.WatchOperation(ctx, connect.NewRequest(&berthv1.WatchOperationRequest{Id: "o9"}))
		if err == nil {
			defer stream.Close()
			stream.Receive()
			err = stream.Err()
		}
		wantRefusal(t, err, rpc.NotFound, "operation/o9")
	})

	t.Run("are cancelled by control", func(t *testing.T) {
		answer, err := client.CancelOperation(ctx, connect.NewRequest(&berthv1.CancelOperationRequest{Id: "o2"}))
		if err != nil || answer.Msg.GetOperation().GetId() != "o2" || m.control.cancelled != "o2 by operator/alice" {
			t.Errorf("%v, %v; control was asked %q", answer, err, m.control.cancelled)
		}
	})
}

// report is what a node's agent says about a migration that it runs.
func (m *coordinator) report(node, operation string, stats *berthv1.MigrationStats) {
	m.cloud.t.Helper()
	session, err := m.inventory.OpenSession(node, &berthv1.Hello{Incarnation: "boot"}, 1)
	m.cloud.check(err)
	if !session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Progress{
		Progress: &berthv1.CommandProgress{OperationId: operation, Step: 1, Stats: stats},
	}}) {
		m.cloud.t.Fatal("the report was not taken")
	}
}

func TestEvents(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	m.addNode("n1", "hv1")
	maintain := func(on bool) {
		_, err := client.SetNodeMaintenance(t.Context(), connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv1", On: on}))
		m.cloud.check(err)
	}
	maintain(true)
	maintain(false)

	read := func(stream *connect.ServerStreamForClient[berthv1.WatchEventsResponse]) string {
		t.Helper()
		if !stream.Receive() {
			t.Fatalf("the stream ended: %v", stream.Err())
		}
		return stream.Msg().GetEvent().GetKind()
	}
	past, err := client.WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{Backlog: 2}))
	m.cloud.check(err)
	defer past.Close()
	if a, b := read(past), read(past); a != "node.maintenance" || b != "node.maintenance-ended" {
		t.Errorf("the last two are %s, %s", a, b)
	}
	if past.Receive() || past.Err() != nil {
		t.Errorf("without follow: %v, %v", past.Msg(), past.Err())
	}

	follow, err := client.WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{Follow: true, Backlog: 1}))
	m.cloud.check(err)
	defer follow.Close()
	if kind := read(follow); kind != "node.maintenance-ended" {
		t.Errorf("the last one is %s", kind)
	}
	maintain(true)
	if kind := read(follow); kind != "node.maintenance" || follow.Msg().GetEvent().GetIndex() == 0 {
		t.Errorf("followed by %v", follow.Msg())
	}
	session, err := m.inventory.OpenSession("n1", &berthv1.Hello{Incarnation: "boot"}, 1)
	m.cloud.check(err)
	if kind := read(follow); kind != "node.up" || follow.Msg().GetEvent().GetSubject() != "node/hv1" ||
		follow.Msg().GetEvent().GetIndex() != 0 {
		t.Errorf("followed by %v", follow.Msg())
	}
	session.Close("the agent went away")
	if kind := read(follow); kind != "node.suspect" || !strings.Contains(follow.Msg().GetEvent().GetMessage(), "the agent went away") {
		t.Errorf("followed by %v", follow.Msg())
	}

	m.api.Stop()
	if follow.Receive() {
		t.Errorf("after the stop %v", follow.Msg())
	}
	wantRefusal(t, follow.Err(), rpc.Unavailable, "")
}

func TestSnapshots(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	m.addNode("n1", "hv1")
	backup := save(t, m)
	m.addNode("n2", "hv2")
	_, err := client.SetNodeMaintenance(t.Context(), connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv1", On: true}))
	m.cloud.check(err)

	restored, err := restore(t, m, backup, 7)
	if err != nil {
		t.Fatal(err)
	}
	if restored.GetNodes() != 2 || restored.GetIndex() == 0 {
		t.Errorf("restored %v", restored)
	}
	if node, _ := m.store.Snapshot().NodeByName("hv1"); node.Maintenance {
		t.Error("the state was not replaced")
	}
	if _, still := m.store.Snapshot().NodeByName("hv2"); !still {
		t.Error("a node that came since is gone")
	}
	status, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil || len(status.Msg.GetProblems()) == 0 || !strings.HasPrefix(status.Msg.GetProblems()[0], "quarantine: ") ||
		!strings.Contains(status.Msg.GetProblems()[0], "hv1, hv2") {
		t.Errorf("the status after a restore: %v, %v", status, err)
	}
	_, err = client.RemoveNode(t.Context(), connect.NewRequest(&berthv1.RemoveNodeRequest{Node: "hv2"}))
	wantRefusal(t, err, rpc.Conflict, "node/hv2")

	index := m.store.Snapshot().Index()
	for name, broken := range map[string][]byte{
		"cut":     backup[:len(backup)-3],
		"flipped": append(append([]byte{}, backup[:40]...), append([]byte{backup[40] ^ 1}, backup[41:]...)...),
		"nothing": nil,
		"text":    []byte("this is no snapshot"),
	} {
		for _, unproved := range []bool{false, true} {
			_, err := restoreAs(t, m, broken, members.ChunkSize, unproved)
			wantRefusal(t, err, rpc.Invalid, "snapshot")
		}
		if m.store.Snapshot().Index() != index {
			t.Errorf("%s: the state changed", name)
		}
	}
}

func save(t *testing.T, m *coordinator) []byte {
	t.Helper()
	stream, err := m.operator().SaveSnapshot(t.Context(), connect.NewRequest(&berthv1.SaveSnapshotRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var data bytes.Buffer
	for stream.Receive() {
		data.Write(stream.Msg().GetChunk())
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	return data.Bytes()
}

// A tampered backup: whatever byte of it is another, wherever it ends, nothing of it is restored. Nor is one without its seal, unless the
// operator says so.
func TestATamperedBackupIsRefused(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	backup := save(t, m)
	index := m.store.Snapshot().Index()
	for at := 0; at < len(backup); at += max(1, len(backup)/40) {
		changed := bytes.Clone(backup)
		changed[at] ^= 0x20
		for what, data := range map[string][]byte{"changed": changed, "cut": backup[:at]} {
			_, err := restore(t, m, data, members.ChunkSize)
			wantRefusal(t, err, rpc.Invalid, "snapshot")
			if m.store.Snapshot().Index() != index {
				t.Fatalf("byte %d %s: the state is another", at, what)
			}
		}
	}
	_, err := restore(t, m, append(bytes.Clone(backup), backup...), members.ChunkSize)
	wantRefusal(t, err, rpc.Invalid, "snapshot")

	var plain bytes.Buffer
	if err := m.store.Snapshot().Save(&plain); err != nil {
		t.Fatal(err)
	}
	_, err = restore(t, m, plain.Bytes(), members.ChunkSize)
	wantRefusal(t, err, rpc.Invalid, "snapshot")
	if step := rpc.Detail(err).GetNextStep(); !strings.Contains(step, "--unproved") {
		t.Errorf("the next step is %q", step)
	}
	if m.store.Snapshot().Index() != index {
		t.Fatal("the state is another")
	}
	if _, err := restoreAs(t, m, plain.Bytes(), members.ChunkSize, true); err != nil {
		t.Errorf("a backup of an earlier release: %v", err)
	}
}

func restore(t *testing.T, m *coordinator, data []byte, chunk int) (*berthv1.RestoreSnapshotResponse, error) {
	t.Helper()
	return restoreAs(t, m, data, chunk, false)
}

func restoreAs(t *testing.T, m *coordinator, data []byte, chunk int, unproved bool) (*berthv1.RestoreSnapshotResponse, error) {
	t.Helper()
	stream := m.operator().RestoreSnapshot(t.Context())
	for len(data) > 0 {
		size := min(len(data), chunk)
		err := stream.Send(&berthv1.RestoreSnapshotRequest{Chunk: data[:size], Unproved: unproved})
		if errors.Is(err, io.EOF) {
			break // the answer says why
		}
		if err != nil {
			t.Fatal(err)
		}
		data = data[size:]
	}
	answer, err := stream.CloseAndReceive()
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

func TestDecisions(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	m.propose(state.Command{Kind: "test", Decisions: decisions("d-one", "web", "d-two", "db", "d-three", "web")})
	list := func(request *berthv1.ListDecisionsRequest) string {
		answer, err := client.ListDecisions(context.Background(), connect.NewRequest(request))
		m.cloud.check(err)
		var ids []string
		for _, d := range answer.Msg.GetDecisions() {
			ids = append(ids, d.GetId())
			if len(d.GetNodes()) > 0 {
				t.Errorf("decision %s is listed with its nodes", d.GetId())
			}
		}
		return strings.Join(ids, " ")
	}
	if got := list(&berthv1.ListDecisionsRequest{}); got != "d-three d-two d-one" {
		t.Errorf("all: %s", got)
	}
	if got := list(&berthv1.ListDecisionsRequest{Vm: "web", Limit: 2}); got != "d-three d-one" {
		t.Errorf("of web: %s", got)
	}
	if got := list(&berthv1.ListDecisionsRequest{Limit: 1}); got != "d-three" {
		t.Errorf("the last: %s", got)
	}
	for ref, want := range map[string]string{"last": "d-three", "d-two": "d-two", "d-o": "d-one"} {
		answer, err := client.GetDecision(t.Context(), connect.NewRequest(&berthv1.GetDecisionRequest{Id: ref}))
		if err != nil || answer.Msg.GetDecision().GetId() != want || len(answer.Msg.GetDecision().GetNodes()) != 1 {
			t.Errorf("%s: %v, %v", ref, answer, err)
		}
	}
	for _, ref := range []string{"d-t", "x", ""} {
		_, err := client.GetDecision(t.Context(), connect.NewRequest(&berthv1.GetDecisionRequest{Id: ref}))
		wantRefusal(t, err, rpc.NotFound, "decision/"+ref)
	}
}
