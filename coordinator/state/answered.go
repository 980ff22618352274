package state

// Answered tells whether a command with this key and kind has been stored. Who deletes a record asks it before saying
// that there is none: the record may be gone because the same request was carried out before.
func (x *Snapshot) Answered(key, kind string) bool {
	row, found := one(x.tables, tableKeys, byID, key, copied[keyRow])
	return found && row.Kind == kind
}
