package model

// Mark is something that one of the leader's loops looks for in the records of VMs. The state keeps the VMs of each mark apart, so that a
// look which finds nothing costs nothing, however many VMs there are.
type Mark string

// The marks.
const (
	MarkDiscards Mark = "discards" // paused copies of it are to be discarded
	MarkCopies   Mark = "copies"   // a migration has left copies of its disks
	MarkBound    Mark = "bound"    // a file that its disks need is on one node alone
	MarkDown     Mark = "down"     // it is to run, nobody holds it, and no operation works on it
	MarkGuarded  Mark = "guarded"  // it is to run, and to be started elsewhere once it is proven that it runs nowhere
	MarkMissing  Mark = "missing"  // the same, and nobody has seen how it left its node
	MarkLeft     Mark = "left"     // it is to run with ha, and nothing starts it again by itself
	MarkUnusual  Mark = "unusual"  // something unusual was found of it
)

// Marks are those of a VM.
func (v *VM) Marks() []Mark {
	var marks []Mark
	for _, one := range []struct {
		mark Mark
		has  bool
	}{
		{MarkDiscards, len(v.Discards) > 0},
		{MarkCopies, v.Copies != nil},
		{MarkBound, v.Bound != ""},
		{MarkDown, v.Desired == Running && v.Holder == "" && v.Operation == ""},
		{MarkGuarded, v.Desired == Running && v.Guarded()},
		{MarkMissing, v.Desired == Running && v.Guarded() && !v.Whereabouts.Missing.IsZero()},
		{MarkLeft, v.Desired == Running && v.HA && !v.Guarded()},
		{MarkUnusual, v.Condition != Condition{}},
	} {
		if one.has {
			marks = append(marks, one.mark)
		}
	}
	return marks
}
