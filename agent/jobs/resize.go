package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/units"
)

const (
	// giveBackLimit is how long the answer waits for a guest that gives memory back. It may go on after that.
	giveBackLimit = 10 * time.Second
	// giveBackFirst is between the first two looks how far it is: most guests are done in milliseconds. It doubles with each look, up to
	// giveBackEvery: each asks QEMU.
	giveBackFirst = 10 * time.Millisecond
	giveBackEvery = 500 * time.Millisecond
)

// doResize changes the size of a guest that runs. Repeating it is harmless: what is as the order says already stays so.
func doResize(j *job) done {
	seen := j.firstLook(haste)
	if err := j.stands(seen); err != nil {
		return j.notStood(seen, err)
	}
	if !seen.in(hypervisor.Running) && !seen.in(hypervisor.Paused) {
		return j.notStood(seen, otherState(seen))
	}
	wanted := j.command.GetResize()
	if has := balloonOf(j); has != nil && sameMemory(*has, wanted.GetMemoryBytes()) && sameVCPUs(seen, wanted.GetVcpus()) {
		return done{result: success(j.command, seen.message())}
	}
	ctx, cancel := j.limited(actLimit)
	err := j.Hypervisor.Resize(ctx, j.command.GetVmId(), j.command.GetEpoch(), wanted.GetMemoryBytes(), int(wanted.GetVcpus()))
	cancel()
	if err != nil {
		seen := j.await(haste, sight.known)
		if !seen.known() || errors.Is(err, hypervisor.ErrAmbiguous) || errors.Is(err, hypervisor.ErrUnavailable) {
			return done{result: doubt(j.command, err, seen.message()), again: true, begun: true}
		}
		return done{result: refused(j.command, err, seen.message())}
	}
	notes := notYet(j, wanted.GetMemoryBytes())
	seen = j.look()
	if seen.known() && !sameVCPUs(seen, wanted.GetVcpus()) {
		notes = append(notes, fmt.Sprintf("it has %d vCPUs, not %d yet", seen.domain.VCPUs, wanted.GetVcpus()))
	}
	answer := success(j.command, seen.message())
	answer.Note = strings.Join(notes, "; ")
	return done{result: answer}
}

func sameVCPUs(seen sight, wanted int32) bool { return wanted <= 0 || seen.domain.VCPUs == int(wanted) }

// sameMemory compares as libvirt counts, in KiB.
func sameMemory(has, wanted int64) bool { return wanted <= 0 || (has+1023)/1024 == (wanted+1023)/1024 }

// notYet waits until the guest has as much memory as it is to have, and tells what it has if it has other than that.
func notYet(j *job, wanted int64) []string {
	if wanted <= 0 {
		return nil
	}
	deadline := j.now().Add(giveBackLimit)
	for wait := giveBackFirst; ; wait = min(2*wait, giveBackEvery) {
		has := balloonOf(j)
		switch {
		case has != nil && sameMemory(*has, wanted):
			return nil
		case j.now().Before(deadline) && j.sleep(wait) == nil:
		case has == nil:
			return []string{"how much memory the guest has now is not known"}
		default:
			return []string{fmt.Sprintf("its guest was asked for %v, and has %v so far", units.Bytes(wanted), units.Bytes(*has))}
		}
	}
}

// balloonOf is the memory that the balloon of the job's guest leaves it; nil: not known.
func balloonOf(j *job) *int64 {
	ctx, cancel := j.limited(actLimit)
	defer cancel()
	has, err := j.Hypervisor.Balloon(ctx, j.command.GetVmId())
	if err != nil {
		return nil
	}
	return &has
}
