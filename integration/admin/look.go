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
	nics  []string          // MAC addresses
	vcpus int
	most  int // of them, without a restart
	// Of its domains anywhere.
	saved     []string // hosts that keep its memory
	defined   []string // hosts that have a definition
	autostart []string // hosts that start it when they boot

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
		if l.host == "" && (!tells("saved") || !tells(host)) {
			add("its memory is saved on %s", host)
		}
	}
	for _, host := range l.autostart {
		if l.shown.condition == "" { // of several things Berth tells the most urgent one
			add("%s starts it whenever it boots (autostart)", host)
		}
	}
	if l.host == "" {
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
	if l.adopted && len(l.defined) == 0 && !tells("definition") {
		add("libvirt has no definition of it any more")
	}
	return found
}

// next is what a person does next, who wants the guest stopped and started again and reads what Berth says.
func (l *look) next() string {
	says := func(command string) bool { return strings.Contains(l.shown.text, command) }
	switch {
	case l.host != "" && l.paused && says("'virsh resume "):
		return "virsh resume"
	case l.host != "" && says("'berth vm adopt "):
		return "berth adopt"
	case l.host != "":
		return "berth stop --force"
	case len(l.saved) > 0:
		return "virsh start"
	default:
		return "berth start"
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
