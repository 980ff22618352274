// Package storage proves on a lab of real hypervisors where Berth puts VMs among pods and clusters, and what it does with
// their disks: images are imported once, disks are thin copies that guests boot from, grow and take along, a customer's VMs
// spread, and whatever is refused or fails leaves nothing behind.
//
// All tests share one lab: a zone of two pods, each with a cluster of two hosts, and each cluster with a pool that its hosts
// share and one that each host has for itself. Each test finds the lab without VMs and with the same volumes in every pool,
// and leaves it so.
package storage
