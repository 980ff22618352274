package model

import (
	"slices"
	"time"
)

// Kind is what a resource is.
type Kind string

// The kinds of resource. Nodes and VMs have records of their own; they are kinds because keys and links name them.
const (
	KindCluster       Kind = "cluster"
	KindBillingEntity Kind = "billing-entity"
	KindOffer         Kind = "offer"
	KindCustomer      Kind = "customer"
	KindVDC           Kind = "vdc"
	KindImage         Kind = "image"
	KindNetwork       Kind = "network"
	KindDisk          Kind = "disk"
	KindNIC           Kind = "nic"
	KindPolicy        Kind = "policy"
	KindGroup         Kind = "group"
	KindZone          Kind = "zone"
	KindPod           Kind = "pod"
	KindPool          Kind = "pool"
	KindNode          Kind = "node"
	KindVM            Kind = "vm"
)

// BuiltIn is the beginning of the IDs of built-in policies. They and the default cluster exist without a record.
// What follows is the name. The replicated state lets links lead to such IDs, whatever follows: releases may add some.
const BuiltIn = "builtin:"

// WithArticle is the kind as a sentence has it: "a vdc", "an offer".
func (k Kind) WithArticle() string {
	switch k {
	case KindOffer, KindImage:
		return "an " + string(k)
	default:
		return "a " + string(k)
	}
}

// Keys tells whether resources of the kind may have keys: those that are in a VM's hierarchy may.
func (k Kind) Keys() bool {
	switch k {
	case KindNode, KindPolicy, KindGroup, KindZone, KindPod, KindPool:
		return false
	default:
		return true
	}
}

// CustomerKeys tells whether customers may set keys on resources of the kind. They may not where others would feel it:
// on clusters, billing entities, customers, VDCs and offers (FCO, "Resource Placement Keys").
func (k Kind) CustomerKeys() bool {
	switch k {
	case KindImage, KindNetwork, KindDisk, KindNIC, KindVM:
		return true
	default:
		return false
	}
}

// Resource is the replicated record of everything in an estate that is neither a node nor a VM. What links and settings
// a kind has stands in package estate.
type Resource struct {
	ID       string            `json:"id"`
	Kind     Kind              `json:"kind"`
	Name     string            `json:"name"`            // unique among its kind
	Links    map[string]string `json:"links,omitempty"` // by link name: the ID of the other resource
	Settings map[string]string `json:"settings,omitempty"`
	NodeKeys []NodeKey         `json:"node_keys,omitempty"` // of a cluster, by name
	Keys     []Key             `json:"keys,omitempty"`      // by class and name

	CreatedAt time.Time `json:"created_at"`
	Revision  uint64    `json:"revision"`

	// Members are lists of records by list name: IDs of VMs or nodes, ascending. A record that goes leaves them. Lists are
	// plain words by list name, ascending.
	Members map[string][]string `json:"members,omitempty"`
	Lists   map[string][]string `json:"lists,omitempty"`
	// BrokenSince is when the leader first saw that a group's rules do not hold; zero while they do.
	BrokenSince time.Time `json:"broken_since,omitzero"`
	// Volume is where the content of a disk or an image is, once Berth has made it.
	Volume *Volume `json:"volume,omitempty"`
	// Copies are where the content of an image is besides: the same file in further pools, in the order in which it came.
	Copies []Volume `json:"copies,omitempty"`
	// Trials are what has shown that a shared pool is another one on some nodes, by holder and witness; none: nothing has.
	Trials []PoolTrial `json:"trials,omitempty"`
	// HeldSince is when the leader saw that a group's rules held again; zero while they do not, and if they always did.
	HeldSince time.Time `json:"held_since,omitzero"`
	// Spelled is how the document that declared it has written fields by the names of the designs, by ours; see package document.
	Spelled map[string]string `json:"spelled,omitempty"`
}

// NodeKey finds a declared node key of a cluster.
func (r *Resource) NodeKey(name string) (NodeKey, bool) {
	at := slices.IndexFunc(r.NodeKeys, func(k NodeKey) bool { return k.Name == name })
	if at < 0 {
		return NodeKey{}, false
	}
	return r.NodeKeys[at], true
}
