package model

import "testing"

func TestAMachineThatMayBeAnotherOneIsDoubted(t *testing.T) {
	node := Node{Name: "node1", Hardware: "aaaa", HardwareSource: HardwareProduct, Boot: "b2", LastBoot: "b1"}
	for name, c := range map[string]struct {
		machine Machine
		doubt   string
	}{
		"itself":             {Machine{"aaaa", HardwareProduct, "b2"}, ""},
		"booted anew":        {Machine{"aaaa", HardwareProduct, "b3"}, ""},
		"an agent of before": {Machine{Boot: "b2"}, ""},
		"another source":     {Machine{"cccc", HardwareSystem, "b2"}, ""},
		"a copy of its disk": {
			Machine{"bbbb", HardwareProduct, "b9"},
			"two machines say that they are it, or it has new hardware: product UUID bbbb, and aaaa until now",
		},
		"the first of two": {
			Machine{"aaaa", HardwareProduct, "b1"}, "two machines say that they are it: boot b1 speaks again, and b2 has spoken since",
		},
	} {
		if got := node.Doubt(c.machine); got != c.doubt {
			t.Errorf("%s: %q\nwant %q", name, got, c.doubt)
		}
	}
}

func TestAPersonDecidesWhichMachineANodeIs(t *testing.T) {
	held := Node{
		Name: "node1", Hardware: "aaaa", HardwareSource: HardwareProduct, Boot: "b2", LastBoot: "b1",
		Twin: Twin{Machine: Machine{"bbbb", HardwareProduct, "b9"}, Why: "two"},
	}
	const next = "switch the wrong machine off, or take its agent's certificate away; then 'berth node set node1 --machine aaaa' (or bbbb) " +
		"says which one the node is"
	if got := held.HeldNext(); got != next {
		t.Errorf("%s\nwant %s", got, next)
	}
	if held.Doubt(held.Machine()) != "two" || held.Doubt(held.Twin.Machine) != "two" {
		t.Error("until somebody decides both are to be disbelieved")
	}
	here, there := held.Machine(), held.Twin.Machine
	for word, want := range map[string]Machine{"aaaa": here, "b2": here, "bbbb": there, "b9": there} {
		node := held
		other := held.Twin.Machine
		if want == other {
			other = held.Machine()
		}
		if !node.Decide(word) || node.Held() || node.Machine() != want || node.Doubt(want) != "" {
			t.Errorf("%s: %+v", word, node)
		}
		if node.Doubt(other) == "" {
			t.Errorf("%s: the other one is believed", word)
		}
	}
	if node := held; node.Decide("cccc") || !node.Held() {
		t.Error("a word of neither decided")
	}
	same := held // of one copied disk, where only the system's identity is known
	same.HardwareSource, same.Twin.Hardware, same.Twin.Source = HardwareSystem, "aaaa", HardwareSystem
	if node := same; node.Decide("aaaa") {
		t.Error("a word of both decided")
	}
	if node := same; !node.Decide("b9") || node.Boot != "b9" || node.Doubt(Machine{"aaaa", HardwareSystem, "b2"}) == "" {
		t.Errorf("decided by boot: %+v", node)
	}
}
