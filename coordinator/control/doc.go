// Package control is what only the leader does. It begins the rooms with the leadership and ends them with it.
//
// What is here itself: the loops that see what somebody else has stopped, moved or changed and which VM runs twice, restarts of highly
// available VMs, adoption, and the end of a quarantine. Single VMs are in lifecycle, plans of moves and the passes over each cluster in
// plans, silent nodes in fencing, disks and images in volumes. All of it starts from the replicated state alone, after a barrier.
package control
