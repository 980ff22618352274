package wire

import (
	"math"
	"net"
	"strconv"

	"berth/coordinator/view"
	"berth/shared/destination"
	berthv1 "berth/shared/gen/berth/v1"
)

// AgentMetrics is where the figures of a node's agent are read, as HOST:PORT; empty: on its own machine alone. The port is what the
// agent says, and the host what the coordinator knows: who reads figures shows its token there.
func AgentMetrics(node *view.NodeView, inventory *berthv1.NodeInventory) string {
	return reached(destination.Host(node.Node.Name, node.Facts.MigrationURI, node.Facts.CalledFrom), int(inventory.GetMetricsPort()))
}

// MemberMetrics is the same of a coordinator, by the address of its API.
func MemberMetrics(api string, port int) string {
	host, _, err := net.SplitHostPort(api)
	if err != nil {
		return ""
	}
	return reached(host, port)
}

func reached(host string, port int) string {
	if port <= 0 || port > math.MaxUint16 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
