// Package balance is the pure judgement of which running VM had better move: Pass looks at one cluster and finds the one
// move that the leader's loop should make now, repairs of groups first, then even distribution; Drain and Return plan how
// a node is emptied and filled again; Even plans all moves that would even a cluster out.
//
// It proposes and never moves. Every target is the placement engine's choice, on planned state, with staying offered where
// the VM may stay; whoever carries a plan out asks the engine again. Time, chance and records come in as arguments.
//
// A balancer is one file and one line in all.go.
package balance
