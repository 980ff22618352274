// Package lastknown is what a coordinator still knows of the cluster when there is no leader. The records it has itself. What only the
// leader hears, which nodes are up and which VMs run, the leader tells every coordinator in its answers to their reports. All of it is
// dated: nobody takes it for the present.
package lastknown
