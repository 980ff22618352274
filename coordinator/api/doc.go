// Package api answers people, programs, machines that enrol, and other coordinators: the handlers of BerthService,
// EnrolmentService and MemberService, one file per noun.
//
// A call passes three gates before its handler. Authorise looks at the caller's role, in one table. The forwarder sends
// it to the leader, unless this member leads or the call can be answered anywhere. A bound keeps its messages small.
// Handlers then read one snapshot of the state, after the leadership has been verified, joined with the soft facts of the
// same moment. What touches a VM's running goes through package control; the rest the handlers propose themselves,
// guarded by the revisions they read. What may be declared, package estate judges; why a VM is where it is, and how many
// more fit, package placement works out.
package api
