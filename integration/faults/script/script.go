package script

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Script is a run: a seed, a site, and what happens to it.
type Script struct {
	Seed       uint64        `json:"seed"`
	Found      string        `json:"found,omitempty"` // what the run has shown, for people
	Hosts      int           `json:"hosts"`
	HostMemory int64         `json:"host_memory"` // bytes
	Members    int           `json:"members"`
	VMs        int           `json:"vms"`
	Chaos      time.Duration `json:"chaos"` // after this time nothing goes wrong any more
	Mix        Mix           `json:"mix"`
	// Fences are how the hosts are fenced, one by one. With none nobody reports what it shows, and nothing is fenced, followed
	// or restarted. HA is how many of the VMs are to be highly available, the first ones.
	Fences     []model.FenceMethod `json:"fences,omitempty"`
	HA         int                 `json:"ha,omitempty"`
	Rack       int                 `json:"rack,omitempty"`       // how many hosts, the first ones, stand in one rack; the others in another
	Disks      int                 `json:"disks,omitempty"`      // how many of the VMs have a disk on their node, the first ones
	SickAfter  time.Duration       `json:"sick_after,omitempty"` // until such a host is fenced; 0: none is
	Old        []int               `json:"old,omitempty"`        // hosts whose agents are of the release before
	Liars      []int               `json:"liars,omitempty"`      // hosts that have another storage under the name of a shared pool
	OldFiles   bool                `json:"old_files,omitempty"`  // there are files of the same names there
	Drifts     bool                `json:"drifts,omitempty"`     // people change with virsh what guests have
	Sizes      bool                `json:"sizes,omitempty"`      // people change with virsh how large guests are
	Local      int                 `json:"local,omitempty"`      // how many VMs have a file on their node's own file system, the last ones
	Happenings []Happening         `json:"happenings"`           // in the order of time
}

// FenceTimeout is that of one call of a fence device; a fencing makes two.
const FenceTimeout = 10 * time.Second

// Mix says how often things go wrong by themselves, in so many of a thousand cases where nothing else is said.
type Mix struct {
	Wild         bool          `json:"wild,omitempty"` // messages are late, lost, double and out of order
	Delay        time.Duration `json:"delay"`          // of a message, at most
	Lost         int           `json:"lost,omitempty"`
	Doubled      int           `json:"doubled,omitempty"`
	CallFails    int           `json:"call_fails,omitempty"`
	AnswersLost  int           `json:"answers_lost,omitempty"` // of libvirt
	LateCalls    int           `json:"late_calls,omitempty"`   // calls that a hung daemon carries out when nobody waits any more
	StartFails   int           `json:"start_fails,omitempty"`
	PrepareFails int           `json:"prepare_fails,omitempty"`
	PersistFails int           `json:"persist_fails,omitempty"`
	ConfirmFails int           `json:"confirm_fails,omitempty"`
	ReplyLost    int           `json:"reply_lost,omitempty"` // of Finish
	JournalFails int           `json:"journal_fails,omitempty"`
	CopyLeast    time.Duration `json:"copy_least"`
	CopyMost     time.Duration `json:"copy_most"`
	AgentBack    time.Duration `json:"agent_back"` // a dead agent is back after this time, at most

	FenceTakes       time.Duration `json:"fence_takes,omitempty"` // a call of a fence device, at most
	FenceFails       int           `json:"fence_fails,omitempty"`
	FenceHangs       int           `json:"fence_hangs,omitempty"`
	FenceAnswersLost int           `json:"fence_answers_lost,omitempty"`

	FenceLies         int `json:"fence_lies,omitempty"`          // it says "off", and the machine is on and reached by others
	FenceStrikesOther int `json:"fence_strikes_other,omitempty"` // its address is that of another machine, which answers
}

// Quiet is the mix of a site where nothing goes wrong.
func (m Mix) Quiet() Mix {
	return Mix{Delay: 2 * time.Millisecond, CopyLeast: time.Second, CopyMost: 5 * time.Second, AgentBack: time.Second, FenceTakes: time.Second}
}

// Happening is one thing that happens to a site: an operator's wish or a fault.
type Happening struct {
	At    time.Duration `json:"at"`
	What  What          `json:"what"`
	Host  int           `json:"host,omitempty"`
	Other int           `json:"other,omitempty"` // another host, or a coordinator
	VM    int           `json:"vm,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	Hard  bool          `json:"hard,omitempty"`
}

// UUIDOf is the UUID of a VM.
func UUIDOf(vm int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", vm) }

// What happens.
type What string

// What operators do, and what faults there are.
const (
	Start       What = "start"
	Stop        What = "stop"
	Migrate     What = "migrate"
	Reboot      What = "reboot"
	Cancel      What = "cancel"
	AgentDies   What = "agent dies"
	AgentWrites What = "agent dies at its journal" // Hard: after the entry is on the disk
	DaemonDies  What = "daemon dies"
	DaemonHangs What = "daemon hangs"
	GuestDies   What = "guest dies"
	PowerCut    What = "power cut"
	Freeze      What = "freeze"
	CutHosts    What = "cut between hosts"
	CutMember   What = "cut from a coordinator"
	LeaderDies  What = "leader dies"
	LeaderHangs What = "leader hangs"
	LeaderCut   What = "leader is cut from its peers"
	Transfer    What = "leadership is handed on"
	ClockJumps  What = "clock jumps" // For: by that
	Suspend     What = "virsh suspend"

	// Only where nodes are fenced.
	CutAll    What = "cut from the coordinators"
	Word      What = "somebody says that it is off"
	AskStops  What = "leader stands still when it asks a device" // Hard: it dies
	FenceHost What = "fence by hand"                             // Hard: also while it answers
)

var faults = []What{
	AgentDies, AgentWrites, DaemonDies, DaemonHangs, GuestDies, PowerCut, Freeze, CutHosts, CutMember, LeaderDies, LeaderHangs,
	LeaderCut, Transfer, ClockJumps, Suspend,
}

// Generate makes the script of a seed. Each seed has a mix of faults of its own.
func Generate(seed uint64) Script {
	r := rand.New(rand.NewPCG(seed, 0xfa0175))
	pick := func(some ...int) int { return some[r.IntN(len(some))] }
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(r.Int64N(int64(most-least)))
	}
	s := Script{
		Seed: seed, Hosts: 3 + r.IntN(4), HostMemory: int64(8 * units.GiB), Members: pick(1, 3, 3, 5),
		Chaos: between(2*time.Minute, 5*time.Minute),
	}
	switch {
	case seed%1000 == 999:
		s.Hosts = 200 + r.IntN(200)
	case r.IntN(10) == 0:
		s.Hosts = 8
	}
	s.VMs = 1 + r.IntN(min(2*s.Hosts, 6))
	s.disturb(r)
	var mix []What
	for _, fault := range faults {
		if r.IntN(3) == 0 {
			mix = append(mix, fault)
		}
	}
	if len(mix) == 0 {
		mix = slices.Clone(faults)
	}
	every, wishes := pickOf(r, 2*time.Second, 5*time.Second, 12*time.Second), 6*time.Second
	if r.IntN(5) < 2 && s.Hosts <= 8 {
		s.fence(r)
		every, wishes = pickOf(r, 10*time.Second, 25*time.Second, 50*time.Second), 10*time.Second
		mix = slices.DeleteFunc(mix, func(What) bool { return r.IntN(2) == 0 })
		for range 3 {
			mix = append(mix, silences[r.IntN(len(silences))])
		}
	}
	wish := func(at time.Duration) {
		what := []What{Start, Start, Start, Stop, Stop, Migrate, Migrate, Migrate, Migrate, Cancel, Reboot}[r.IntN(11)]
		s.Happenings = append(s.Happenings, Happening{At: at, What: what, VM: r.IntN(s.VMs), Hard: r.IntN(2) == 0})
	}
	for i := range s.VMs {
		s.Happenings = append(s.Happenings, Happening{At: between(0, 2*time.Second), What: Start, VM: i})
	}
	for at := time.Duration(0); at < s.Chaos; at += between(0, wishes) {
		wish(at)
	}
	for at := between(0, every); at < s.Chaos; at += between(every/4, 2*every) {
		h := Happening{
			At: at, What: mix[r.IntN(len(mix))], Host: r.IntN(min(s.Hosts, 8)), VM: r.IntN(s.VMs), For: between(
				100*time.Millisecond, 45*time.Second,
			),
			Hard: r.IntN(2) == 0,
		}
		switch h.What {
		case CutHosts:
			h.Other = r.IntN(min(s.Hosts, 8))
		case CutMember:
			h.Other = r.IntN(s.Members)
		case ClockJumps:
			h.Other = r.IntN(s.Members)
			h.For = pickOf(r, -time.Hour, -time.Minute, time.Minute, time.Hour)
		case DaemonDies, DaemonHangs:
			if h.For = between(100*time.Millisecond, 15*time.Second); r.IntN(4) == 0 {
				h.For = between(time.Minute, 3*time.Minute)
			}
		case AgentDies:
			h.For = between(100*time.Millisecond, 10*time.Second)
		case PowerCut, Freeze, CutAll:
			if len(s.Fences) > 0 {
				h.For = between(time.Second, pickOf(r, time.Minute, 4*time.Minute))
			}
			if r.IntN(3) == 0 && h.What == PowerCut {
				s.Happenings = append(s.Happenings, Happening{At: h.At + between(20*time.Second, 2*time.Minute), What: Word, Host: h.Host})
			}
		}
		s.Happenings = append(s.Happenings, h)
	}
	s.goBeyond()
	slices.SortStableFunc(s.Happenings, func(a, b Happening) int { return cmp.Compare(a.At, b.At) })
	return s
}

// disturb says how often things go wrong by themselves.
func (s *Script) disturb(r *rand.Rand) {
	pick := func(some ...int) int { return some[r.IntN(len(some))] }
	s.Mix = Mix{
		Wild: r.IntN(2) == 0, Delay: pickOf(r, time.Millisecond, 50*time.Millisecond, time.Second),
		CopyLeast: 200 * time.Millisecond, CopyMost: pickOf(
			r, time.Second, 10*time.Second, 40*time.Second,
		), AgentBack: pickOf(r, 2*time.Second, 20*time.Second),
	}
	for _, rate := range []*int{
		&s.Mix.CallFails, &s.Mix.AnswersLost, &s.Mix.StartFails, &s.Mix.PrepareFails, &s.Mix.PersistFails, &s.Mix.ConfirmFails,
		&s.Mix.ReplyLost, &s.Mix.JournalFails,
	} {
		if r.IntN(2) == 0 {
			*rate = pick(10, 50, 200)
		}
	}
	s.Mix.LateCalls = pick(0, 500, 1000)
	if s.Mix.Wild {
		s.Mix.Lost, s.Mix.Doubled = pick(0, 20, 200), pick(0, 50, 300)
	}
}

// silences are what makes nodes silent; more than the others it is what happens where nodes are fenced.
var silences = []What{PowerCut, PowerCut, Freeze, Freeze, CutAll, CutAll, CutAll, FenceHost, AskStops}

// fence makes it a site whose nodes are fenced, and some of whose VMs are to be highly available.
func (s *Script) fence(r *rand.Rand) {
	pick := func(some ...int) int { return some[r.IntN(len(some))] }
	if r.IntN(3) == 0 {
		s.Hosts = pick(10, 12)
	}
	s.Chaos += time.Duration(r.Int64N(int64(4 * time.Minute)))
	methods := []model.FenceMethod{
		model.FenceCommand, model.FenceCommand, model.FenceCommand, model.FenceWatchdog, model.FenceWatchdog, model.FenceManual, model.FenceNone,
	}
	for range s.Hosts {
		s.Fences = append(s.Fences, methods[r.IntN(len(methods))])
	}
	s.HA = 1 + r.IntN(s.VMs)
	s.Mix.FenceTakes = pickOf(r, 100*time.Millisecond, FenceTimeout, FenceTimeout)
	s.Mix.FenceFails, s.Mix.FenceHangs, s.Mix.FenceAnswersLost = pick(0, 0, 200), pick(0, 0, 200), pick(0, 0, 200)
	s.Mix.FenceStrikesOther = pick(0, 0, 0, 0, 300)
}

func pickOf(r *rand.Rand, some ...time.Duration) time.Duration { return some[r.IntN(len(some))] }
