// Package control is what only the leader does. It begins the rooms with the leadership and ends them with it: single VMs are in
// lifecycle, domains that are taken in in adoption, what somebody else has done to VMs in outofband, restarts and the end of a
// quarantine in recovery, plans of moves and the passes over each cluster in plans, silent nodes in fencing, disks and images in
// volumes. All of it starts from the replicated state alone, after a barrier.
package control
