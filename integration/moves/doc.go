// Package moves proves on a lab of real hypervisors what Berth moves, by itself and at a word, and what it leaves alone: VMs
// come home to a rack that was off, a host is emptied while its guests run on, a rule that somebody broke by hand is
// repaired, VMs are spread evenly and then left in peace, and nothing is done that a group forbids.
//
// All tests share one lab, whose leader looks every few seconds. Each test finds the lab whole and empty and leaves it so.
package moves
