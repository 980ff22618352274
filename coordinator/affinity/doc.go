// Package affinity is the pure sense of affinity groups: which of their rules hold, which contradict each other, which can
// never hold, and which VM had better move to repair one. It looks at groups and at where VMs run, nothing else; where a VM
// fits is the placement engine's to say.
//
// Groups come with their labels expanded (cluster.Expand). Where says on which node each VM is: the one that runs it, or the one
// that it is on its way to. VMs that do not run are not in it, and no rule is broken by them.
package affinity
