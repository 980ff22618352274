package cluster

// StickyCopies are the keys that a VM takes along from a node on which it starts: the node's sticky keys with their values
// there and the weights that the cluster declares (FCO step 6), by class and name. Reserved keys are copied as customer
// keys, because no system key may be reserved; all others as system keys.
func StickyCopies(record *Resource, node *Node) []Key {
	var reserved, system []Key // each by name, as the declarations are; "customer" sorts before "system"
	for _, declared := range record.NodeKeys {
		if !declared.Sticky {
			continue
		}
		value, set := node.Keys[declared.Name]
		if !set {
			value = declared.Default
		}
		if IsReservedKey(declared.Name) {
			reserved = append(reserved, Key{Class: CustomerKey, Name: declared.Name, Value: value, Weight: declared.Weight})
		} else {
			system = append(system, Key{Class: SystemKey, Name: declared.Name, Value: value, Weight: declared.Weight})
		}
	}
	return append(reserved, system...)
}
