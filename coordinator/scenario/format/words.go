package format

import "berth/coordinator/model"

// Version is the value of the field format of every scenario.
const Version = "berth/scenario/v1"

// Unheard is the state of a node that has never reported.
const Unheard = "unheard"

// MadeID is the ID of a thing for which the scenario gives none. It names the kind and the thing, because decisions show
// it.
func MadeID(kind model.Kind, name string) string {
	if kind == model.KindVM {
		return name
	}
	return string(kind) + "/" + name
}
