// Package balance finds out which running VMs should move. Pass looks at one cluster and finds the one move that the leader
// should make now: repairs of groups first, then even distribution. Drain and Return plan how a node is emptied and filled
// again. Even plans all moves that would even a cluster out. It is pure: time, chance and records come in as arguments.
//
// It proposes and never moves. The placement engine chooses every target, on planned state, and may choose to let the VM
// stay. What carries a plan out asks the engine again.
//
// Where a policy wants that, balancing keeps the VMs of each customer spread over the nodes, before it evens out anything
// else. It never leaves the cluster: a running VM has its disks in pools of its cluster, its CPU is the cluster's baseline,
// and its groups and policy are the cluster's. Only a start decides which cluster a VM is in.
//
// A balancer is one file and one line in all.go.
package balance
