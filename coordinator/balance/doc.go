// Package balance is the pure judgement of which running VM had better move: Pass looks at one cluster and finds the one
// move that the leader's loop should make now, repairs of groups first, then even distribution; Drain and Return plan how
// a node is emptied and filled again; Even plans all moves that would even a cluster out.
//
// Where a policy wants that, balancing also keeps the VMs of each customer spread over the nodes of the cluster, before it evens
// anything else out. It stays inside the cluster: a running VM's disks are in pools of its cluster, its CPU is the cluster's
// baseline, and its groups and policy are the cluster's, so that nothing but a start decides which cluster a VM is in.
//
// It proposes and never moves. Every target is the placement engine's choice, on planned state, with staying offered where
// the VM may stay; whoever carries a plan out asks the engine again. Time, chance and records come in as arguments.
//
// A balancer is one file and one line in all.go.
package balance
