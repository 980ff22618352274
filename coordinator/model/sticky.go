package model

// StickyCopies are the keys that a VM takes along from a node on which it starts: the node's sticky keys with their values
// there and the weights that the cluster declares (FCO step 6), by class and name.
func StickyCopies(record *Resource, node *Node) []Key {
	var reserved, system []Key // each by name, as the declarations are; "customer" sorts before "system"
	for _, declared := range record.NodeKeys {
		if !declared.Sticky {
			continue
		}
		copied := Key{
			Class: StickyClass(declared.Name), Name: declared.Name, Value: node.KeyValue(declared), Weight: declared.Weight,
		}
		if copied.Class == CustomerKey {
			reserved = append(reserved, copied)
		} else {
			system = append(system, copied)
		}
	}
	return append(reserved, system...)
}

// StickyClass is the class of the copy of a sticky key: customer for a reserved one, because no system key may be
// reserved, and system for all others.
func StickyClass(name string) KeyClass {
	if IsReservedKey(name) {
		return CustomerKey
	}
	return SystemKey
}
