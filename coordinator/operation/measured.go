package operation

// CopiesMemory tells whether the operation is a live migration whose memory is known.
func (o *Operation) CopiesMemory() bool { return o.Kind == Migrate && o.Memory > 0 }

// Measured tells whether others can be told by it what they will take: a live migration that was done, and of which libvirt has measured
// all of that.
func (o *Operation) Measured() bool {
	stats := o.Migration
	return o.CopiesMemory() && o.Result == Done && stats != nil && stats.Elapsed > 0 && stats.DataProcessed > 0 && stats.Downtime != nil
}
