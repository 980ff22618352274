package scenario

import "berth/coordinator/strictyaml"

// reader reads the sections of a scenario and collects what is wrong with them.
type reader struct {
	strictyaml.Reader
}
