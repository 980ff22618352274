package evidence

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// Sighting is what the nodes show of a VM that nothing is being done to, at one moment.
type Sighting struct {
	Copies []Copy // of nodes that are heard and could list their domains, what is off included; by the nodes' names
	// HolderLacks tells that the VM's holder has listed its domains since it got the VM, and none of them is the VM.
	HolderLacks bool
	HolderOff   bool
	// HolderSilent tells that its holder does not say what it has, and HolderLeft that it showed the VM no more when it did last.
	HolderSilent, HolderLeft bool
	Holder                   string            // name of the holder
	SincePause               bool              // the holder has listed its domains since somebody paused the VM with Berth
	Starved                  *starved          // of its holder's copy that stands still for want of space; nil: it does not
	Astray                   string            // why its disks are not where it is; empty: they are
	Cause                    model.EndingCause // why its guest ended there, if its holder tells
	Answer                   Answer            // of one that its holder lacks, or that is missing: whether it may be started
}

// Verdict is what has become of a VM beside Berth.
type Verdict string

// What may have become of a VM beside Berth.
const (
	AsRecorded  Verdict = "as recorded"
	Undecided   Verdict = "undecided"   // what is shown does not tell, or is in the middle of something
	OutOfBand   Verdict = "out of band" // people are told; nothing is done
	StoppedHere Verdict = "stopped"     // it runs nowhere any more
	MovedAway   Verdict = "moved"       // its only copy runs on another node than the holder, who does not have it
	HasRoom     Verdict = "has room"    // it stands still for want of space, and there is some now
	HasCrashed  Verdict = "has crashed" // what is left of it is in the way of its restart
	RunsOn      Verdict = "runs on"     // somebody had paused it with Berth, and it runs
	CameBack    Verdict = "came back"   // it is held by nobody, is to run, and its only copy does
)

// Finding is a verdict with what follows.
type Finding struct {
	Verdict   Verdict
	Condition model.Condition // of OutOfBand and StoppedHere, with the next step
	Why       string          // what the condition says, as an event tells it
	Node      string          // of MovedAway, CameBack and HasCrashed: ID of the node that has it
	// Leftovers are definitions of the VM on nodes that do not have it: each would be a second VM if somebody started it.
	Leftovers []Copy
	// Missing tells that any node may have it that is not heard: nobody has seen how it left its holder.
	Missing bool
	// HolderOff tells that its holder is proven to be off. Such a holder need not refuse it first.
	HolderOff bool
}

// asItShouldBe tells that nothing follows for a VM whose record says nothing else.
func (f *Finding) asItShouldBe() bool {
	return f.Verdict == AsRecorded && len(f.Leftovers) == 0 && f.Condition == model.Condition{}
}

// Beside judges what the nodes show of a VM that no operation works on. It decides nothing by one look: whoever asks believes
// what two looks show alike.
func Beside(vm model.VM, seen Sighting) Finding {
	alive := Living(seen.Copies)
	if at := slices.IndexFunc(alive, Copy.IsOrphan); at >= 0 {
		return alarm(alive[at].Node, "%s", alive[at].Orphaned())
	}
	if vm.Holder == "" {
		return besideNobody(vm, alive, seen)
	}
	if at := slices.IndexFunc(alive, func(c Copy) bool { return c.Node == vm.Holder }); at >= 0 {
		finding := besideHolder(vm, alive[at], seen)
		if len(alive) > 1 {
			finding = besideStill(alive, at)
		}
		if saved, found := savedOn(seen.Copies, vm.Holder); found && finding.Verdict == AsRecorded {
			finding = alarm(saved.Node, "%s", saved.keptBeside())
		}
		finding.Leftovers = leftovers(vm, seen.Copies)
		return finding
	}
	return besideLackingHolder(vm, alive, seen)
}

// PausedOn says that a VM is paused on a node, by whom if that is known, and how it runs on.
func PausedOn(node string, domain *model.Domain, vm *model.VM) string {
	switch reason := domain.Reason; {
	case domain.State == model.DomainPausedMigration:
		return fmt.Sprintf("paused by a migration on %s: 'virsh resume %s' there lets it run, if it runs nowhere else", node, vm.Name)
	case reason == model.ReasonIOError:
		return pausedText(node, vm.Name)
	case vm.StandsByOrder(domain):
		return fmt.Sprintf("%s on %s: 'berth vm resume %s' lets it run", vm.Paused.Text(), node, vm.Name)
	case reason != "":
		return fmt.Sprintf("paused on %s (%s): 'berth vm resume %s' lets it run", node, reason, vm.Name)
	}
	return fmt.Sprintf("paused on %s: 'berth vm resume %s' lets it run", node, vm.Name)
}

// unheard are the names of the nodes that could have the VM and do not tell what they have.
func (s *Sighting) unheard() []string {
	var names []string
	for _, word := range s.Answer.InTheWay() {
		switch word.Standing {
		case Silent, CannotTell, Contradicts:
			names = append(names, word.Name)
		}
	}
	return names
}

// follows tells whether the only copy of a VM that nodes show is followed. One that stands still for want of space has run there, and is
// let run on once it is followed; a newer one must not run on a node that does not tell.
func (s *Sighting) follows(one *Copy, vm *model.VM) bool {
	elsewhere := func(word Word) bool { return word.Node != one.Node }
	starves := one.Is(vm) && one.Domain.State == model.DomainPaused && one.Domain.Reason == model.ReasonIOError
	return one.followed(vm) || starves && len(s.Answer.Words) > 0 && !slices.ContainsFunc(s.Answer.InTheWay(), elsewhere)
}

// besideStill judges a VM of which another node shows a copy beside its holder's. Mostly somebody migrates it, or it runs twice: that has
// its own watch. But where the holder's stands still without a job, for want of space or by its owner, no watch sees a second one run.
func besideStill(alive []Copy, holder int) Finding {
	here := &alive[holder].Domain
	runs := slices.ContainsFunc(alive, func(c Copy) bool { return c.Domain.State == model.DomainRunning })
	if here.State != model.DomainPaused || here.JobActive || !runs {
		return Finding{Verdict: Undecided}
	}
	return alarm(alive[holder].Node, "it is %s: both are kept, and none is let run on by itself; end all but one with 'virsh destroy' there",
		Places(alive))
}

func besideNobody(vm model.VM, alive []Copy, seen Sighting) Finding {
	unheard := seen.unheard()
	switch {
	case len(alive) == 0 && len(unheard) > 0:
		return alarm("", "nobody has seen how it left its node, and %s, where somebody may have moved it, cannot be asked: "+
			"'berth vm why-not-started %s' says what is missing", strings.Join(unheard, ", "), vm.Name)
	case len(alive) == 0:
		if saved, found := savedOn(seen.Copies, ""); found {
			return alarm(saved.Node, "%s", saved.kept())
		}
		if at := slices.IndexFunc(seen.Copies, func(c Copy) bool { return c.Domain.Autostart }); at >= 0 {
			return alarm(seen.Copies[at].Node, "libvirt on %s starts it when that host boots, and it is stopped: 'virsh autostart --disable %s' "+
				"there keeps it from that", seen.Copies[at].Name, seen.Copies[at].argument())
		}
		return Finding{Verdict: AsRecorded}
	case len(alive) > 1:
		return alarm("", "it is %s, where Berth has not started it: end all but one with 'virsh destroy' there", Places(alive))
	case alive[0].Domain.Name != vm.Name:
		return alarm(alive[0].Node, "%s", alive[0].renamed(vm.Name))
	case seen.follows(&alive[0], &vm) && vm.Desired == model.Running:
		return Finding{Verdict: CameBack, Node: alive[0].Node}
	}
	return alarm(
		alive[0].Node, "it is %s, where Berth has not started it: %s, 'virsh destroy %s' there ends "+
			"it", Places(alive), alive[0].takenBy(&vm), vm.Name,
	)
}

func besideLackingHolder(vm model.VM, alive []Copy, seen Sighting) Finding {
	switch {
	case seen.HolderSilent && len(alive) == 1:
		finding := alarm(vm.Holder, "it is %s, and %s, which holds it, does not say whether it runs it still: 'berth vm why-not-started "+
			"%s' says what is missing", Places(alive), seen.Holder, vm.Name)
		finding.Missing = true
		return finding
	case seen.HolderLeft:
		finding := alarm(vm.Holder, "%s did not run it any more when it was heard last, and somebody may have moved it: 'berth vm "+
			"why-not-started %s' says what is missing", seen.Holder, vm.Name)
		finding.Missing = true
		return finding
	case !seen.HolderLacks && !seen.HolderOff:
		return Finding{Verdict: Undecided}
	case len(alive) > 1:
		return alarm(vm.Holder, "%s does not run it any more, and it is %s: end all but one with 'virsh destroy' "+
			"there", seen.Holder, Places(alive))
	case len(alive) == 1 && alive[0].Domain.Name != vm.Name:
		return alarm(vm.Holder, "%s does not run it any more, and %s", seen.Holder, alive[0].renamed(vm.Name))
	case len(alive) == 1 && seen.follows(&alive[0], &vm):
		return Finding{Verdict: MovedAway, Node: alive[0].Node, HolderOff: seen.HolderOff}
	case len(alive) == 1:
		return alarm(vm.Holder, "%s does not run it any more, and it is %s, not as Berth left it: "+
			"%s", seen.Holder, Places(alive), alive[0].takenBy(&vm))
	}
	if saved, found := savedOn(seen.Copies, ""); found {
		return alarm(saved.Node, "%s", saved.kept())
	}
	if unheard := seen.unheard(); len(unheard) > 0 {
		finding := alarm(vm.Holder, "%s does not run it any more, and %s, where somebody may have moved it, cannot be asked: "+
			"'berth vm why-not-started %s' says what is missing", seen.Holder, strings.Join(unheard, ", "), vm.Name)
		finding.Missing = seen.Answer.Asks
		return finding
	}
	switch {
	case !seen.Answer.May:
		return Finding{Verdict: Undecided, Missing: seen.Answer.Asks} // until every node has listed its domains after this look
	case seen.HolderOff:
		return Finding{Verdict: Undecided} // it is released, as all that the node had
	}
	if seen.Answer.Booted {
		why := fmt.Sprintf("its host %s has booted anew, and it ran there before", seen.Holder)
		return Finding{
			Verdict: StoppedHere, Why: why, Condition: model.Condition{Kind: model.HostBooted, About: vm.Holder, Text: why},
		}
	}
	return besideEnded(vm, seen)
}

// besideEnded judges a guest that has ended where it should be, and runs nowhere.
func besideEnded(vm model.VM, seen Sighting) Finding {
	how, kind, look := "it stopped on %s, and not by Berth", model.OutOfBand, ""
	switch seen.Cause {
	case model.CauseShutDown:
		how = "its guest has shut down on %s, and not by Berth"
	case model.CauseDestroyed:
		how = "somebody has ended it on %s with virsh destroy or the like"
	case model.CausePanicked:
		how, kind, look = "its guest has crashed on %s", model.GuestPanicked, "look at its console and its own logs; "
	case model.CauseProcessDied:
		how, kind = "its QEMU process on %s has died", model.ProcessDied
		look = fmt.Sprintf("/var/log/libvirt/qemu/%s.log and the kernel's log there may say why (out of memory?); ", vm.Name)
	case model.CauseUnknown:
	}
	finding := alarmOf(
		kind, vm.Holder, how+": %s'berth vm start %s' starts it, 'berth vm stop %s' leaves it off", seen.Holder, look, vm.Name, vm.Name,
	)
	finding.Verdict = StoppedHere
	return finding
}

// besideHolder judges a VM that is where it should be.
func besideHolder(vm model.VM, here Copy, seen Sighting) Finding {
	domain := &here.Domain
	switch {
	case !domain.Managed:
		return alarm(here.Node, "Berth's mark is not in its metadata on %s, and Berth touches nothing without it: 'berth vm adopt %s' writes "+
			"it again",
			here.Name, vm.Name)
	case domain.Epoch != vm.Epoch:
		return alarm(
			here.Node, "its metadata on %s say epoch %d, and it is %d: 'berth vm adopt %s' writes a new one", here.Name, domain.Epoch, vm.Epoch,
			vm.Name,
		)
	case domain.Name != vm.Name:
		return alarm(here.Node, "%s", here.renamed(vm.Name))
	case seen.Starved != nil:
		return besideStarved(vm, here, seen.Starved)
	case domain.State == model.DomainCrashed:
		return besideCrashed(vm, here)
	case domain.State == model.DomainPausedMigration, domain.State == model.DomainPaused && !vm.StandsByOrder(domain):
		return alarm(here.Node, "%s", PausedOn(here.Name, domain, &vm))
	case domain.State == model.DomainRunning && vm.Paused != (model.Stand{}) && seen.SincePause:
		why := fmt.Sprintf("runs on %s although it was %s: somebody has let it run beside Berth", here.Name, vm.Paused.Text())
		return Finding{Verdict: RunsOn, Why: why}
	case domain.State == model.DomainRunning && vm.Persistent && !domain.Persistent:
		return alarm(here.Node, "libvirt on %s has no definition of it any more: it runs, and Berth has what it is started with; 'virsh "+
			"define' there keeps it with libvirt again",
			here.Name)
	case domain.Autostart:
		return alarm(here.Node, "libvirt on %s starts it when that host boots, even if it runs elsewhere by then: 'virsh autostart --disable "+
			"%s' there keeps it from that",
			here.Name, vm.Name)
	case seen.Astray != "":
		return alarm(here.Node, "%s", seen.Astray)
	}
	if texts := besideRecord(&vm, here.Name); len(texts) > 0 {
		return alarm(here.Node, "%s", strings.Join(texts, "; and "))
	}
	return Finding{Verdict: AsRecorded}
}

// besideRecord says what of a VM's devices a person should know.
func besideRecord(vm *model.VM, node string) (texts []string) {
	if vm.HA && vm.Bound != "" {
		texts = append(texts, fmt.Sprintf("it is to be highly available, and nothing but %s is known to have all its disks: it would wait "+
			"for that node; 'berth vm show %s' says more", node, vm.Name))
	}
	if len(vm.ChangedBeside()) > 0 && !vm.Drift.Accepted && !vm.Drift.Reverted {
		texts = append(texts, changedBeside(vm))
	}
	return texts
}

// changedBeside says what somebody has changed of a VM's devices, and what follows.
func changedBeside(vm *model.VM) string {
	edits := vm.ChangedBeside()
	texts := make([]string, 0, len(edits))
	for i := range edits {
		texts = append(texts, edits[i].Text())
	}
	return fmt.Sprintf("%s: its next start uses that; 'berth vm accept %s' keeps it so, 'berth vm revert %s' has the next start use its "+
		"record", strings.Join(texts, "; "), vm.Name, vm.Name)
}

// besideStarved judges a guest that stands still for want of space where it should be. Its text says no figures: they change with each
// look.
func besideStarved(vm model.VM, here Copy, s *starved) Finding {
	if s.pool == "" {
		return alarmOf(model.NoRoom, here.Node, "paused on %s because a disk of it failed or found no room: make room where its disks "+
			"are, and 'virsh resume %s' there lets it run", here.Name, vm.Name)
	}
	finding := alarmOf(model.NoRoom, here.Node, "paused on %s because a disk of it failed or found no room: when pool %s there is less "+
		"than %d %% full it runs on by itself; delete or move disks, or make the pool larger; 'virsh resume %s' there lets it run at once",
		here.Name, s.pool, roomFrom, vm.Name)
	if s.room {
		finding.Verdict = HasRoom
	}
	return finding
}

// besideCrashed judges a guest that has crashed, and whose memory its hypervisor has kept. That is an end: if the VM is to be highly
// available it makes way for a restart.
func besideCrashed(vm model.VM, here Copy) Finding {
	if vm.Guarded() && vm.Desired == model.Running {
		finding := alarmOf(
			model.GuestPanicked, here.Node, "its guest has crashed on %s: what is left of it there is removed, and it is restarted", here.Name,
		)
		finding.Verdict, finding.Node = HasCrashed, here.Node
		return finding
	}
	return alarmOf(model.GuestPanicked, here.Node, "its guest has crashed on %s, which keeps its memory for whoever wants to look into "+
		"it ('virsh dump %s FILE --memory-only' there): 'berth vm stop %s' ends that, and 'berth vm start %s' starts it again",
		here.Name, vm.Name, vm.Name, vm.Name)
}

// leftovers are the definitions that carry Berth's mark, on nodes other than the one that runs the VM as recorded.
func leftovers(vm model.VM, copies []Copy) []Copy {
	sure := slices.ContainsFunc(copies, func(c Copy) bool {
		return c.Node == vm.Holder && c.Is(&vm) && c.Domain.State == model.DomainRunning
	})
	return slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool {
		return !sure || c.Node == vm.Holder || c.Domain.State != model.DomainShutoff || !c.Domain.Managed || c.Domain.Epoch > vm.Epoch
	})
}

// outOfBand is before the text of the conditions that the watch writes.
const outOfBand = "out of band: "

// alarm is the finding that somebody has changed a VM on a node; node is an ID, or empty when it is about more than one.
func alarm(node, format string, args ...any) Finding {
	return alarmOf(model.OutOfBand, node, format, args...)
}

// alarmOf is an alarm of a kind of its own.
func alarmOf(kind model.ConditionKind, node, format string, args ...any) Finding {
	why := fmt.Sprintf(format, args...)
	return Finding{Verdict: OutOfBand, Why: why, Condition: model.Condition{Kind: kind, About: node, Text: outOfBand + why}}
}

// IsOutOfBand tells whether a VM's condition says what has become of it without Berth, or that it runs twice: those the
// watch for such changes has written, and only those it takes back.
func IsOutOfBand(condition model.Condition) bool {
	return condition.Beside() || condition.Is(model.RunsTwice)
}
