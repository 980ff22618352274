// Package sim runs whole sites in virtual time: coordinators with a modelled log and the real state machine under it, the real
// drivers of operations, agents with their real jobs and journals, and a libvirt that has the races of the real one
// (reliability.md, table 1.3). Messages are late, lost, doubled and out of order; agents, daemons, guests, hosts and leaders
// die at any moment, and come back.
//
// A run is a Script: a seed, a site, and what happens to it. One piece of code runs at any moment, so that the same script
// gives the same run, which its hash tells. After every event the invariants of reliability.md 5.2 are compared with what
// really is on the hosts. When the faults have ended, every operation has ten minutes to end.
//
// A script that fails is made as small as it still fails, and kept in testdata/seeds once it is mended.
package sim
