// Package faults runs whole sites in virtual time: coordinators with a modelled log and the real state machine under it, the real
// drivers of operations, agents with their real jobs and journals, and a libvirt that has the races of the real one
// (FAULTS.md, "What libvirt does by itself"). Messages are late, lost, doubled and out of order; agents, daemons, guests, hosts and leaders
// die at any moment, and come back.
//
// In some of the sites nodes are fenced, and VMs are to be highly available. There agents report as real ones do, into the real
// inventory, and leaders act on the real decisions of package control: which silent node is to be proven off (Fencer), what of
// that its VMs and operations believe, which VM is restarted (Restarter), and what has become of one that ended by itself
// (Follower). A device that says that it has switched a machine off has done so; it is slow, fails, hangs, or its answer is
// lost. Watchdogs fire, people say that a machine is off, hosts freeze and thaw, and leaders die or stand still between the
// decision and the call. Nothing may be fenced without cause or be called off while it is on, no call may overlap another one,
// and no VM may stay down while a node has room for it.
//
// A run is a script.Script: a seed, a site, and what happens to it. One piece of code runs at any moment, so that the same script
// gives the same run, which its hash tells. After every event the invariants of FAULTS.md are compared with what
// really is on the hosts. When the faults have ended, every operation has ten minutes to end.
//
// The hosts are in package machine. Here is what is tested on them: agents (life, session), coordinators (member, and keeper for
// fenced nodes), and the rules that watch both.
//
// A script that fails is made as small as it still fails, and kept in testdata/seeds once it is mended.
package faults
