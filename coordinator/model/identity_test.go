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
	const strip = "fence_apc ip=10.0.0.50 plug=1: unchecked: fence_apc does not tell"
	both := node
	both.Fence = FenceDevice{
		Method: FenceCommand, Program: "fence_apc", Arguments: map[string]string{"ip": "10.0.0.50", "plug": "1"},
		Also: []FenceDevice{{Method: FenceCommand, Program: "fence_ipmilan", Machine: there}},
	}
	for _, c := range []struct {
		node    Node
		is      FenceIdentities
		refused bool
		says    string
	}{
		{node, FenceIdentities{{Machine: here}}, false, "checked: "},
		{node, FenceIdentities{{Machine: there}}, true, there + ", and its firmware says " + here},
		{node, FenceIdentities{{Why: "fence_x does not tell"}}, false, "unchecked: fence_x does not tell"},
		{system, FenceIdentities{{Machine: there}}, false, "unchecked: it says that it switches machine " + there},
		{pinned, FenceIdentities{{Machine: there}}, false, "checked: "},
		{pinned, FenceIdentities{{Machine: here}}, true, here + ", and its declared machine is " + there},
		{node, nil, false, ""},
		{both, FenceIdentities{{Why: "fence_apc does not tell"}, {Machine: there}}, false, strip + "; fence_ipmilan: checked: "},
		{both, FenceIdentities{{Why: "fence_apc does not tell"}, {Machine: here}}, true, strip + "; fence_ipmilan: its fence device says"},
	} {
		says := c.is.Says(&c.node)
		why, next := c.is.Refused(&c.node)
		if (why != "") != c.refused || !strings.Contains(says, c.says) || c.says == "" && says != "" {
			t.Errorf("%+v: refused %q, %q", c.is, why, says)
		}
		if c.refused && (!strings.Contains(says, "berth node set hv1 --fence command") || !strings.Contains(says, next)) {
			t.Errorf("no next step: %s", says)
		}
	}
}
