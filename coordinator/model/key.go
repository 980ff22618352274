package model

import (
	"math"
	"strconv"
	"strings"
)

// KeyClass says who a resource key belongs to.
type KeyClass string

// The classes of resource keys.
const (
	SystemKey        KeyClass = "system"         // the operator's; decides which nodes are acceptable
	BillingEntityKey KeyClass = "billing-entity" // a reseller's; joins the customer set
	CustomerKey      KeyClass = "customer"       // the customer's own; decides among acceptable nodes
)

// Key is one key on a resource. With a weight of 0 it is a normal key and takes no part in placement.
type Key struct {
	Class  KeyClass `json:"class"`
	Name   string   `json:"name"`
	Value  float64  `json:"value"`
	Weight float64  `json:"weight,omitempty"`
}

// NodeKey declares one key of the nodes of a cluster: all of them have it, each with a value of its own.
type NodeKey struct {
	Name    string  `json:"name"`
	Default float64 `json:"default,omitempty"` // of a node that sets none
	Sticky  bool    `json:"sticky,omitempty"`  // copied to each VM that starts on the node
	Weight  float64 `json:"weight,omitempty"`  // of the copy; only sticky keys have one
}

// Owner is whose VM a key instance comes from. Strangers' keys never match.
type Owner struct {
	Customer      string `json:"customer,omitempty"`       // resource ID; VMs without one count as one customer's
	BillingEntity string `json:"billing_entity,omitempty"` // resource ID
}

// ResidentKey is one compiled customer key of a VM as it was when the VM was started, without its weight: what the VM
// shows to others that want to be near it or far from it (FCO step 3).
type ResidentKey struct {
	Class KeyClass `json:"class"` // customer or billing-entity
	Name  string   `json:"name"`
	Value float64  `json:"value"`
}

// Special keys: nodes have them by themselves, resources name them as system keys.
const (
	SpecialRAM  = "#RAM"  // allocated memory by promised limit
	SpecialCPU  = "#CPU"  // allocated vCPUs by their limit
	SpecialLoad = "#LOAD" // how busy the node is
)

// Ranges of keys.
const (
	MaxKeys       = 64  // on one resource, and declared for the nodes of one cluster
	MaxKeyFigure  = 1e9 // of a value or a weight, either sign
	MaxKeyNameLen = 64
)

// IsSpecialKey tells whether nodes have the key by themselves.
func IsSpecialKey(name string) bool { return strings.HasPrefix(name, "#") }

// IsReservedKey tells whether the key is a node's that customers may see, or a customer key that asks for one.
func IsReservedKey(name string) bool { return strings.HasPrefix(name, "_") }

// ValidateKeyFigure checks a value or a weight. The error is an *InvalidError.
func ValidateKeyFigure(field string, figure float64) error {
	if math.Abs(figure) <= MaxKeyFigure { // false for a NaN
		return nil
	}
	return invalid(field, strconv.FormatFloat(figure, 'g', -1, 64), "a finite number from -1e9 to 1e9")
}

func validateKeyName(field, name string) error {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "#"), "_")
	if bare != "" && len(name) <= MaxKeyNameLen && printable(name) && !strings.ContainsAny(bare, "#=:,@\"' ") {
		return nil
	}
	return invalid(field, quoted(name), "1 to 64 printable characters without blank, quote, comma, colon, @, = or #")
}

// ValidateKey checks one key against the rules on who may set what where (FCO, "Placement Keys"). The error is an
// *InvalidError that says which rule.
func ValidateKey(kind Kind, key Key) error {
	field := "key " + key.Name
	if err := validateKeyName("key name", key.Name); err != nil {
		return err
	}
	if err := ValidateKeyFigure(field+" value", key.Value); err != nil {
		return err
	}
	if err := ValidateKeyFigure(field+" weight", key.Weight); err != nil {
		return err
	}
	if !kind.Keys() {
		return invalid(field, "on "+kind.WithArticle(), "keys only on VMs and what is above them: a "+string(kind)+" is not")
	}
	switch key.Class {
	case SystemKey:
		if IsReservedKey(key.Name) {
			return invalid(field, "as a system key", "a name without leading underscore: reserved keys are set on nodes, "+
				"and asked for by billing-entity and customer keys")
		}
		if IsSpecialKey(key.Name) && key.Name != SpecialRAM && key.Name != SpecialCPU && key.Name != SpecialLoad {
			return invalid(field, "as a special key", "one of #RAM, #CPU and #LOAD")
		}
		if IsSpecialKey(key.Name) && kind == KindCluster && key.Value != 0 {
			return invalid(field+" value", strconv.FormatFloat(key.Value, 'g', -1, 64),
				"0 on a cluster: no contention and no load are always the target; edit its weight")
		}
	case BillingEntityKey, CustomerKey:
		if IsSpecialKey(key.Name) {
			return invalid(field, "as a "+string(key.Class)+" key", "a name without leading #: #RAM, #CPU and #LOAD are system keys")
		}
		if key.Class == CustomerKey && !kind.CustomerKeys() {
			return invalid(field, "as a customer key on "+kind.WithArticle(),
				"customer keys only on images, VMs, disks, networks and NICs")
		}
	default:
		return invalid(field+" class", quoted(string(key.Class)), "system, billing-entity or customer")
	}
	return nil
}

// ValidateNodeKey checks a key that a cluster declares for its nodes. The error is an *InvalidError.
func ValidateNodeKey(key NodeKey) error {
	field := "node key " + key.Name
	if err := validateKeyName("node key name", key.Name); err != nil {
		return err
	}
	if IsSpecialKey(key.Name) {
		return invalid(field, "with a leading #", "another name: nodes have #RAM, #CPU and #LOAD by themselves")
	}
	if err := ValidateKeyFigure(field+" default", key.Default); err != nil {
		return err
	}
	if err := ValidateKeyFigure(field+" weight", key.Weight); err != nil {
		return err
	}
	switch {
	case !key.Sticky && key.Weight != 0:
		return invalid(field+" weight", strconv.FormatFloat(key.Weight, 'g', -1, 64),
			"none: only a sticky node key has a weight, the VM's own keys weigh the others")
	case key.Sticky && key.Weight == 0:
		return invalid(field+" weight", "0", "a weight other than 0, for the copy that VMs take along")
	}
	return nil
}
