package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/unanswered"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func TestNodes(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	ctx := t.Context()
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1})
	set := func(request *berthv1.SetNodeRequest) (*berthv1.Node, error) {
		answer, err := client.SetNode(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetNode(), nil
	}

	t.Run("are listed and shown", func(t *testing.T) {
		list, err := client.ListNodes(ctx, connect.NewRequest(&berthv1.ListNodesRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		nodes := list.Msg.GetNodes()
		if len(nodes) != 2 || nodes[0].GetName() != "hv1" || nodes[1].GetName() != "hv2" {
			t.Fatalf("listed %v", nodes)
		}
		one, err := client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "n1"}))
		if err != nil {
			t.Fatal(err)
		}
		if got := one.Msg.GetNode(); got.GetName() != "hv1" || strings.Join(got.GetVms(), " ") != "web" {
			t.Errorf("shown %v", got)
		}
		if got := one.Msg.GetNode(); got.Ledgers != nil || got.TelemetryAgeSeconds != nil || got.Inventory != nil {
			t.Errorf("a node that never reported shows figures: %v", got)
		}
		_, err = client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv9"}))
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
	})

	t.Run("have agents of an older release", func(t *testing.T) {
		session, err := m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "b/1", Version: "0.6"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close("it was a test")
		status, err := client.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil || !slices.ContainsFunc(status.Msg.GetProblems(), func(line string) bool {
			return strings.HasPrefix(line, "1 node has an agent of an older release (hv1), which are not given all orders: ")
		}) {
			t.Errorf("status says %q, %v", status.Msg.GetProblems(), err)
		}
		one, err := client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "n1"}))
		if err != nil || one.Msg.GetNode().GetAgentRelease() != "0.6" || len(one.Msg.GetNode().GetAgentLacks()) == 0 {
			t.Errorf("shown %v, %v", one, err)
		}
	})

	t.Run("are held while two machines say they are one", func(t *testing.T) {
		_, err := set(&berthv1.SetNodeRequest{Node: "hv2", Machine: "aaaa"})
		wantRefusal(t, err, rpc.Invalid, "node/hv2")
		node, _ := m.store.Snapshot().Node("n2")
		revision := node.Revision
		node.Hardware, node.HardwareSource, node.Boot = "aaaa", model.HardwareProduct, "b1"
		node.Twin = model.Twin{Machine: model.Machine{Hardware: "bbbb", Source: model.HardwareProduct, Boot: "b9"}, Why: "two machines say so"}
		m.propose(state.Command{
			Kind: "notice nodes", Expect: []state.Expectation{{Table: state.Nodes, ID: "n2", Revision: revision}}, Nodes: []model.Node{node},
		})
		const want = "node hv2 is held: two machines say so; nothing is placed there, and nothing it says counts as absence: switch the wrong " +
			"machine off, or take its agent's certificate away; then 'berth node set hv2 --machine aaaa' (or bbbb) says which one the node is"
		status, err := client.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil || !slices.Contains(status.Msg.GetProblems(), want) {
			t.Errorf("status says %q, %v", status.Msg.GetProblems(), err)
		}
		_, err = set(&berthv1.SetNodeRequest{Node: "hv2", Machine: "cccc"})
		wantRefusal(t, err, rpc.Invalid, "node/hv2")
		decided, err := set(&berthv1.SetNodeRequest{Node: "hv2", Machine: "bbbb"})
		if err != nil || decided.GetHardware() != "bbbb" || decided.GetHeld() != "" {
			t.Errorf("%v, %v", decided, err)
		}
	})

	t.Run("are set and reset", func(t *testing.T) {
		node, err := set(&berthv1.SetNodeRequest{Node: "hv1", Settings: &berthv1.NodeSettings{
			RamRatio: new(1.5), OverheadBytes: new(int64(2 * units.GiB)),
		}})
		if err != nil {
			t.Fatal(err)
		}
		if own := node.GetOwnSettings(); own.GetRamRatio() != 1.5 || own.CpuRatio != nil || own.GetOverheadBytes() != int64(2*units.GiB) {
			t.Errorf("own settings %v", own)
		}
		if got := node.GetSettings(); got.GetRamRatio() != 1.5 || got.GetCpuRatio() != model.DefaultCPURatio {
			t.Errorf("settings in force %v", got)
		}
		node, err = set(&berthv1.SetNodeRequest{Node: "hv1", Reset_: []string{"ram_ratio"}})
		if err != nil {
			t.Fatal(err)
		}
		if own := node.GetOwnSettings(); own.RamRatio != nil || own.GetOverheadBytes() != int64(2*units.GiB) {
			t.Errorf("after a reset, own settings %v", own)
		}
	})

	for name, request := range map[string]*berthv1.SetNodeRequest{
		"a ratio that is a percentage": {Node: "hv1", Settings: &berthv1.NodeSettings{RamRatio: new(150.0)}},
		"a negative overhead":          {Node: "hv1", Settings: &berthv1.NodeSettings{OverheadBytes: new(int64(-1))}},
		"nothing":                      {Node: "hv1"},
		"an unknown setting":           {Node: "hv1", Reset_: []string{"disk_ratio"}},
		"set and reset":                {Node: "hv1", Settings: &berthv1.NodeSettings{CpuRatio: new(2.0)}, Reset_: []string{"cpu_ratio"}},
	} {
		t.Run("are not set to "+name, func(t *testing.T) {
			before := m.store.Snapshot().Index()
			_, err := set(request)
			wantRefusal(t, err, rpc.Invalid, "node/hv1")
			if m.store.Snapshot().Index() != before {
				t.Error("something was written")
			}
		})
	}

	t.Run("go into maintenance and out of it", func(t *testing.T) {
		maintain := func(on bool, reason string) *berthv1.Node {
			answer, err := client.SetNodeMaintenance(ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{
				Node: "hv2", On: on, Reason: reason,
			}))
			if err != nil {
				t.Fatal(err)
			}
			return answer.Msg.GetNode()
		}
		if node := maintain(true, "new disks"); !node.GetMaintenance() || node.GetMaintenanceReason() != "new disks" {
			t.Errorf("in maintenance: %v", node)
		}
		index := m.store.Snapshot().Index()
		maintain(true, "new disks")
		if m.store.Snapshot().Index() != index {
			t.Error("the same maintenance again was written again")
		}
		if node := maintain(false, ""); node.GetMaintenance() || node.GetMaintenanceReason() != "" {
			t.Errorf("out of maintenance: %v", node)
		}
		marked, _ := m.store.Snapshot().Node("n2")
		marked.Unanswered = unanswered.Mark{Operation: "o9", VM: "web", Since: time.Now(), Times: 3}
		m.propose(state.Command{
			Key: "mark", Kind: "mark node", Nodes: []model.Node{marked},
			Expect: []state.Expectation{{Table: state.Nodes, ID: "n2", Revision: marked.Revision}},
		})
		answer, err := client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv2"}))
		if err != nil || !strings.Contains(answer.Msg.GetNode().GetUnanswered(), "'berth node maintenance hv2 off'") {
			t.Errorf("a node that answers no starts: %q, %v", answer.Msg.GetNode().GetUnanswered(), err)
		}
		if node := maintain(false, ""); node.GetUnanswered() != "" {
			t.Errorf("it is let off, and still: %q", node.GetUnanswered())
		}
		if left, _ := m.store.Snapshot().Node("n2"); left.Unanswered != (unanswered.Mark{}) {
			t.Errorf("what is left of the mark: %+v", left.Unanswered)
		}
		_, err = client.SetNodeMaintenance(ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{
			Node: "hv2", On: true, Reason: strings.Repeat("x", maxReason+1),
		}))
		wantRefusal(t, err, rpc.Invalid, "node/hv2")
	})

	t.Run("are removed when nothing needs them", func(t *testing.T) {
		remove := func(node, request string) error {
			_, err := client.RemoveNode(ctx, connect.NewRequest(&berthv1.RemoveNodeRequest{Node: node, RequestId: request}))
			return err
		}
		wantRefusal(t, remove("hv1", "r1"), rpc.Conflict, "node/hv1")
		m.begin(operation.Operation{ID: "o1", Kind: operation.Start, VM: "v2", VMName: "db", Target: "n2", Phase: operation.Dispatched})
		wantRefusal(t, remove("hv2", "r2"), rpc.Busy, "node/hv2")
		op, _ := m.store.Snapshot().Operation("o1")
		op.Phase, op.Result = operation.Ended, operation.Failed
		m.update(op)
		if err := remove("hv2", "r3"); err != nil {
			t.Fatal(err)
		}
		if len(m.gone) != 1 || m.gone[0] != "n2" {
			t.Errorf("sessions ended: %v", m.gone)
		}
		if err := remove("hv2", "r3"); err != nil {
			t.Errorf("the same request again: %v", err)
		}
		wantRefusal(t, remove("hv2", "r4"), rpc.NotFound, "node/hv2")
	})

	t.Run("leave a history with names", func(t *testing.T) {
		var told []string
		for _, event := range m.store.Snapshot().Events(0) {
			told = append(told, event.Kind+" "+event.Subject+" by "+event.Caller)
		}
		all := strings.Join(told, "\n")
		for _, want := range []string{
			"node.set node/hv1 by operator/alice", "node.maintenance node/hv2 by operator/alice", "node.removed node/hv2 by operator/alice",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("the history lacks %q:\n%s", want, all)
			}
		}
	})
}
