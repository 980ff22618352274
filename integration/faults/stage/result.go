package stage

import "time"

// Result is what a run came to.
type Result struct {
	Breaches   []Breach
	Events     uint64
	Lasted     time.Duration // virtual
	Operations int
	Proven     int                        // nodes that were proven to be off
	Restarts   int                        // of VMs that are to be highly available
	Hash       uint64                     // of the trace
	Back       map[string][]time.Duration // from a failure to running again, of VMs that Berth has restarted, by what has failed
	Drawn      map[string]int             // how often each of script.Faults has happened
}

// Failed tells whether an invariant was broken.
func (r *Result) Failed() bool { return len(r.Breaches) > 0 }
