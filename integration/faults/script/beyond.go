package script

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// Faults of the world around Berth: what people, other programs and machines do that Berth's own model does not say. Each has to be
// drawn now and then: one that never happens proves nothing.
const (
	WrongMachine = "wrong-machine" // a fence device switches off another machine, and says that it has done what it was told
	NeverBack    = "never-back"    // a host is dead for the rest of the run, or until long after everything else is whole again
	UnseenEnd    = "unseen-end"    // a guest runs on at the source of its migration, and ends while the agent is away
	Foreign      = "foreign"       // people and programs move, end and start Berth's guests with virsh
	Clone        = "clone"         // a machine boots from a copy of a node's system disk
	PausedHost   = "paused-host"   // a virtual host is paused, its clocks and its watchdog with it, and goes on later
	Orphan       = "orphan"        // libvirtd restarts and forgets a guest, whose process runs on
	Rack         = "rack"          // two fifths of the hosts are dark at once, and somebody says so by one command
	SitePower    = "site-power"    // all hosts and coordinators lose their power, and the storage comes back last
	SlowDisk     = "slow-disk"     // each write of a coordinator takes seconds
	Certs        = "certs"         // the certificate of an agent ends, and is renewed later
	DeafLeader   = "deaf-leader"   // no agent reaches a coordinator, which all the others do
	Clock        = "clock"         // the clock of a coordinator jumps, or is years ahead
	OldAgent     = "old-agent"     // the agent of a host is of the release before
	Removed      = "removed"       // the machine of a node that was removed thaws, with a guest
	Sick         = "sick"          // the libvirtd of a host hangs for many minutes, and its agent answers
	LyingFence   = "lying-fence"   // a fence device says that a machine is off which runs on, and switches it off later or never
	Killer       = "killer"        // a VM takes its host down soon after it has started there
	Saved        = "saved"         // a guest's memory is kept by libvirt where it ran, and somebody lets it run on later
)

// RackIsOff is somebody who says that the machines of the dark rack are off.
const RackIsOff What = "somebody says that the rack is off"

// beyond has a line for each of them: how it is added to a script. Each draws from random numbers of its own, so that a new one
// leaves the others of a seed as they are. One without a function is drawn elsewhere. FAULTS.md names each in a row of "The world".
var beyond = []struct {
	fault string
	draw  func(*Script, *rand.Rand)
}{
	{WrongMachine, nil}, // with the fence devices
	{NeverBack, drawNeverBack},
	{LyingFence, drawLies},
	{Foreign, drawForeign},
	{Orphan, (*Script).orphan},
	{Rack, drawRack},
	{SitePower, drawSitePower},
	{Certs, drawCerts},
	{Killer, (*Script).drawKiller},
	{UnseenEnd, drawUnseenEnd},
	{Clone, (*Script).clone},
	{PausedHost, (*Script).pause},
	{SlowDisk, slowDisk},
	{Saved, drawSaved},
	{OldAgent, drawOldAgent},
	{Removed, drawRemoved},
	{Sick, drawSick},
	{DeafLeader, deafLeader},
	{Clock, wrongClock}, // clocks that jump are counted here too
	{AilingJournal, befall(JournalFull)},
	{DeafTarget, befall(TargetCut)},
	{Volumes, drawVolumes},
	{NoSpace, drawNoSpace},
	{Restored, drawRestored},
	{BoundGuest, drawBound},
	{ForeignJob, nil}, // with those
	{LyingPool, drawLyingPool},
	{LocalFile, drawLocal},
	{Drift, drawDrift},
	{Sizes, drawSizes},
	{Resized, drawResized},
	{BothAway, drawBothAway},
}

// Faults are the names of all of them, in the order in which they are counted and printed.
func Faults() []string {
	names := make([]string, 0, len(beyond))
	for _, one := range beyond {
		names = append(names, one.fault)
	}
	return names
}

// goBeyond adds the faults of the world around Berth.
func (s *Script) goBeyond() {
	for _, one := range beyond {
		if one.draw == nil {
			continue
		}
		own := fnv.New64a()
		_, _ = own.Write([]byte(one.fault))
		one.draw(s, rand.New(rand.NewPCG(s.Seed, own.Sum64())))
	}
}

// Draws tells whether something happens in the script.
func (s *Script) Draws(what What) bool {
	return slices.ContainsFunc(s.Happenings, func(h Happening) bool { return h.What == what })
}

// sometime is any moment while things go wrong.
func (s *Script) sometime(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(s.Chaos))) }
