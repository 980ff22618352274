package model

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func ipmi() FenceDevice {
	return FenceDevice{
		Method: FenceCommand, Program: "fence_ipmilan", Timeout: 30 * time.Second,
		Arguments: map[string]string{"ip": "10.0.0.9", "username": "berth", "password": "swordfish", "password_script": "/etc/berth/ipmi"},
	}
}

func TestFenceDevices(t *testing.T) {
	for _, good := range []FenceDevice{
		{}, {Method: FenceManual}, {Method: FenceWatchdog}, ipmi(), {Method: FenceCommand, Program: "fence_x"},
	} {
		if err := ValidateFenceDevice(good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for says, change := range map[string]func(*FenceDevice){
		"want none, manual, watchdog or command": func(d *FenceDevice) { d.Method = "magic" },
		"with method command only":               func(d *FenceDevice) { d.Method = FenceManual },
		`program "/bin/sh"`:                      func(d *FenceDevice) { d.Program = "/bin/sh" },
		`program "fence_/../x"`:                  func(d *FenceDevice) { d.Program = "fence_/../x" },
		"want 1s to 10m0s":                       func(d *FenceDevice) { d.Timeout = time.Hour },
		"argument \"action\"":                    func(d *FenceDevice) { d.Arguments["action"] = "reboot" },
		"argument \"a=b\"":                       func(d *FenceDevice) { d.Arguments["a=b"] = "c" },
		"argument plug":                          func(d *FenceDevice) { d.Arguments["plug"] = "1\naction=on" },
		`password "***" is not valid`:            func(d *FenceDevice) { d.Arguments["password"] = Masked },
	} {
		bad := ipmi()
		change(&bad)
		if err := ValidateFenceDevice(bad); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %s", err, says)
		}
	}
	long := ipmi()
	long.Arguments["passwd"] = strings.Repeat("s3cret", 1000)
	if err := ValidateFenceDevice(long); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the refusal of a secret: %v", err)
	}
}

func plug(program, ip, number string) FenceDevice {
	return FenceDevice{Method: FenceCommand, Program: program, Arguments: map[string]string{"ip": ip, "plug": number, "password": "swordfish"}}
}

func TestSeveralFenceDevices(t *testing.T) {
	both := plug("fence_apc", "10.0.0.50", "1")
	both.Also = []FenceDevice{plug("fence_apc", "10.0.0.51", "1")}
	if err := ValidateFenceDevice(both); err != nil {
		t.Error(err)
	}
	if is, want := both.Title(), "fence_apc ip=10.0.0.50 plug=1, fence_apc ip=10.0.0.51 plug=1"; is != want {
		t.Errorf("they are called %q", is)
	}
	for says, also := range map[string][]FenceDevice{
		"want at most 4": {
			plug("fence_apc", "a", "1"), plug("fence_apc", "b", "1"), plug("fence_apc", "c", "1"), plug("fence_apc", "d", "1"),
		},
		"another plug or board":    {plug("fence_apc", "10.0.0.50", "1")},
		"a fence agent with its":   {{Method: FenceManual}},
		"no more of them inside":   {{Method: FenceCommand, Program: "fence_x", Also: []FenceDevice{{Method: FenceCommand, Program: "fence_y"}}}},
		`program "/bin/sh"`:        {{Method: FenceCommand, Program: "/bin/sh"}},
		"argument \"action\"":      {{Method: FenceCommand, Program: "fence_x", Arguments: map[string]string{"action": "on"}}},
		"with method command only": nil,
	} {
		bad := both
		bad.Also = also
		if also == nil {
			bad = FenceDevice{Method: FenceManual, Also: both.Also}
		}
		if err := ValidateFenceDevice(bad); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %s", err, says)
		}
	}
	turned := both.Also[0]
	turned.Also = []FenceDevice{plug("fence_apc", "10.0.0.50", "1")}
	if !both.SameTargets(both) || both.SameTargets(turned) || both.SameTargets(both.Also[0]) {
		t.Error("which devices are the same")
	}
	both.Also[0].Arguments["password"] = "herring"
	turned.Arguments["password"] = "herring"
	shown := turned.Masked()
	if shown.Also[0].Arguments["password"] != Masked || turned.Also[0].Arguments["password"] != "swordfish" {
		t.Errorf("shown %+v", shown)
	}
	if back := shown.Unmasked(both); !back.Equal(turned) {
		t.Errorf("given back in another order: %+v", back)
	}
}

// One plug or board under two names is one: what proves that one node is off would be true of another.
func TestDevicesWithOneTarget(t *testing.T) {
	one := plug("fence_apc", "10.0.0.50", "3")
	old := FenceDevice{
		Method: FenceCommand, Program: "fence_apc", Arguments: map[string]string{"ipaddr": "10.0.0.50", "port": "3", "login": "bo"},
	}
	x, y := FenceDevice{Method: FenceCommand, Program: "fence_x"}, FenceDevice{Method: FenceCommand, Program: "fence_y"}
	board := FenceDevice{Method: FenceCommand, Program: "fence_redfish", Arguments: map[string]string{"ip": "BMC1", "ssl_insecure": "1"}}
	second := plug("fence_apc", "10.0.0.51", "3")
	second.Also = []FenceDevice{plug("fence_apc_snmp", "10.0.0.50", "3")}
	for _, c := range []struct {
		what   string
		a, b   FenceDevice
		shared bool
	}{
		{"the same", one, one, true},
		{"older names", one, old, true},
		{"by another program", one, plug("fence_apc_snmp", "10.0.0.50", "3"), true},
		{"the second of a node", second, one, true},
		{"the second of another node", one, second, true},
		{"a board by two protocols", board, FenceDevice{
			Method: FenceCommand, Program: "fence_ipmilan", Arguments: map[string]string{"ip": "bmc1", "lanplus": "1"},
		}, true},
		{"another plug", one, plug("fence_apc", "10.0.0.50", "4"), false},
		{"another address", one, plug("fence_apc", "10.0.0.51", "3"), false},
		{"two boards behind one address", board, FenceDevice{
			Method: FenceCommand, Program: "fence_redfish", Arguments: map[string]string{"ip": "bmc1", "ipport": "8001"},
		}, false},
		{"programs without addresses", x, y, false},
		{"no device", FenceDevice{Method: FenceManual}, FenceDevice{Method: FenceManual}, false},
	} {
		if shared, is := c.a.SharedTarget(c.b); is != c.shared || is && shared.Program == "" {
			t.Errorf("%s: %t, %+v", c.what, is, shared)
		}
	}
}

func TestSecretsOfFenceDevices(t *testing.T) {
	device := ipmi()
	shown := device.Masked()
	if shown.Arguments["password"] != Masked || shown.Arguments["password_script"] != "/etc/berth/ipmi" ||
		shown.Arguments["ip"] != "10.0.0.9" {
		t.Errorf("shown %v", shown.Arguments)
	}
	if device.Arguments["password"] != "swordfish" {
		t.Error("showing it changed it")
	}
	if back := shown.Unmasked(device); !back.Equal(device) {
		t.Errorf("given back as it was shown: %v", back.Arguments)
	}
	if other := shown.Unmasked(FenceDevice{}); other.Arguments["password"] != Masked {
		t.Errorf("a mask of nothing became %q", other.Arguments["password"])
	}
}
