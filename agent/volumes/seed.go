package volumes

import (
	"encoding/json"
	"fmt"
)

// label is what NoCloud knows the file system by.
const label = "CIDATA"

// SeedImage is the disk image that cloud-init in a guest finds its data on: an ISO 9660 file system called CIDATA with the files
// user-data and meta-data, as cloud-init's data source NoCloud wants it. The same arguments give the same bytes on every node. The
// instance ID, by which cloud-init tells a first boot from a later one, is the VM's ID; the guest's host name is the VM's name.
func SeedImage(vmID, name, userData string) []byte {
	metaData := fmt.Sprintf("instance-id: %s\nlocal-hostname: %s\n", quoted(vmID), quoted(name))
	return write([]file{
		{name: "meta-data", short: "META_DAT.;1", content: []byte(metaData)},
		{name: "user-data", short: "USER_DAT.;1", content: []byte(userData)},
	})
}

// quoted writes a text as YAML reads it, whatever is in it: JSON is YAML.
func quoted(text string) string {
	out, _ := json.Marshal(text) // a string does not fail
	return string(out)
}
