// Package api answers people, programs, machines that enrol, and other coordinators: the handlers of BerthService,
// EnrolmentService and MemberService. The handlers of each noun are a type of their own; Server embeds them all.
//
// A call passes its rooms in this order. Package gate decides whether it reaches its handler on this member, before its message is
// read. The handlers are here (VMs, nodes, plans, operations, and what is wrong), in package estates (what people declare), in package
// guests (what a guest runs with), in package explain (why a VM is where it is) and in package members (who belongs to the cluster). All
// of them read and propose through package answer. Package refusal words every expected no.
//
// Package control does what changes the running of a VM; every other change the handlers propose themselves. Package estate judges
// what may be declared; package placement works out why a VM is where it is, and how many more fit.
package api
