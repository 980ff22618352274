package model

import (
	"fmt"
	"time"

	"berth/shared/units"
)

// PoolTrial is what a trial of a shared pool between two nodes has shown: one made a file and locked it, and the other one looked. It is in
// the record of a pool that trials have set apart, so that the next leader does not start a VM from the wrong file before it has tried all.
type PoolTrial struct {
	Holder  string       `json:"holder"`  // node ID
	Witness string       `json:"witness"` // node ID
	Verdict string       `json:"verdict"`
	At      time.Time    `json:"at"`
	Looked  [2]PoolLook  `json:"looked"` // the pool as holder and witness showed it then
	Left    [2]time.Time `json:"left"`   // when both were first seen to have something else there than before; zero: they were not
}

// PoolLook is what of a pool on a node changes with what is mounted there.
type PoolLook struct {
	Boot     string      `json:"boot,omitempty"`
	Path     string      `json:"path,omitempty"`
	Capacity units.Bytes `json:"capacity,omitempty"`
}

// MaxPoolTrials is how many trials the record of a pool has at most: a record stays small. A leader tries a larger pool again from the
// beginning.
const MaxPoolTrials = 1000

// PoolsApart are the storage pools that are declared as shared and proven not to be, by the pool's ID. Nobody changes them.
type PoolsApart map[string]*PoolApart

// PoolApart is a pool whose nodes have different storage under its name. Nodes with the same storage are one side.
type PoolApart struct {
	Name   string // that people gave the pool
	Source string // that libvirt has for it
	Folder string // of the pool, the same on all nodes; empty: no node tells
	// Sides are the nodes that are proven apart from some others: the node ID that stands for a node's side, by node ID. Nothing is
	// proven of a node that is in none.
	Sides map[string]string
	// Borders are the trials that set two sides apart, by both of them, and the newest one of a side, by itself twice.
	Borders map[[2]string]PoolBorder
	Each    bool              // each side is apart from each other one: there are so many that not all of them are tried with each other
	Names   map[string]string // of the nodes in Sides, by ID
	// Left is when nodes were first seen on another side than before, by ID: what they had under the name is not there any more. So the side
	// of such a node says nothing about the disks of a VM that came there before that.
	Left map[string]time.Time
}

// PoolBorder is one node that made a file, and another one that did not see it.
type PoolBorder struct {
	Maker, Witness string // names
	At             time.Time
}

// Apart tells whether two nodes are proven to have different storage under the pool's name.
func (p *PoolApart) Apart(one, other string) bool {
	a, b := p.Sides[one], p.Sides[other]
	if a == "" || b == "" || a == b {
		return false
	}
	_, tried := p.Borders[[2]string{a, b}]
	return tried || p.Each
}

// Why says in words what proves that two nodes are apart.
func (p *PoolApart) Why(one, other string) string {
	a, b := p.Sides[one], p.Sides[other]
	border, tried := p.Borders[[2]string{a, b}]
	if !tried {
		border = p.Borders[[2]string{b, b}]
	}
	return fmt.Sprintf("pool %s on %s is not the one on %s: %s did not see a file that %s had made there, tried %s",
		p.Name, p.Names[other], p.Names[one], border.Witness, border.Maker, border.At.UTC().Format(time.RFC3339))
}
