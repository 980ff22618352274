package planner

import (
	"slices"
	"testing"
)

// Pods that hold equally many of the customer's VMs come by their own used capacity, and a pod's clusters stay together.
func TestPodsOfOneWeightComeByCapacity(t *testing.T) {
	places := []Place{
		{Cluster: "a", Pod: "1", Used: 0.1, PodUsed: 0.6},
		{Cluster: "b", Pod: "2", Used: 0.2, PodUsed: 0.3},
		{Cluster: "c", Pod: "2", Used: 0.4, PodUsed: 0.3},
		{Cluster: "d", Pod: "1", Used: 0.9, PodUsed: 0.6},
	}
	ByCapacity(places)
	userDispersing.Order(places, Terms{Pods: true, Weight: 1, Owned: true})
	var order []string
	for _, one := range places {
		order = append(order, one.Cluster)
	}
	if want := []string{"b", "c", "a", "d"}; !slices.Equal(order, want) {
		t.Errorf("clusters come as %q, want %q", order, want)
	}
}
