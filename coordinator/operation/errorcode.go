package operation

// ErrorCode is why an agent did not do what it was asked for. Records have the word.
type ErrorCode string

// The codes of agents' answers.
const (
	NoError      ErrorCode = ""
	Internal     ErrorCode = "internal"    // none of the others, or one that this release does not know
	StaleTerm    ErrorCode = "stale_term"  // the order is from an older leader
	StaleEpoch   ErrorCode = "stale_epoch" // the order is for an older epoch of the VM
	Journal      ErrorCode = "journal"     // the node's journal takes no entry, so nothing was done
	Timeout      ErrorCode = "timeout"     // a migration was given up
	NoMemory     ErrorCode = "no_memory"
	NoSpace      ErrorCode = "no_space" // in a storage pool
	NoPool       ErrorCode = "no_pool"  // there is no such pool, or it is not active
	NoVolume     ErrorCode = "no_volume"
	InUse        ErrorCode = "in_use" // a domain has the volume, or another QEMU a disk
	Exists       ErrorCode = "exists"
	InvalidXML   ErrorCode = "invalid_xml"
	Ambiguous    ErrorCode = "ambiguous"   // nobody knows what came of it
	TooOld       ErrorCode = "too_old"     // libvirt or QEMU
	Unavailable  ErrorCode = "unavailable" // libvirt does not answer
	Busy         ErrorCode = "busy"        // another job works on the domain, or there are too many of these
	Denied       ErrorCode = "denied"      // by libvirt
	Unsupported  ErrorCode = "unsupported"
	OtherEpoch   ErrorCode = "other_epoch"   // the domain has another epoch
	InvalidState ErrorCode = "invalid_state" // the domain is not in a state for this
	NotFound     ErrorCode = "not_found"     // there is no such domain
	Aborted      ErrorCode = "aborted"       // the job was cancelled
	Invalid      ErrorCode = "invalid"       // what came is not what was announced
	Malformed    ErrorCode = "malformed"     // the order lacks what every order has
	TooLate      ErrorCode = "too_late"      // the order was taken back before it had begun there
	Unsafe       ErrorCode = "unsafe"        // libvirt would risk a disk's content in a migration, and would say so again
	Overlaid     ErrorCode = "overlaid"      // somebody has put a disk under another file, which is newer
)
