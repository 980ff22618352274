package admin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	"berth/integration/writer"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// did is a step that was done in these seconds.
func did(name string, from, to int) done {
	return done{step: step{verb: verbNamed(name)}, begun: at(from), ended: at(to)}
}

// resized is somebody who has made a disk so large in this second.
func resized(file, size string, second int) done {
	d := did("virsh blockresize", second, second)
	d.with, d.said = size, "node1: "+file
	return d
}

// ran is a time in which a process of the guest executed it; to 0: it does still.
func ran(host string, pid, from, to int) lab.Run {
	run := lab.Run{Name: "w1", Host: host, PID: pid, From: at(from)}
	if to != 0 {
		run.To = at(to)
	}
	return run
}

func boots(boot, found uint32) writer.Line {
	return writer.Line{Word: writer.Boots, Boot: boot, Number: found}
}

func wrote(boot, number uint32) writer.Line {
	return writer.Line{Word: writer.Wrote, Boot: boot, Number: number}
}

// quiet is a history in which nothing is wrong: the guest is moved, stopped, and started again.
func quiet() *history {
	arrived := ran("node2", 2, 21, 40)
	arrived.Incoming = true
	return &history{
		name: "w1",
		done: []done{did("berth migrate", 19, 22), did("berth stop --force", 38, 41), did("berth start", 60, 62)},
		runs: []lab.Run{ran("node1", 1, 0, 20), arrived, ran("node3", 3, 61, 0)},
		lines: []writer.Line{
			boots(0xa, 0), wrote(0xa, 1), wrote(0xa, 2), boots(0xb, 2), wrote(0xb, 3), boots(0xb, 3), wrote(0xb, 4),
		},
		look: look{
			host: "node3", disks: map[string]string{"vda": "/srv/a"}, recorded: map[string]string{"vda": "/srv/a"}, vcpus: 1, most: 4,
			shown: shown{state: "RUNNING", node: "node3", vcpus: 4, text: "state running"},
		},
		quiet: at(80),
	}
}

// Each rule is broken by one change of a history in which nothing is wrong.
func TestEachRuleCanBeBroken(t *testing.T) {
	if found := judge(quiet()); len(found) > 0 {
		t.Fatalf("nothing is wrong, and the judge finds %v", found)
	}
	for _, tc := range []struct {
		name, rule, says string
		change           func(*history)
	}{
		{"a write is not there", "lost", "finds 1, and 2 was written", func(h *history) { h.lines[3].Number, h.lines[4].Number = 1, 2 }},
		{"a number below it is not there", "lost", "3 of the numbers", func(h *history) { h.lines[3].Other = 3 }},
		{"it reads another number than it wrote", "lost", "another number", func(h *history) {
			h.lines = append(h.lines, writer.Line{Word: writer.Lost, Boot: 0xb, Number: 5, Other: 1})
		}},
		{"it goes back, and nobody has resumed it", "lost", "writes 2 after 3", func(h *history) {
			h.runs[2] = ran("node1", 1, 61, 0)
			h.lines = []writer.Line{boots(0xa, 0), wrote(0xa, 1), wrote(0xa, 2), wrote(0xa, 3), wrote(0xa, 2)}
		}},
		{"it leaves a number out", "lost", "writes 9 after 4", func(h *history) { h.lines = append(h.lines, wrote(0xb, 9)) }},
		{"an earlier boot goes on", "twice", "boot 0000000b has begun since", func(h *history) { h.lines = append(h.lines, wrote(0xa, 3)) }},
		{"one that never booted writes", "twice", "never begun", func(h *history) { h.lines = append(h.lines, wrote(0xc, 5)) }},
		{"its disk has another size", "resized", "/srv/a was made 12582912 bytes large, and it has 8388608", func(h *history) {
			h.look.size, h.done = 8<<20, append(h.done, resized("/srv/a", "12M", 64))
		}},
		{"two execute it", "twice", "node1 and node2", func(h *history) { h.twice = []string{"on node1 and node2"} }},
		{"it moves by itself", "unwanted", "moves", func(h *history) { h.done[0] = did("virsh setmem", 19, 22) }},
		{"it moves when that was given up", "unwanted", "moves", func(h *history) { h.done[0] = did("berth migrate", 2, 4) }},
		{"it moves when it stood still, and nobody has moved it", "unwanted", "moves", func(h *history) {
			h.runs[0].To = at(5)
			h.done = append([]done{did("virsh suspend", 4, 5), did("virsh resume", 21, 21)}, h.done[1:]...)
		}},
		{"it ends by itself", "unwanted", "ends", func(h *history) { h.done[1] = did("virsh suspend", 38, 41) }},
		{"it is started by nobody", "unwanted", "begins", func(h *history) { h.done[2] = did("berth accept", 60, 62) }},
		{"a start is carried out late", "unwanted", "begins", func(h *history) { h.done[2] = did("berth start", 44, 46) }},
		{"one with HA is started though it was stopped", "unwanted", "begins", func(h *history) {
			h.ha = true
			h.done = h.done[:2]
		}},
		{"it goes on though somebody has suspended it", "unwanted", "goes on", func(h *history) {
			h.done = append(h.done, did("virsh suspend", 69, 71))
			h.runs[2].To = at(70)
			h.runs = append(h.runs, ran("node3", 3, 78, 0))
		}},
		{"it stands still for a while", "unwanted", "stands still", func(h *history) {
			h.runs[2].To = at(70)
			h.runs = append(h.runs, ran("node3", 3, 71, 0))
		}},
		{"it is off when all is quiet", "unwanted", "ends", func(h *history) { h.runs[2].To, h.off, h.look.host = at(75), true, "" }},
		{"Berth has not done what it says", "unkept", "stop", func(h *history) { h.kept = []string{"stop"} }},
		{"it cannot be started", "stuck", "because", func(h *history) { h.stuck = "because" }},
		{"it is shown on another host", "unexplained", "on node3", func(h *history) { h.look.shown.node = "node1" }},
		{"it is shown stopped", "unexplained", "shown STOPPED", func(h *history) { h.look.shown.state = "STOPPED" }},
		{"it is shown running, and stands still", "unexplained", "paused", func(h *history) { h.look.paused = true }},
		{"it is shown, and is not there", "unexplained", "no process", func(h *history) { h.look.host = "" }},
		{"it runs from another disk", "unexplained", "/srv/a.snap", func(h *history) { h.look.disks["vda"] = "/srv/a.snap" }},
		{"it has a disk more", "unexplained", "/srv/b", func(h *history) { h.look.disks["vdb"] = "/srv/b" }},
		{"it has a disk less", "unexplained", "no disk vdb", func(h *history) { h.look.recorded["vdb"] = "/srv/b" }},
		{"it has an interface more", "unexplained", "52:54", func(h *history) { h.look.nics = []string{"52:54:00:00:00:01"} }},
		{"it has more vCPUs", "unexplained", "8 vCPUs", func(h *history) { h.look.vcpus, h.look.most = 8, 8 }},
		{"its host starts it at a boot", "unexplained", "autostart", func(h *history) { h.look.autostart = []string{"node1"} }},
		{"it was undefined", "unexplained", "no definition", func(h *history) { h.look.adopted = true }},
		{"its memory is kept", "unexplained", "saved on node1", func(h *history) {
			h.look.host, h.look.saved, h.look.shown.state = "", []string{"node1"}, "STOPPED"
		}},
	} {
		h := quiet()
		tc.change(h)
		found := judge(h)
		if !slices.ContainsFunc(found, func(b breach) bool { return b.rule == tc.rule && strings.Contains(b.how, tc.says) }) {
			t.Errorf("%s: the judge finds %v, want %s: %s", tc.name, found, tc.rule, tc.says)
		}
	}
}

// Of several things Berth tells the most urgent one: a guest that stands still is told as that, and that it was undefined once it runs on.
func TestTheMostUrgentConditionIsEnough(t *testing.T) {
	h := quiet()
	h.look.adopted, h.look.paused, h.look.shown.state = true, true, "PAUSED"
	h.look.shown.condition = "out of band: paused on " + h.look.host + " (user)"
	if found := h.look.unexplained(); len(found) > 0 {
		t.Errorf("the judge finds %v", found)
	}
}

// A guest that was restored standing still on another host may be the source of a move as well: its disks are told once it was resumed.
func TestOfAGuestThatStandsElsewhereBerthSaysWhatItNeeds(t *testing.T) { // what seed 253 has done
	h := quiet()
	h.look.disks["vda"], h.look.paused, h.look.shown.state, h.look.shown.node = "/srv/b", true, "UNKNOWN", "node9"
	h.look.shown.condition = "it is paused-migration on " + h.look.host + ", not as Berth left it"
	h.look.shown.text = h.look.shown.condition
	if found := h.look.unexplained(); len(found) > 0 {
		t.Errorf("the judge finds %v", found)
	}
}

// What somebody has done is no breach.
func TestWhatIsExplainedIsNoBreach(t *testing.T) {
	for name, change := range map[string]func(*history){
		"HA starts one that somebody has destroyed": func(h *history) {
			h.ha = true
			h.done = []done{h.done[0], did("virsh destroy", 39, 41)}
		},
		"it was destroyed while it stood still": func(h *history) {
			h.done = append(h.done[:1:1], did("virsh suspend", 39, 41), did("virsh destroy", 50, 51), h.done[2])
		},
		"it was restored standing still, and resumed": func(h *history) {
			h.done = append(h.done[:2:2], did("virsh start", 50, 51), did("virsh resume", 61, 61))
		},
		"it was moved while it stood still, and resumed there": func(h *history) { // what seed 4 has done
			h.runs[0].To = at(5)
			h.done = append([]done{did("virsh suspend", 4, 5), did("virsh migrate", 7, 9), did("virsh resume", 21, 21)}, h.done[1:]...)
		},
		"what an interrupted move left was resumed": func(h *history) { // what seed 308 has done
			h.done = []done{did("virsh migrate", 19, 22), did("virsh destroy", 38, 41), did("virsh start", 60, 61), did("virsh resume", 61, 62)}
			h.runs[2] = ran("node1", 1, 61, 0)
			h.look.host, h.look.shown.node = "node1", "node1"
			h.lines = []writer.Line{boots(0xa, 0), wrote(0xa, 1), wrote(0xa, 2), wrote(0xa, 3), wrote(0xa, 2), wrote(0xa, 3)}
		},
		"Berth tells of the disk": func(h *history) { h.look.disks["vda"], h.look.shown.text = "/srv/b", "runs with /srv/b" },
		"Berth tells where it was started": func(h *history) {
			h.look.shown.state, h.look.shown.condition, h.look.shown.text = "STOPPED", "on node3", "on node3"
		},
		"why it is not restarted says who keeps its memory": func(h *history) { // what seed 28 has done
			h.done = append(h.done, did("virsh managedsave", 95, 96))
			h.runs[len(h.runs)-1].To = at(96)
			h.look.host, h.look.saved = "", []string{"node1"}
			h.look.shown.state, h.look.shown.condition, h.look.shown.text = "UNKNOWN", "node1 keeps its memory", "node1 keeps its memory"
		},
		"its disk has the size that somebody has made it": func(h *history) {
			h.look.size, h.done = 12<<20, append(h.done, resized("/srv/a", "16M", 63), resized("/srv/a", "12M", 64))
		},
		"another file was resized": func(h *history) { h.look.size, h.done = 8<<20, append(h.done, resized("/srv/b", "12M", 64)) },
		"two have resized its disk": func(h *history) {
			h.look.size, h.done = 8<<20, append(h.done, resized("/srv/a", "8M", 64), resized("/srv/a", "12M", 64))
		},
		"a snapshot was written back since": func(h *history) {
			h.look.size, h.done = 8<<20, append(h.done, resized("/srv/a", "12M", 64), did("virsh blockcommit", 66, 67))
		},
		"nobody knows whether it was resized": func(h *history) {
			h.look.size, h.done = 8<<20, append(h.done, resized("/srv/a", "12M", 64), resized("/srv/a", "8M", 66))
			h.done[len(h.done)-1].code = 1
		},
		"its size is not told": func(h *history) { h.done = append(h.done, resized("/srv/a", "12M", 64)) },
		"it is reset": func(h *history) {
			h.done = append(h.done, did("virsh reset", 70, 70))
			h.lines = append(h.lines, boots(0xd, 4), wrote(0xd, 5))
		},
	} {
		h := quiet()
		change(h)
		if found := judge(h); len(found) > 0 {
			t.Errorf("%s: the judge finds %v", name, found)
		}
	}
}

// A seed is always the same script, and all that can be done is done by some seed of those that a run plays.
func TestScripts(t *testing.T) {
	tried := map[string]int{}
	for seed := range uint64(100) {
		first, again := draw(seed), draw(seed)
		if first.String() != again.String() {
			t.Fatalf("seed %d is %s and then %s", seed, &first, &again)
		}
		for _, step := range first.steps {
			tried[step.verb.name]++
		}
	}
	for i := range verbs {
		if tried[verbs[i].name] == 0 {
			t.Errorf("no seed tries: %s", verbs[i].name)
		}
	}
}

// What a person does next follows from what Berth says.
func TestAPersonDoesWhatBerthSays(t *testing.T) {
	left := look{left: []string{"node3"}}
	stuck := look{host: "node1", paused: true, shown: shown{text: "'virsh resume w1' there and then 'berth vm adopt w1'"}}
	const restart = "where it stays, 'systemctl restart libvirtd' on node3"
	for _, tc := range []struct {
		look     look
		told     answer
		next, at string
	}{
		{look{}, answer{}, "berth start", ""},
		{look{host: "node1"}, answer{}, "berth stop --force", ""},
		{look{}, answer{said: "start it as it ran last after 'berth vm accept w1', or as its record says"}, "berth accept", ""},
		{look{host: "node1", shown: shown{text: "'berth vm adopt w1' takes it over"}}, answer{}, "berth adopt", ""},
		{stuck, answer{}, "virsh resume", ""},
		{look{saved: []string{"node1"}}, answer{}, "virsh start", ""},
		{left, answer{said: "a domain is on node3: end it with 'virsh destroy'"}, "virsh destroy", "node3"},
		{left, answer{said: "an operation works on it", again: patient}, "berth start", ""},
		{left, answer{said: restart}, "berth start", ""},
		{left, answer{said: restart, again: patient}, "restart libvirtd", "node3"},
	} {
		if next, at := tc.look.next(tc.told); next != tc.next || at != tc.at {
			t.Errorf("%+v: %s on %q, want %s on %q", tc.look, next, at, tc.next, tc.at)
		}
	}
}

// Who has done what was asked for does not go by what was said before.
func TestWhatIsDoneIsNotDoneAgain(t *testing.T) {
	const accept = "start it as it ran last after 'berth vm accept w1', or as its record says"
	asked := answer{}.after("berth start", 1, accept)
	for _, tc := range []struct {
		told       answer
		verb, said string
		code       int
		want       answer
		next       string
	}{
		{asked, "berth start", accept, 1, answer{said: accept, again: 1}, "berth accept"},
		{asked, "berth accept", "is kept as it runs", 0, answer{}, "berth start"},
		{asked, "berth accept", "no leader", 1, answer{said: accept, again: patient}, "berth accept"},
		{asked, "virsh destroy", "", 0, asked, "berth accept"},
		{answer{said: "try again", again: 3}, "restart libvirtd", "", 0, answer{}, "berth start"},
	} {
		told := tc.told.after(tc.verb, tc.code, tc.said)
		if next, _ := (&look{}).next(told); told != tc.want || next != tc.next {
			t.Errorf("%s ended with %d: %+v, then %s; want %+v, then %s", tc.verb, tc.code, told, next, tc.want, tc.next)
		}
	}
}
