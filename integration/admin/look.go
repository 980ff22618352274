package admin

import (
	"fmt"
	"slices"
	"strings"
)

// look is what is true of a guest, and what Berth shows of it, at one moment.
type look struct {
	// What is true. Host and state are of the process; both are empty where there is none.
	host   string
	paused bool
	// Of its domain there.
	disks map[string]string // by target
	size  int64             // of its first disk, in bytes, as it sees it
	nics  []string          // MAC addresses
	vcpus int
	most  int // of them, without a restart
	// Of its domains anywhere.
	saved     []string // hosts that keep its memory
	defined   []string // hosts that have a definition
	autostart []string // hosts that start it when they boot
	left      []string // hosts where libvirt has a domain of it that is not shut off, and nothing executes it: what a migration left

	// What Berth shows.
	shown shown
	busy  bool // an operation works on it
	// What its record has.
	recorded     map[string]string // disks by target
	recordedNICs []string
	adopted      bool
}

// shown is what `berth vm show` tells.
type shown struct {
	state, node string
	condition   string
	vcpus       int // of what runs
	text        string
}

// unexplained is all that is true and that Berth does not tell.
func (l *look) unexplained() []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	tells := func(words string) bool { return strings.Contains(l.shown.text, words) }

	switch s := &l.shown; {
	case l.host == "" && (s.state == "RUNNING" || s.state == "PAUSED"):
		add("it has no process, and is shown %s on %s", s.state, s.node)
	case l.host == "":
	case l.paused && s.state != "PAUSED" || !l.paused && s.state != "RUNNING":
		if s.condition == "" || !tells(l.host) {
			add("it is on %s, paused: %t, and is shown %s, without a condition that names that host", l.host, l.paused, s.state)
		}
	case s.node != l.host && !strings.Contains(s.condition, l.host):
		add("it is on %s, and is shown on %s", l.host, s.node)
	}
	for _, host := range l.saved {
		if l.host == "" && (!tells(host) || !tells("saved") && !tells("keeps its memory")) {
			add("its memory is saved on %s", host)
		}
	}
	for _, host := range l.autostart {
		if l.shown.condition == "" { // of several things Berth tells the most urgent one
			add("%s starts it whenever it boots (autostart)", host)
		}
	}
	if l.host == "" || l.paused && tells("paused-migration on "+l.host) { // whose it is a person has to say first
		return found
	}
	for _, target := range sorted(l.disks) {
		if file := l.disks[target]; l.recorded[target] != file && !tells(file) {
			add("its disk %s is %s, its record has %q", target, file, l.recorded[target])
		}
	}
	for _, target := range sorted(l.recorded) {
		if l.disks[target] == "" && !tells(l.recorded[target]) {
			add("it has no disk %s, its record has %s", target, l.recorded[target])
		}
	}
	for _, mac := range l.nics {
		if !slices.Contains(l.recordedNICs, mac) && !tells(mac) {
			add("it has a network interface %s", mac)
		}
	}
	// Those that can be plugged in are promised to it, and shown.
	if l.shown.state != "STOPPED" && (l.shown.vcpus < l.vcpus || l.shown.vcpus > l.most) {
		add("it has %d vCPUs and can have %d, and is shown with %d", l.vcpus, l.most, l.shown.vcpus)
	}
	if l.adopted && len(l.defined) == 0 && l.shown.condition == "" { // likewise: that it stands still comes first
		add("libvirt has no definition of it any more")
	}
	return found
}

// answer is what a person was told last.
type answer struct {
	said  string
	again int // how often it was the answer before, without another one in between
}

// after is what a person goes by who has done something, with this exit code, and was told this.
func (a answer) after(verb string, code int, said string) answer {
	switch {
	case verb == "restart libvirtd", verb == "berth accept" && code == 0:
		return answer{} // a new libvirtd takes half a minute to find out that a process does not speak; what was asked for is done
	case verb != "berth start": // what was done is no answer; what hangs is given up
		a.again += patient * code
		return a
	case said == a.said:
		a.again++
		return a
	default:
		return answer{said: said}
	}
}

// patient is how often a person tries again, a second or two later each time, who is told that something goes by itself.
const patient = 30

// next is what a person does next, and on which host, who wants the guest stopped and started again and reads what Berth says: what it
// shows of the guest, and what it answered last. No host is the one where the guest is or was last.
func (l *look) next(told answer) (verb, host string) {
	says := func(command string) bool { return strings.Contains(l.shown.text, command) }
	switch {
	case l.host != "" && l.paused && says("'virsh resume "):
		return "virsh resume", ""
	case l.host != "" && says("'berth vm adopt "):
		return "berth adopt", ""
	case l.host != "":
		return "berth stop --force", ""
	case strings.Contains(told.said, "'berth vm accept "):
		return "berth accept", ""
	case len(l.left) > 0 && told.again >= patient && strings.Contains(told.said, "'systemctl restart libvirtd'"):
		return "restart libvirtd", l.left[0]
	case len(l.left) > 0 && told.again < patient && strings.Contains(told.said, l.left[0]) && strings.Contains(told.said, "'virsh destroy"):
		return "virsh destroy", l.left[0]
	case len(l.saved) > 0:
		return "virsh start", ""
	default:
		return "berth start", ""
	}
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
