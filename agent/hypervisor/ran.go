package hypervisor

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"berth/shared/domxml"
)

// Ran is what a guest of Berth's runs with.
type Ran struct {
	Epoch   uint64
	Devices []domxml.Device // nil: they cannot be told
	Found   bool            // so it was found; it may have been changed before
	Ended   bool            // it had ended by then
}

// RanNews tells what of guests' devices is news in the files that libvirt keeps of their state. The zero value is ready.
type RanNews struct {
	told map[string][sha256.Size]byte // by guest
	last map[string]ended             // of those that have ended, at most mostEnded
	ends uint64                       // how many ends there were
}

// ended is how a guest ran that has ended.
type ended struct {
	ran  [sha256.Size]byte
	turn uint64 // which end it was
}

// mostEnded is of how many guests that have ended it is remembered how they ran. The files of so many are kept at most, so no other one
// can be told again.
const mostEnded = 1024

// Missed says that files may have been missed until now: all that are there are told again.
func (r *RanNews) Missed() { r.told = nil }

// In is the event that tells what a guest runs with, by libvirt's file of it. It is false if the file says nothing of that, or what it has
// said before. A file without text is gone. Kept is one that was read before its guest ended: it says nothing of one that is back.
func (r *RanNews) In(name, file string, found, kept bool) (event Event, news bool) {
	status, text, domain := strings.Cut(file, "<domain ")
	if waits(status) {
		return event, false
	}
	end := strings.LastIndex(text, "</domain>")
	if !domain || end < 0 {
		if is, was := r.told[name]; was && !kept {
			r.end(name, is)
		}
		return event, false
	}
	text = "<domain " + text[:end] + "</domain>"
	mark, ours := domxml.Metadata(text)
	devices := text[max(strings.Index(text, "<devices>"), 0):]
	is := sha256.Sum256([]byte(strconv.FormatUint(mark.Epoch, 10) + devices))
	if !ours || r.told[name] == is {
		return event, false
	}
	if _, back := r.told[name]; kept && (back || r.last[name].ran == is) {
		return event, false
	}
	if r.told == nil {
		r.told = map[string][sha256.Size]byte{}
	}
	if r.told[name] = is; kept {
		r.end(name, is)
	}
	attached, err := AttachedIn(text)
	info, unread := domxml.Parse(text)
	if unread != nil || info.UUID == "" {
		return event, false
	}
	if err != nil {
		attached.Devices = nil
	}
	ran := &Ran{Epoch: mark.Epoch, Devices: attached.Devices, Found: found, Ended: kept}
	return Event{UUID: info.UUID, Name: name, Kind: EventRan, Ran: ran}, true
}

// waits tells, by the head of libvirt's file, whether the guest has not run yet, or has just stopped here to go on elsewhere: a copy that a
// migration makes, and one whose start fails, write to no disk, and what they were to run with is nobody's last run.
func waits(status string) bool {
	for _, reason := range []string{"starting up", "migration"} {
		if strings.Contains(status, "<domstatus state='paused' reason='"+reason+"'") {
			return true
		}
	}
	return false
}

func (r *RanNews) end(name string, ranWith [sha256.Size]byte) {
	delete(r.told, name)
	if r.last == nil {
		r.last = map[string]ended{}
	}
	r.ends++
	r.last[name] = ended{ranWith, r.ends}
	if len(r.last) <= mostEnded {
		return
	}
	first := name
	for other, is := range r.last {
		if is.turn < r.last[first].turn {
			first = other
		}
	}
	delete(r.last, first)
}
