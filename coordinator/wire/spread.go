package wire

import (
	"berth/coordinator/control/plans"
	berthv1 "berth/shared/gen/berth/v1"
)

// Spread makes the message of how a customer's VMs are spread.
func Spread(customer string, spread plans.Spread) *berthv1.SpreadResponse {
	level := func(l plans.SpreadLevel) *berthv1.SpreadLevel {
		return &berthv1.SpreadLevel{Used: int32(l.Used), Total: int32(l.Total), Most: int32(l.Most), Least: int32(l.Least)}
	}
	return &berthv1.SpreadResponse{
		SchemaVersion: SchemaVersion, Customer: customer, Vms: int32(spread.VMs),
		Zones: level(spread.Zones), Pods: level(spread.Pods), Clusters: level(spread.Clusters), Nodes: level(spread.Nodes),
	}
}
