package admin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// tool is what a step is done with.
type tool int

const (
	berth tool = iota
	virsh
	shell // several commands of virsh, on the host
	fault
)

// effect is what may become of a guest, as its processes show it.
type effect uint8

const (
	begins  effect = 1 << iota // a process executes it that has not come by a migration
	ends                       // its process is gone
	moves                      // it is executed on another host
	pauses                     // its process executes it no more
	resumes                    // and does again
)

// halts is a short standstill.
const halts = pauses | resumes

func (e effect) String() string {
	var words []string
	for i, word := range []string{"begins", "ends", "moves", "stands still", "goes on"} {
		if e&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// power is what the administrator takes a guest for.
type power int

const (
	off power = iota
	on
	paused
	saved
)

// mind is what the administrator believes of the guest. It decides what is worth trying, and may be wrong.
type mind struct {
	power   power
	defined bool     // libvirt keeps a definition of it
	layers  int      // snapshots above the first disk
	disks   []string // that were attached
	nics    []string
	marked  bool // its devices differ from its record
	faults  int
}

// step is one thing that the administrator does.
type step struct {
	verb *verb
	// with is what it is done with: the name of a new file, the target of a disk, the address of an interface, a size.
	with string
	// twin: the next step is begun before this one has ended.
	twin bool
	// at is the host on which it is done; none is the one where the guest is or was last.
	at string
	// rest is how long nothing is done afterwards, in milliseconds.
	rest int
}

func (s step) String() string {
	text := s.verb.name
	if s.with != "" {
		text += " " + s.with
	}
	if s.twin {
		text += " &"
	}
	return text
}

// script is all that a seed does.
type script struct {
	seed    uint64
	adopted bool // the guest was defined and started with virsh, and Berth has taken it over; otherwise Berth has started it
	ha      bool
	local   bool // its disk is on its first host only
	steps   []step
	try     int // 0: as it was drawn; others are shorter, see shorten
}

// name is that of the seed's guest.
func (s *script) name() string {
	if s.try > 0 {
		return fmt.Sprintf("w%dx%d", s.seed, s.try)
	}
	return fmt.Sprintf("w%d", s.seed)
}

func (s *script) String() string {
	text := "started by Berth"
	if s.adopted {
		text = "adopted"
	}
	if s.ha {
		text += ", highly available"
	}
	if s.local {
		text += ", on a disk of its host"
	}
	for _, step := range s.steps {
		text += "; " + step.String()
	}
	return text
}

// draw is the script of a seed: always the same one.
func draw(seed uint64) script {
	random := rand.New(rand.NewPCG(seed, 0x6265727468))
	s := script{seed: seed, adopted: random.IntN(2) == 0, local: random.IntN(4) == 0}
	s.ha = !s.local && random.IntN(4) == 0
	believed := mind{power: on, defined: s.adopted}
	for range 6 + random.IntN(6) {
		next := drawStep(random, &believed, &s)
		s.steps = append(s.steps, next)
	}
	s.apart()
	return s
}

// drawStep chooses what is done next, most of the time something that makes sense.
func drawStep(random *rand.Rand, m *mind, s *script) step {
	blind := random.IntN(12) == 0
	total := 0
	fits := make([]bool, len(verbs))
	for i := range verbs {
		fits[i] = verbs[i].fits(m) || blind && verbs[i].by != fault
		if fits[i] {
			total += verbs[i].weight
		}
	}
	left := random.IntN(total)
	chosen := slices.IndexFunc(fits, func(bool) bool { return true })
	for i := range verbs {
		if !fits[i] {
			continue
		}
		if left -= verbs[i].weight; left < 0 {
			chosen = i
			break
		}
	}
	v := &verbs[chosen]
	one := step{verb: v, rest: []int{0, 0, 200, 1000, 3000}[random.IntN(5)]}
	if v.with != nil {
		one.with = v.with(random, m, len(s.steps))
	}
	if v.does != nil {
		v.does(m, one.with)
	}
	one.twin = v.by != fault && random.IntN(8) == 0
	one.twin = one.twin && !v.shifts
	return one
}
