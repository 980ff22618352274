// Package gate is what a call passes before its message is read. Authorise looks at the caller's role. The forwarder sends the call
// to the leader, unless this member leads or every member may answer it. Admission bounds how many calls are worked on at a
// time and how often one caller may come. What a method allows follows from its traits in the protocol; there is no list of
// methods here.
package gate
