package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestFenceDevices(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	ctx := t.Context()
	m.addNode("n1", "hv1")
	set := func(device *berthv1.FenceDevice) (*berthv1.Node, error) {
		answer, err := client.SetNode(ctx, connect.NewRequest(&berthv1.SetNodeRequest{Node: "hv1", Fence: device}))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetNode(), nil
	}
	stored := func() model.FenceDevice {
		node, _ := m.store.Snapshot().Node("n1")
		return node.Fence
	}
	ipmi := func(password string) *berthv1.FenceDevice {
		return &berthv1.FenceDevice{
			Method: "command", Program: "fence_ipmilan", TimeoutSeconds: 30, Arguments: map[string]string{"ip": "10.0.0.9", "password": password},
		}
	}
	node, err := set(ipmi("swordfish"))
	if err != nil || node.GetFence().GetArguments()["password"] != model.Masked || node.GetFence().GetArguments()["ip"] != "10.0.0.9" {
		t.Fatalf("shown %v, %v", node.GetFence(), err)
	}
	if stored().Arguments["password"] != "swordfish" {
		t.Errorf("stored %v", stored())
	}
	for _, event := range m.store.Snapshot().EventsAfter(0) {
		if strings.Contains(event.Message, "swordfish") {
			t.Errorf("the history tells the secret: %s", event.Message)
		}
	}
	patient := ipmi(model.Masked)
	patient.TimeoutSeconds = 60
	if _, err := set(patient); err != nil || stored().Arguments["password"] != "swordfish" || stored().Timeout != time.Minute {
		t.Errorf("given back as it was shown: %v, %v", stored(), err)
	}
	// Whoever is at another address would be told the secret.
	other := ipmi(model.Masked)
	other.Arguments["ip"] = "10.0.0.10"
	_, err = set(other)
	wantRefusal(t, err, rpc.Invalid, "node/hv1")
	if stored().Arguments["ip"] != "10.0.0.9" {
		t.Errorf("after a refusal: %v", stored())
	}
	other.Arguments["password"] = "herring"
	if _, err := set(other); err != nil || stored().Arguments["password"] != "herring" || stored().Arguments["ip"] != "10.0.0.10" {
		t.Errorf("with its own secret: %v, %v", stored(), err)
	}
	for name, device := range map[string]*berthv1.FenceDevice{
		"a program by its path": {Method: "command", Program: "/bin/sh"},
		"no method":             {Method: "prayer"},
		"a second line":         {Method: "command", Program: "fence_x", Arguments: map[string]string{"plug": "1\naction=on"}},
		"a mask of nothing":     {Method: "command", Program: "fence_x", Arguments: map[string]string{"passwd": model.Masked}},
		"a timeout of nothing":  {Method: "command", Program: "fence_x", TimeoutSeconds: -1},
	} {
		_, err := set(device)
		t.Log(name)
		wantRefusal(t, err, rpc.Invalid, "node/hv1")
	}
	// What proves that one machine is off must not be taken for proof of another: swapped or copied addresses are refused.
	m.addNode("n2", "hv2")
	second := func(device *berthv1.FenceDevice) error {
		_, err := client.SetNode(ctx, connect.NewRequest(&berthv1.SetNodeRequest{Node: "hv2", Fence: device}))
		return err
	}
	same := ipmi("another")
	same.Arguments["ip"], same.Arguments["username"], same.Arguments["power_timeout"], same.TimeoutSeconds = "10.0.0.10", "bo", "9", 0
	wantRefusal(t, second(same), rpc.Conflict, "node/hv2")
	same.Arguments["ip"] = "10.0.0.11"
	if err := second(same); err != nil {
		t.Errorf("a device of its own: %v", err)
	}
	strip := func(plug string) *berthv1.FenceDevice {
		return &berthv1.FenceDevice{Method: "command", Program: "fence_apc", Arguments: map[string]string{"ip": "10.0.0.50", "plug": plug}}
	}
	if _, err := set(strip("1")); err != nil {
		t.Error(err)
	}
	wantRefusal(t, second(strip("1")), rpc.Conflict, "node/hv2")
	also := ipmi("another")
	also.Arguments["ip"], also.Also = "10.0.0.12", []*berthv1.FenceDevice{strip("1")}
	wantRefusal(t, second(also), rpc.Conflict, "node/hv2")
	if err := second(strip("2")); err != nil {
		t.Errorf("another plug of the same strip: %v", err)
	}
	if node, err = set(&berthv1.FenceDevice{}); err != nil || node.GetFence() != nil {
		t.Errorf("taken away: %v, %v", node.GetFence(), err)
	}
}

func TestFencingANode(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	ctx := t.Context()
	m.addNode("n1", "hv1")
	var asked fencing.FenceNode
	m.control.fence = func(request fencing.FenceNode) (model.Node, error) {
		asked = request
		return model.Node{}, nil
	}
	m.control.power = func(string) ([]bool, error) {
		return nil, &lead.Error{Code: lead.Unavailable, Subject: "node/hv1", Message: "no route", NextStep: "look"}
	}
	fence := func(request *berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error) {
		request.Node = "hv1"
		answer, err := client.FenceNode(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	if _, err := fence(
		&berthv1.FenceNodeRequest{ConfirmedOff: true},
	); err != nil || !asked.ConfirmedOff || asked.Node != "n1" || asked.Caller != "operator/alice" {
		t.Errorf("asked %+v, %v", asked, err)
	}
	_, err := fence(&berthv1.FenceNodeRequest{Check: true})
	wantRefusal(t, err, rpc.Unavailable, "node/hv1")
	m.control.power = func(string) ([]bool, error) { return []bool{true}, nil }
	if answer, err := fence(&berthv1.FenceNodeRequest{Check: true}); err != nil || answer.GetPower() != "on" || len(answer.GetDevices()) > 0 {
		t.Errorf("power %q, %v", answer.GetPower(), err)
	}
	plug := func(number string) *berthv1.FenceDevice {
		return &berthv1.FenceDevice{Method: "command", Program: "fence_apc", Arguments: map[string]string{"ip": "10.0.0.50", "plug": number}}
	}
	both := plug("1")
	both.Also = []*berthv1.FenceDevice{plug("2")}
	set, err := client.SetNode(ctx, connect.NewRequest(&berthv1.SetNodeRequest{Node: "hv1", Fence: both}))
	if err != nil || len(set.Msg.GetNode().GetFence().GetAlso()) != 1 {
		t.Fatalf("two power supplies: %v, %v", set, err)
	}
	m.control.power = func(string) ([]bool, error) { return []bool{false, true}, nil }
	answer, err := fence(&berthv1.FenceNodeRequest{Check: true})
	if want := []string{"fence_apc ip=10.0.0.50 plug=1: off", "fence_apc ip=10.0.0.50 plug=2: on"}; err != nil ||
		answer.GetPower() != "on" || !slices.Equal(answer.GetDevices(), want) {
		t.Errorf("one power supply of two is on: %v, %v", answer, err)
	}
	_, err = fence(&berthv1.FenceNodeRequest{Check: true, Force: true})
	wantRefusal(t, err, rpc.Invalid, "node/hv1")
}

func TestWhatHoldsAFencingBackIsAProblem(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	m.addNode("n3", "hv3")
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n3", Epoch: 1, HA: true})
	m.control.held = map[string]evidence.FenceVerdict{"n1": {
		Act: evidence.FenceHeld, Why: "nothing can prove that it is off", Next: "say so by hand",
	}}
	m.control.contradicted = map[string]string{"n2": "it answers"}
	for _, id := range []string{"n2", "n3"} {
		node, _ := m.store.Snapshot().Node(id)
		node.Fencing = model.Fencing{Phase: model.FencingProven, Method: model.FenceManual, Message: "seen to be off"}
		m.propose(state.Command{
			Kind: "test", Expect: []state.Expectation{{Table: state.Nodes, ID: id, Revision: node.Revision}}, Nodes: []model.Node{node},
		})
	}
	status, err := m.operator().Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(status.Msg.GetProblems(), "\n")
	for _, want := range []string{
		"VMs that are to be highly available wait until node hv1 is proven to be off: nothing can prove that it is off; say so by hand",
		"node hv2 was proven to be off, and it answers; it gets nothing to do",
		"node hv3 is fenced: seen to be off; it counts again when it has booted anew",
		"VM web is lost: node hv3 is proven to be off: seen to be off",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems do not say %q:\n%s", want, problems)
		}
	}
	one, err := m.operator().GetNode(t.Context(), connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv3"}))
	if err != nil || one.Msg.GetNode().GetState() != berthv1.NodeState_NODE_STATE_FENCED ||
		one.Msg.GetNode().GetStateReason() != "seen to be off" {
		t.Errorf("shown %v, %v", one.Msg.GetNode(), err)
	}
}

// Where fence agents may read what the coordinator reads, the status says so, as soon as there is one.
func TestTheStatusTellsOfFenceAgentsThatReadTheAuthoritysKey(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	told := func() bool {
		t.Helper()
		answer, err := m.operator().Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(answer.Msg.GetProblems(), func(line string) bool {
			return strings.HasPrefix(line, "coordinator c1 runs fence agents as its own account") && strings.Contains(line, "--fence-socket")
		})
	}
	for _, own := range []bool{false, true} {
		m.api.OwnFences = own
		for _, method := range []string{"manual", "command"} {
			device := &berthv1.FenceDevice{Method: method}
			if method == "command" {
				device.Program, device.Arguments = "fence_ipmilan", map[string]string{"ip": "10.0.0.9"}
			}
			if _, err := m.operator().SetNode(t.Context(), connect.NewRequest(&berthv1.SetNodeRequest{Node: "hv1", Fence: device})); err != nil {
				t.Fatal(err)
			}
			if is := told(); is != (own && method == "command") {
				t.Errorf("with fence %s, as its own account %t: told %t", method, own, is)
			}
		}
	}
}
