// Package admin lets a random administrator loose on real guests: one who gives Berth orders and works beside it with virsh, in any
// order and sometimes both at once, while agents and libvirt daemons die, leaders change and hosts are cut off.
//
// Each seed has a guest of its own, which writes numbers to its disk and says on its console, outside of every host, which of them are
// there (package writer). All seeds share a lab of three hosts and three coordinators, some at a time. What was done, what the console
// says and what an observer of the processes has seen make a history, and pure rules judge it (judge.go):
//
//   - lost: no number that was on the disk is missing from what the guest finds at any later boot
//   - twice: no two processes execute one guest, and no two boots write to one disk
//   - unwanted: the guest begins, ends, moves and stands still only because of something that was done, while it is done
//   - unkept: what Berth says it has done is so
//   - resized: its disk is as large as somebody has made it last
//   - unexplained: once all is quiet, `berth vm show` tells where the guest is and what it runs with, and whatever differs from its record
//   - stuck: it can be stopped and started again, or Berth says what is in the way and what to do about that
//
// A guest may end right after somebody has changed its disks, before any leader has heard of that. Nothing of it may be lost either.
//
// SEEDS says how many seeds are played, FIRST which is the first, and SEED plays one. TIMES plays each so often, with
// guests of their own: what breaks may need the right moment. WITHIN is after how long no further one is begun.
// `make admin` plays many. SHORTEN=1 plays a seed that fails again with steps left out, and says which are enough: some tens of times, or
// for ten minutes.
package admin
