// Package affinity interprets affinity groups: which rules hold, which contradict each other, which can never hold, and which
// VM should move to repair one. It is pure and looks at groups and at where VMs run, nothing else. Where a VM fits is for the
// placement engine to say.
//
// Groups come with their labels expanded (view.Expand). Where tells the node of each VM: the node that runs it, or the node
// that it is on its way to. A VM that does not run is not in it and breaks no rule.
package affinity
