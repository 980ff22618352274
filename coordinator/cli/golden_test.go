package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// steady is a coordinator of a cluster in which little happens and everything works.
func steady() *fake {
	operation := func(kind string) *berthv1.Operation { return cannedOperation(kind, running) }
	return &fake{
		estateFake: cannedEstate(),
		planFake:   cannedPlans(),

		storageFake: cannedStorage(),
		status:      func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error) { return cannedStatus(), nil },
		listNodes: func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
			return &berthv1.ListNodesResponse{SchemaVersion: "1", Nodes: cannedNodes()}, nil
		},
		getNode: func(r *berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
			for _, node := range cannedNodes() {
				if node.GetName() == r.GetNode() {
					return &berthv1.GetNodeResponse{SchemaVersion: "1", Node: node, Domains: cannedDomains()}, nil
				}
			}
			return nil, rpc.Errorf(connect.CodeNotFound, &berthv1.ErrorDetail{
				Code: rpc.NotFound, Subject: "node/" + r.GetNode(), NextStep: "see 'berth node list'",
			}, "there is no node %q", r.GetNode())
		},
		fenceNode: func(r *berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error) {
			node := cannedNodes()[2]
			if r.GetCheck() {
				return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: node, Power: "on"}, nil
			}
			node.State = berthv1.NodeState_NODE_STATE_FENCED
			node.Fencing = &berthv1.Fencing{
				Phase: "proven", Method: "manual", Attempt: 1, Caller: "operator/admin", AskedAt: ago(time.Second), EndedAt: ago(time.Second),
				Message: "operator/admin has seen that it is off",
			}
			return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: node}, nil
		},
		setNode: func(*berthv1.SetNodeRequest) (*berthv1.SetNodeResponse, error) {
			return &berthv1.SetNodeResponse{SchemaVersion: "1", Node: cannedNodes()[0]}, nil
		},
		maintenance: func(*berthv1.SetNodeMaintenanceRequest) (*berthv1.SetNodeMaintenanceResponse, error) {
			return &berthv1.SetNodeMaintenanceResponse{SchemaVersion: "1", Node: cannedNodes()[0]}, nil
		},
		removeNode: func(*berthv1.RemoveNodeRequest) (*berthv1.RemoveNodeResponse, error) {
			return &berthv1.RemoveNodeResponse{SchemaVersion: "1"}, nil
		},
		listVMs: func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
			return &berthv1.ListVMsResponse{SchemaVersion: "1", Vms: cannedVMs()}, nil
		},
		getVM: func(r *berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
			if r.GetVm() == "db1" {
				return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedVMs()[0]}, nil
			}
			op := cannedOperation("migrate", done)
			op.Migration = cannedMigration()
			return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: cannedVMs()[1], Operation: op}, nil
		},
		startVM: func(r *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
			decision := cannedDecision()
			if r.GetDryRun() {
				decision.DryRun, decision.OperationId = true, ""
				return &berthv1.StartVMResponse{SchemaVersion: "1", Decision: decision}, nil
			}
			return &berthv1.StartVMResponse{SchemaVersion: "1", Operation: operation("start"), Decision: decision, Vm: cannedVMs()[1]}, nil
		},
		stopVM: func(*berthv1.StopVMRequest) (*berthv1.StopVMResponse, error) {
			return &berthv1.StopVMResponse{SchemaVersion: "1", Operation: operation("stop")}, nil
		},
		migrateVM: func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error) {
			decision := cannedDecision()
			decision.Purpose = "migrate"
			return &berthv1.MigrateVMResponse{SchemaVersion: "1", Operation: operation("migrate"), Decision: decision}, nil
		},
		deleteVM: func(*berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error) {
			return &berthv1.DeleteVMResponse{SchemaVersion: "1"}, nil
		},
		listOps: func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error) {
			stuck := cannedOperation("stop", parked)
			stuck.Message = "node2 shows the guest running, its agent said stopped"
			return &berthv1.ListOperationsResponse{SchemaVersion: "1", Operations: []*berthv1.Operation{operation("migrate"), cannedOperation("start", done), stuck}}, nil
		},
		resolveOp: func(r *berthv1.ResolveOperationRequest) (*berthv1.ResolveOperationResponse, error) {
			op := operation("migrate")
			op.Resolution, op.ResolvedBy = r.GetKeep(), "operator/admin"
			return &berthv1.ResolveOperationResponse{SchemaVersion: "1", Operation: op}, nil
		},
		adoptVMs: func(r *berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error) { return cannedAdoption(r), nil },
		releaseVM: func(*berthv1.ReleaseVMRequest) (*berthv1.ReleaseVMResponse, error) {
			op := operation("release")
			op.Source, op.Target = "node2", ""
			return &berthv1.ReleaseVMResponse{SchemaVersion: "1", Operation: op}, nil
		},
		getOp: func(r *berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error) {
			switch r.GetId() {
			case "parked":
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: cannedParked()}, nil
			case "restored":
				op := cannedParked()
				op.EndedAt, op.Views = ago(time.Second), nil
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			case "resolved":
				op := cannedOperation("migrate", done)
				op.Resolution, op.ResolvedBy = "target", "operator/ann"
				return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
			}
			return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: operation("migrate")}, nil
		},
		cancelOp: func(*berthv1.CancelOperationRequest) (*berthv1.CancelOperationResponse, error) {
			return &berthv1.CancelOperationResponse{SchemaVersion: "1", Operation: operation("migrate")}, nil
		},
		decisions: func(*berthv1.ListDecisionsRequest) (*berthv1.ListDecisionsResponse, error) {
			return &berthv1.ListDecisionsResponse{SchemaVersion: "1", Decisions: []*berthv1.Decision{cannedRefusal(), cannedDecision()}}, nil
		},
		getDecision: func(r *berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
			decision := cannedDecision()
			switch r.GetId() {
			case "big":
				decision = cannedRefusal()
			case "bands":
				decision = cannedBandRefusal()
			case "old":
				decision = cannedOldDecision()
			case "many":
				decision = manyNodes(14, 40)
			case "ranked":
				decision = cannedRanked()
			}
			return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: decision}, nil
		},
		events: func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
			for _, event := range cannedEvents() {
				if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
					return err
				}
			}
			return nil
		},
		members: func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error) {
			return &berthv1.ListMembersResponse{SchemaVersion: "1", ClusterId: "3nqk7d2m0c1aa", Members: cannedMembers()}, nil
		},
		remove: func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error) {
			return &berthv1.RemoveMemberResponse{SchemaVersion: "1"}, nil
		},
		token: func(*berthv1.CreateTokenRequest) (*berthv1.CreateTokenResponse, error) {
			return &berthv1.CreateTokenResponse{
				SchemaVersion: "1", Token: "berth1.agent.secret.fingerprint", ExpiresAt: timestamppb.New(noon.Add(time.Hour)),
				Command: "berth-agent join coord1:7420 berth1.agent.secret.fingerprint",
			}, nil
		},
		watchOp: endsWell,
	}
}

// endsWell sends the operation's end as the stream's first message: by the time of the watch it is over.
func endsWell(_ context.Context, r *berthv1.WatchOperationRequest, send func(*berthv1.WatchOperationResponse) error) error {
	kind := r.GetId()
	if kind == "3nqk7d2m0x1ab" {
		kind = "start"
	}
	return send(&berthv1.WatchOperationResponse{Operation: cannedOperation(kind, done)})
}

// What people read: standard output, then what went to the standard error.
func TestGoldenOutput(t *testing.T) {
	w, _ := newWorld(t, steady())
	for name, args := range map[string][]string{
		"status":                   {"status"},
		"status-json":              {"status", "-o", "json"},
		"node-list":                {"node", "list"},
		"node-list-wide":           {"node", "list", "-o", "wide"},
		"node-list-bare":           {"node", "list", "--no-headers"},
		"node-list-name":           {"node", "list", "-o", "name"},
		"node-show":                {"node", "show", "node1"},
		"node-show-wide":           {"node", "show", "node1", "-o", "wide"},
		"node-show-partial":        {"node", "show", "node2"},
		"node-show-silent":         {"node", "show", "node3"},
		"node-set":                 {"node", "set", "node1", "--ram-ratio", "1.5"},
		"node-set-fence":           {"node", "set", "node1", "--fence", "command", "--fence-program", "fence_ipmilan", "--fence-arg", "ip=10.0.0.9", "--fence-arg", "password=***"},
		"node-fence":               {"node", "fence", "node3", "--confirmed-off", "--yes"},
		"node-fence-check":         {"node", "fence", "node3", "--check"},
		"node-maintenance":         {"node", "maintenance", "node1", "on", "--reason", "new memory"},
		"node-remove":              {"node", "remove", "node1"},
		"vm-list":                  {"vm", "list"},
		"vm-list-wide":             {"vm", "list", "-o", "wide"},
		"vm-list-yaml":             {"vm", "list", "-o", "yaml"},
		"vm-show":                  {"vm", "show", "web1"},
		"disk-show-volume":         {"disk", "show", "db-1-root"},
		"disk-list":                {"disk", "list"},
		"image-list":               {"image", "list"},
		"image-show":               {"image", "show", "debian"},
		"zone-show":                {"zone", "show", "fra"},
		"zone-list":                {"zone", "list"},
		"vm-show-json":             {"vm", "show", "web1", "-o", "json"},
		"vm-start":                 {"vm", "start", "web1", "--memory", "512M"},
		"vm-start-name":            {"vm", "start", "web1", "-o", "name", "-q"},
		"vm-start-no-wait":         {"vm", "start", "web1", "--no-wait"},
		"vm-start-dry-run":         {"vm", "start", "web1", "--memory", "512M", "--dry-run"},
		"vm-delete":                {"vm", "delete", "web1", "--yes"},
		"operation-list":           {"operation", "list"},
		"operation-list-wide":      {"operation", "list", "-o", "wide"},
		"operation-show":           {"operation", "show", "3nqk7d2m0x1ab"},
		"operation-cancel":         {"operation", "cancel", "3nqk7d2m0x1ab"},
		"operation-show-parked":    {"operation", "show", "parked"},
		"operation-show-restored":  {"operation", "show", "restored"},
		"operation-show-resolved":  {"operation", "show", "resolved"},
		"operation-resolve":        {"operation", "resolve", "migrate", "--keep", "target", "--no-wait"},
		"vm-adopt":                 {"vm", "adopt", "db", "web"},
		"vm-adopt-dry-run":         {"vm", "adopt", "--all", "--dry-run"},
		"vm-release":               {"vm", "release", "web1", "--no-wait"},
		"decision-list":            {"decision", "list"},
		"decision-list-wide":       {"decision", "list", "-o", "wide"},
		"decision-show":            {"decision", "show", "last"},
		"decision-show-wide":       {"decision", "show", "last", "-o", "wide"},
		"decision-show-json":       {"decision", "show", "last", "-o", "json"},
		"decision-show-full":       {"decision", "show", "last", "--full"},
		"decision-show-full-wide":  {"decision", "show", "last", "--full", "-o", "wide"},
		"decision-show-old":        {"decision", "show", "old", "--full"},
		"decision-show-many":       {"decision", "show", "many"},
		"decision-show-bands":      {"decision", "show", "bands"},
		"decision-show-bands-full": {"decision", "show", "bands", "--full"},
		"decision-show-ranks":      {"decision", "show", "ranked", "--ranks"},
		"decision-show-no-ranks":   {"decision", "show", "last", "--ranks"},
		"vm-show-moves":            {"vm", "show", "db1"},
		"vm-start-many-dry-run":    {"vm", "start", "web1", "db1", "--dry-run"},
		"vm-start-many-no-wait":    {"vm", "start", "web1", "db1", "--no-wait"},
		"vm-start-many":            {"vm", "start", "web1", "db1"},
		"node-set-labels":          {"node", "set", "node1", "--label", "rack-7", "--management", "--reset", "unbalanced"},
		"vm-why-full":              {"vm", "why", "web1", "--full"},
		"decision-refusal":         {"decision", "show", "big"},
		"decision-replay":          {"decision", "replay", "last"},
		"cluster-list":             {"cluster", "list"},
		"cluster-list-wide":        {"cluster", "list", "-o", "wide"},
		"cluster-list-name":        {"cluster", "list", "-o", "name"},
		"cluster-list-yaml":        {"cluster", "list", "-o", "yaml"},
		"cluster-show":             {"cluster", "show", "prod"},
		"cluster-show-wide":        {"cluster", "show", "prod", "-o", "wide"},
		"cluster-show-default":     {"cluster", "show", "default"},
		"cluster-set":              {"cluster", "set", "prod", "--ram-ratio", "1.5", "--unset", "cpu-ratio"},
		"cluster-node-key-declare": {"cluster", "node-key", "declare", "prod", "DS", "--default=-1", "--sticky", "--weight", "30"},
		"cluster-node-key-drop":    {"cluster", "node-key", "drop", "prod", "DS", "--yes"},
		"policy-list":              {"policy", "list"},
		"policy-list-wide":         {"policy", "list", "-o", "wide"},
		"policy-show":              {"policy", "show", "mine"},
		"policy-show-built-in":     {"policy", "show", "vm-evenly-distributed", "-o", "wide"},
		"policy-show-drawn":        {"policy", "show", "drawn"},
		"policy-create":            {"policy", "create", "spread", "--balancer", "even-vm-count", "--weigher", "customer-keys=2", "--parameter", "HighVMCount=8"},
		"policy-edit":              {"policy", "edit", "mine", "--add-weigher", "system-keys=3"},
		"policy-copy":              {"policy", "copy", "vm-evenly-distributed", "own"},
		"policy-delete":            {"policy", "delete", "mine", "--yes"},
		"customer-list":            {"customer", "list"},
		"customer-show":            {"customer", "show", "acme"},
		"vdc-list":                 {"vdc", "list"},
		"vdc-show":                 {"vdc", "show", "acme-test"},
		"vdc-add":                  {"vdc", "add", "acme-dev", "--customer", "acme", "--cluster", "prod"},
		"offer-list":               {"offer", "list"},
		"disk-add":                 {"disk", "add", "d1", "--path", "/srv/d1.raw", "--format", "raw", "-o", "json"},
		"disk-show":                {"disk", "show", "web-1-root"},
		"customer-delete":          {"customer", "delete", "acme", "--yes"},
		"key-set":                  {"key", "set", "vm/web1", "Group1=1", "--weight", "-100", "--class", "customer"},
		"key-set-normal":           {"key", "set", "cluster/default", "#RAM=0"},
		"key-set-undeclared":       {"key", "set", "vm/web1", "Prem=1", "--weight", "5"},
		"key-unset":                {"key", "unset", "vm/web1", "Group1"},
		"key-list-vm":              {"key", "list", "vm/web1"},
		"key-list-node":            {"key", "list", "node/node1"},
		"key-list-cluster":         {"key", "list", "cluster/prod"},
		"key-list-none":            {"key", "list", "vdc/acme-test"},
		"key-compiled":             {"key", "compiled", "vm/web1"},
		"key-compiled-json":        {"key", "compiled", "web1", "-o", "json"},
		"vm-add":                   {"vm", "add", "web9", "--memory", "1G", "--vdc", "acme-prod"},
		"vm-add-dry-run":           {"vm", "add", "web9", "--memory", "1G", "--dry-run"},
		"vm-set":                   {"vm", "set", "web1", "--memory", "4G", "--vdc", "acme-prod", "--unset", "nic"},
		"vm-why":                   {"vm", "why", "web1"},
		"vm-why-not":               {"vm", "why-not", "web1", "--node", "node1"},
		"vm-why-not-full":          {"vm", "why-not", "web1", "--node", "node1", "--full", "-o", "wide"},
		"vm-start-dry-run-full":    {"vm", "start", "web1", "--memory", "512M", "--dry-run", "--full"},
		"node-set-keys":            {"node", "set", "node1", "--key", "Premium=1", "--unset-key", "DS", "--cluster", "default"},
		"capacity":                 {"capacity", "--memory", "4G", "--vcpus", "2"},
		"capacity-wide":            {"capacity", "--memory", "4G", "--vdc", "acme-prod", "-o", "wide"},
		"export":                   {"export"},
		"coordinator-list":         {"coordinator", "list"},
		"coordinator-remove":       {"coordinator", "remove", "coord3", "--yes"},
		"token-create":             {"token", "create", "--for", "agent"},
		"events":                   {"events"},
		"events-wide":              {"events", "-o", "wide"},
		"events-json":              {"events", "-o", "json"},
		"events-yaml":              {"events", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			said := w.run(args...)
			if said.exit != Done {
				t.Errorf("exit %d", said.exit)
			}
			golden(t, name+".golden", said.out+errSection(said.errOut))
		})
	}
}

func errSection(errOut string) string {
	if errOut == "" {
		return ""
	}
	return "--- standard error\n" + errOut
}

// An empty list says so where people read, and is nothing where programs do.
func TestEmptyLists(t *testing.T) {
	f := steady()
	f.listNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		return &berthv1.ListNodesResponse{SchemaVersion: "1"}, nil
	}
	f.listVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{SchemaVersion: "1"}, nil
	}
	w, _ := newWorld(t, f)
	for _, noun := range []string{"node", "vm"} {
		if said := w.run(noun, "list"); said.out != "" || !strings.HasPrefix(said.errOut, "no "+noun) && !strings.HasPrefix(said.errOut, "no VMs") {
			t.Errorf("%s: %q, %q", noun, said.out, said.errOut)
		}
		for _, args := range [][]string{{noun, "list", "-q"}, {noun, "list", "-o", "name"}, {noun, "list", "-o", "json"}} {
			if said := w.run(args...); said.errOut != "" || said.exit != Done {
				t.Errorf("%v: %q", args, said.errOut)
			}
		}
	}
}
