package operation

import "berth/coordinator/cluster"

// Verdict says who has the VM after a migration whose end nobody saw.
type Verdict string

// The verdicts. Only Committed moves the VM to the target.
const (
	RolledBack    Verdict = "rolled back"         // the source has it; the target's leftover goes
	Committed     Verdict = "committed"           // the target has it; it is resumed, the source's leftover goes
	RevertSource  Verdict = "revert"              // both hold it still: the target's copy goes, then the source resumes
	StillCopying  Verdict = "still copying"       // the job runs on; wait
	LostBoth      Verdict = "lost"                // neither has it
	EndedThere    Verdict = "ended on the source" // the target's copy is older: the guest ran on there
	SourceDied    Verdict = "the source died"     // the target's copy may be older: the guest may have run on there
	DoubleRunning Verdict = "running on both"     // a person has to decide
	CannotTell    Verdict = "not enough evidence" // ask again
)

// Judge decides from what both nodes show after the job ended or its end went unseen (reliability.md, table 5.4).
// No job statistics and no return code enters it: only what is there. Whatever the table does not name is CannotTell,
// because a wrong guess runs a VM twice or destroys it. Epoch is the one that the migration gives to the target.
//
// A source that shows nothing has not always let the guest go. When the target's reply is lost, libvirt lets the guest run on
// at the source. Then it may end there, or the host may go down, and it wrote to its disks until then.
func Judge(source, target Observation, epoch uint64) Verdict {
	gone := source.State == cluster.DomainAbsent || source.State == cluster.DomainShutoff
	absent := target.State == cluster.DomainAbsent || target.State == cluster.DomainShutoff
	paused := target.State == cluster.DomainPaused || target.State == cluster.DomainPausedMigration
	// A copy on the target that is not of this migration proves nothing about it.
	if !absent && target.State != cluster.DomainUnknown && target.Epoch != epoch {
		return CannotTell
	}
	switch {
	case source.State == cluster.DomainRunning && target.State == cluster.DomainRunning:
		return DoubleRunning
	case source.JobActive:
		return StillCopying
	case source.State == cluster.DomainRunning, source.State == cluster.DomainPaused:
		if absent || paused {
			return RolledBack
		}
	case source.State == cluster.DomainPausedMigration && target.State == cluster.DomainRunning:
		return Committed
	case source.State == cluster.DomainPausedMigration && (paused || absent):
		return RevertSource
	case gone && paused && source.Ended:
		return EndedThere
	case gone && paused && source.Anew:
		return SourceDied
	case gone && paused && target.JobActive:
		return CannotTell // it may lack memory that the source took along: libvirt ends the job, and what is left tells
	case gone && (paused || target.State == cluster.DomainRunning):
		return Committed
	case gone && absent:
		return LostBoth
	}
	return CannotTell
}
