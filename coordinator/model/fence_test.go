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
		Arguments: map[string]string{"ip": "10.0.0.9", "username": "berth", "password": "swordfish", "password_script": "/etc/berth/fence/ipmi"},
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
	if shown.Arguments["password"] != Masked || shown.Arguments["password_script"] != "/etc/berth/fence/ipmi" ||
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

// A fence agent runs with the coordinator's rights, who can read the key of the cluster's authority.
func TestAFenceDeviceRunsWhatRootHasPutThere(t *testing.T) {
	device := func(name, value string) FenceDevice {
		return FenceDevice{Method: FenceCommand, Program: "fence_ipmilan", Arguments: map[string]string{"ip": "10.0.0.9", name: value}}
	}
	for _, name := range []string{
		"ipmitool_path", "ssh_path", "sudo_path", "telnet-path", "PATH", "ssh_options", "ssh-options", "options", "debug", "debug_file",
		"logfile", "log_file", "sudo", "use_sudo", "command", "shell", "exec",
	} {
		if err := ValidateFenceDevice(device(name, "/bin/sh")); err == nil || !strings.Contains(err.Error(), "names a program") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"password_script", "passwd_script", "password-script", "identity_file", "key_file", "keyfile"} {
		for _, value := range []string{
			"/bin/sh -c reboot", "/tmp/x", "/etc/berth/fence/../../../bin/sh", "/etc/berth/fence/x y", "/etc/berth/fence/$(reboot)",
			"/etc/berth/fence/", "/etc/berth/fence/.x", "/etc/berth/fence/a/b", "echo x", "",
		} {
			if err := ValidateFenceDevice(device(name, value)); err == nil || !strings.Contains(err.Error(), "/etc/berth/fence") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
		if err := ValidateFenceDevice(device(name, "/etc/berth/fence/bmc-7.sh")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"power_timeout", "cmd_prompt", "command_prompt", "lanplus", "inet4_only", "ssl_insecure", "method"} {
		if err := ValidateFenceDevice(device(name, "1")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASecretGoesToNoOtherAddress(t *testing.T) {
	for _, name := range []string{
		"password", "passwd", "apikey", "api_key", "access_key", "private_key", "passphrase", "community",
	} {
		known := FenceDevice{
			Method: FenceCommand, Program: "fence_ipmilan", Arguments: map[string]string{"ip": "10.0.0.9", name: "swordfish"},
		}
		given := known.Masked()
		if given.Arguments[name] != Masked {
			t.Errorf("%s is shown as %q", name, given.Arguments[name])
		}
		if same := given.Unmasked(known); same.Arguments[name] != "swordfish" {
			t.Errorf("%s of the same device became %q", name, same.Arguments[name])
		}
		given.Arguments["ip"] = "10.6.6.6"
		moved := given.Unmasked(known)
		if err := ValidateFenceDevice(moved); moved.Arguments[name] != Masked || err == nil {
			t.Errorf("%s would be sent to another address: %q, %v", name, moved.Arguments[name], err)
		}
	}
}

// Fence agents put some arguments into the command line of ssh as they are.
func TestAnArgumentIsOneWordWhereItBecomesPartOfACommand(t *testing.T) {
	for name, value := range map[string]string{
		"username": "a -oProxyCommand=reboot b", "ip": "-oProxyCommand=reboot", "login": "x\x1d!reboot", "ipport": "22 -v",
	} {
		device := FenceDevice{Method: FenceCommand, Program: "fence_ilo4_ssh", Arguments: map[string]string{name: value}}
		if err := ValidateFenceDevice(device); err == nil {
			t.Errorf("%s=%q is taken", name, value)
		}
	}
	for name, value := range map[string]string{"username": "admin@corp", "ip": "10.0.0.9", "ipport": "623", "api_path": "/ovirt-engine/api"} {
		device := FenceDevice{Method: FenceCommand, Program: "fence_rhevm", Arguments: map[string]string{name: value}}
		if err := ValidateFenceDevice(device); err != nil {
			t.Errorf("%s=%q: %v", name, value, err)
		}
	}
}

// A device that an earlier release took goes on to work until it is set again.
func TestADeviceOfAnEarlierReleaseIsRun(t *testing.T) {
	device := FenceDevice{
		Method: FenceCommand, Program: "fence_ipmilan",
		Arguments: map[string]string{"password_script": "/etc/berth/ipmi-hv1", "ssh_options": "-x"},
	}
	if ValidateFenceDevice(device) == nil || RunnableFenceDevice(device) != nil {
		t.Errorf("set: %v, run: %v", ValidateFenceDevice(device), RunnableFenceDevice(device))
	}
	device.Arguments["action"] = "status"
	if RunnableFenceDevice(device) == nil {
		t.Error("it says itself what is to be done")
	}
}
