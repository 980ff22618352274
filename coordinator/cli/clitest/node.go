package clitest

import (
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// nodeFake answers about nodes.
type nodeFake struct {
	OnListNodes func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error)
	OnLastNodes func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error)
	OnGetNode   func(*berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error)
	setNode     func(*berthv1.SetNodeRequest) (*berthv1.SetNodeResponse, error)
	maintenance func(*berthv1.SetNodeMaintenanceRequest) (*berthv1.SetNodeMaintenanceResponse, error)
	OnFenceNode func(*berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error)
	removeNode  func(*berthv1.RemoveNodeRequest) (*berthv1.RemoveNodeResponse, error)
	OnDrainNode func(*berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error)
	undrainNode func(*berthv1.UndrainNodeRequest) (*berthv1.UndrainNodeResponse, error)
}

func (f *nodeFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListNodesProcedure, &f.OnListNodes)
	unary(l, berthv1connect.BerthServiceLastKnownNodesProcedure, &f.OnLastNodes)
	unary(l, berthv1connect.BerthServiceGetNodeProcedure, &f.OnGetNode)
	unary(l, berthv1connect.BerthServiceSetNodeProcedure, &f.setNode)
	unary(l, berthv1connect.BerthServiceSetNodeMaintenanceProcedure, &f.maintenance)
	unary(l, berthv1connect.BerthServiceFenceNodeProcedure, &f.OnFenceNode)
	unary(l, berthv1connect.BerthServiceRemoveNodeProcedure, &f.removeNode)
	unary(l, berthv1connect.BerthServiceDrainNodeProcedure, &f.OnDrainNode)
	unary(l, berthv1connect.BerthServiceUndrainNodeProcedure, &f.undrainNode)
}

func cannedNodeAnswers() nodeFake {
	return nodeFake{
		OnListNodes: func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
			return &berthv1.ListNodesResponse{SchemaVersion: "1", Nodes: cannedNodes()}, nil
		},
		OnGetNode: func(r *berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
			for _, node := range cannedNodes() {
				if node.GetName() == r.GetNode() {
					return &berthv1.GetNodeResponse{SchemaVersion: "1", Node: node, Domains: cannedDomains()}, nil
				}
			}
			return nil, rpc.Errorf(connect.CodeNotFound, &berthv1.ErrorDetail{
				Code: rpc.NotFound, Subject: "node/" + r.GetNode(), NextStep: "see 'berth node list'",
			}, "there is no node %q", r.GetNode())
		},
		setNode: func(r *berthv1.SetNodeRequest) (*berthv1.SetNodeResponse, error) {
			node := cannedNodes()[0]
			if len(r.GetFence().GetAlso()) > 0 {
				node.Fence = r.GetFence()
			}
			return &berthv1.SetNodeResponse{SchemaVersion: "1", Node: node}, nil
		},
		maintenance: func(*berthv1.SetNodeMaintenanceRequest) (*berthv1.SetNodeMaintenanceResponse, error) {
			return &berthv1.SetNodeMaintenanceResponse{SchemaVersion: "1", Node: cannedNodes()[0]}, nil
		},
		OnFenceNode: func(r *berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error) {
			node := cannedNodes()[2]
			if r.GetCheck() && r.GetNode() == "node1" {
				node = cannedNodes()[0]
				node.FenceIdentity = "fence_apc ip=10.0.0.50 plug=1: unchecked: fence_apc does not tell which machine it switches; " +
					"fence_apc ip=10.0.0.51 plug=1: unchecked: fence_apc does not tell which machine it switches"
				return &berthv1.FenceNodeResponse{
					SchemaVersion: "1", Node: node, Power: "on",
					Devices: []string{"fence_apc ip=10.0.0.50 plug=1: off", "fence_apc ip=10.0.0.51 plug=1: on"},
				}, nil
			}
			if r.GetCheck() {
				return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: node, Power: "on"}, nil
			}
			node.State = berthv1.NodeState_NODE_STATE_FENCED
			node.Fencing = &berthv1.Fencing{
				Phase: "proven", Method: "manual", Attempt: 1, Caller: "operator/admin", AskedAt: Ago(time.Second), EndedAt: Ago(time.Second),
				Message: "operator/admin has seen that it is off",
			}
			return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: node}, nil
		},
		removeNode: func(*berthv1.RemoveNodeRequest) (*berthv1.RemoveNodeResponse, error) {
			return &berthv1.RemoveNodeResponse{SchemaVersion: "1"}, nil
		},
		OnDrainNode: func(r *berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
			if r.GetDryRun() {
				return &berthv1.DrainNodeResponse{SchemaVersion: "1", Plan: preflightOf()}, nil
			}
			return &berthv1.DrainNodeResponse{SchemaVersion: "1", Plan: DrainOf("running", "waiting", "waiting", "waiting")}, nil
		},
		undrainNode: func(r *berthv1.UndrainNodeRequest) (*berthv1.UndrainNodeResponse, error) {
			answer := &berthv1.UndrainNodeResponse{SchemaVersion: "1", Node: cannedNodes()[0]}
			if r.GetReturnVms() {
				answer.Plan = homecoming("running", "waiting")
			}
			return answer, nil
		},
	}
}

func settings() *berthv1.NodeSettings {
	return &berthv1.NodeSettings{RamRatio: proto.Float64(1.5), CpuRatio: proto.Float64(8), OverheadBytes: proto.Int64(Gib)}
}

// cannedNodes are one that is well, one in maintenance that reads little, and one that is silent.
func cannedNodes() []*berthv1.Node {
	return []*berthv1.Node{
		{
			Id: "3nqk7d2m0n1aa", Name: "node1", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UP, MetricsAddress: "node1:7425",
			Settings: settings(), OwnSettings: &berthv1.NodeSettings{RamRatio: proto.Float64(1.5)},
			Inventory: &berthv1.NodeInventory{
				HostName: "node1", HostUuid: "11111111-2222-3333-4444-555555555555", AgentVersion: "1.2.3", LibvirtVersion: "9.0.0",
				HypervisorVersion: "7.2.0", MemoryBytes: 64 * Gib, Cpus: 16, Sockets: 1, CoresPerSocket: 8, ThreadsPerCore: 2, NumaCells: 1,
				CpuModel: "EPYC", CpuVendor: "AMD", Arch: "x86_64", DomainTypes: []string{"kvm", "qemu"},
				StoragePools: []*berthv1.StoragePool{{
					Name: "default", Active: true, Type: "dir", CapacityBytes: 1000 * Gib, AvailableBytes: 400 * Gib,
				}},
				Networks:     []*berthv1.Network{{Name: "default", Active: true, Bridge: "virbr0", ForwardMode: "nat"}},
				MigrationUri: "qemu+tls://node1/system", CollectedAt: Ago(20 * time.Second),
			},
			Telemetry: &berthv1.NodeTelemetry{
				MemoryTotalBytes: proto.Int64(64 * Gib), MemoryFreeBytes: proto.Int64(30 * Gib), MemoryAvailableBytes: proto.Int64(41 * Gib),
				KsmSavedBytes: proto.Int64(Gib / 2), Load1: proto.Float64(1.25), Load5: proto.Float64(0.9), Load15: proto.Float64(0.5),
				CpuBusyRatio: proto.Float64(0.31), CpuStealRatio: proto.Float64(0), CpuPressure: &berthv1.Pressure{SomeAvg10: 1.5},
			},
			TelemetryAgeSeconds: proto.Float64(1.2), VcpuDelayPercent: proto.Float64(4.2),
			Ledgers: &berthv1.NodeLedgers{
				PromisedLimitBytes: 96 * Gib, PromisedUsedBytes: 20*Gib + Gib/2, PromisedFreeBytes: 75*Gib + Gib/2,
				PhysicalFreeBytes: proto.Int64(40 * Gib), VcpusLimit: 128, VcpusUsed: 11, Vms: 3,
				BorrowedBytes: Gib / 2,
			},
			Keys: map[string]float64{"Premium": 1, "DS": 0, "_ssd": 1}, OwnKeys: []string{"Premium"},
			Vms: []string{"db1", "web1"}, EnrolledAt: Ago(48 * time.Hour),
			Labels: []string{"rack-7"}, Management: true,
			Fence: &berthv1.FenceDevice{
				Method: "command", Program: "fence_ipmilan", TimeoutSeconds: 30,
				Arguments: map[string]string{"ip": "10.0.0.9", "password": "***", "username": "berth"},
			},
			Fencing: &berthv1.Fencing{
				Phase: "failed", Method: "command", Attempt: 2, Caller: "berth", AskedAt: Ago(50 * time.Second), EndedAt: Ago(40 * time.Second),
				Message: "fence_ipmilan: no answer within 30s",
			},
			FenceIdentity: "checked: it says that it switches machine 4c4c4544-0042-3510-8052-b4c04f4d3732, which the node is",
			Hardware:      "4c4c4544-0042-3510-8052-b4c04f4d3732", HardwareSource: "product UUID",
		},
		{
			Id: "3nqk7d2m0n2aa", Name: "node2", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UP, Maintenance: true,
			MaintenanceReason: "new memory", Settings: settings(), OwnSettings: &berthv1.NodeSettings{},
			Telemetry:           &berthv1.NodeTelemetry{Errors: []*berthv1.ReadingError{{Reading: "memory", Message: "libvirt: timed out"}}},
			TelemetryAgeSeconds: proto.Float64(0.4), Ledgers: &berthv1.NodeLedgers{PromisedLimitBytes: 96 * Gib, VcpusLimit: 128},
			Hardware: "4c4c4544-0042-3510-8052-b4c04f4d3733", HardwareSource: "product UUID",
			AgentRelease: "0.6.0", AgentLacks: []string{"reboots: it cannot restart a guest in place"},
			Held: "two machines say that they are it, or it has new hardware: product UUID 4c4c4544-0099, and " +
				"4c4c4544-0042-3510-8052-b4c04f4d3733 until now: switch the wrong machine off",
		},
		{
			Id: "3nqk7d2m0n3aa", Name: "node3", Cluster: "default", State: berthv1.NodeState_NODE_STATE_UNREACHABLE,
			StateReason: "no session for 3m12s", Settings: settings(), OwnSettings: &berthv1.NodeSettings{},
			Maintenance: true, PlanId: "3nqk7d2m0p1ab", Unbalanced: true,
		},
	}
}

func cannedDomains() []*berthv1.Domain {
	return []*berthv1.Domain{
		{
			Name: "web1", Uuid: "aaaaaaaa-0000-4000-8000-000000000001", State: berthv1.DomainState_DOMAIN_STATE_RUNNING,
			MemoryBytes: Gib / 2, Vcpus: 2, Managed: true, Epoch: 3, OperationId: "3nqk7d2m0x1ab",
		},
		{
			Name: "old\x1b[31mbackup\tbox", Uuid: "bbbbbbbb-0000-4000-8000-000000000002", State: berthv1.DomainState_DOMAIN_STATE_PAUSED,
			MemoryBytes: 16 * Gib, Vcpus: 8,
		},
	}
}
