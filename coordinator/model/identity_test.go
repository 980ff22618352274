package model

import (
	"strings"
	"testing"
)

func TestSameMachine(t *testing.T) {
	const is = "4c4c4544-0042-3510-8052-b4c04f4d3732"
	for other, same := range map[string]bool{
		"4C4C4544-0042-3510-8052-B4C04F4D3732": true,
		"44454c4c-4200-1035-8052-b4c04f4d3732": true, // fields reversed
		"32374d4f-c0b4-5280-1035-420044454c4c": true, // all reversed
		"4f4d3732-b4c0-5280-3510-00424c4c4544": false,
		"4c4c4544-0042-3510-8052-b4c04f4d3733": false,
		"":                                     false,
	} {
		if SameMachine(is, other) != same {
			t.Errorf("%s: want %t", other, same)
		}
	}
}

func TestADeviceOfAnotherMachineIsRefused(t *testing.T) {
	const here, there = "4c4c4544-0042-3510-8052-b4c04f4d3732", "11111111-0042-3510-8052-b4c04f4d3732"
	node := Node{
		Name: "hv1", Hardware: here, HardwareSource: HardwareProduct, Fence: FenceDevice{Method: FenceCommand, Program: "fence_ipmilan"},
	}
	system := node
	system.HardwareSource = HardwareSystem
	pinned := node
	pinned.Fence.Machine = there
	for _, c := range []struct {
		node    Node
		is      FenceIdentity
		refused bool
		says    string
	}{
		{node, FenceIdentity{Machine: here}, false, "checked: "},
		{node, FenceIdentity{Machine: there}, true, there + ", and its firmware says " + here},
		{node, FenceIdentity{Why: "fence_x does not tell"}, false, "unchecked: fence_x does not tell"},
		{system, FenceIdentity{Machine: there}, false, "unchecked: it says that it switches machine " + there},
		{pinned, FenceIdentity{Machine: there}, false, "checked: "},
		{pinned, FenceIdentity{Machine: here}, true, here + ", and its declared machine is " + there},
		{node, FenceIdentity{}, false, ""},
	} {
		says := c.is.Says(&c.node)
		if (c.is.Refused(&c.node) != "") != c.refused || !strings.Contains(says, c.says) || c.says == "" && says != "" {
			t.Errorf("%+v: refused %q, %q", c.is, c.is.Refused(&c.node), says)
		}
		if c.refused && !strings.Contains(says, "berth node set hv1 --fence command") {
			t.Errorf("no next step: %s", says)
		}
	}
}
