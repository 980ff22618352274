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
