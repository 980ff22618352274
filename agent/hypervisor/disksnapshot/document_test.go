package disksnapshot

import (
	"slices"
	"strings"
	"testing"

	"berth/agent/hypervisor"
)

func TestWordsForAFileThatIsHeldElsewhere(t *testing.T) {
	for message, want := range map[string]bool{
		`qemu-system-x86_64: -blockdev {"node-name":"libvirt-1-format"}: Failed to get "write" lock`: true,
		`-blockdev {"driver":"qcow2"}: Failed to get shared "write" lock`:                            true,
		`Failed to get "consistent read" lock`:                                                       true,
		"Failed to lock byte 201":                                                                    true,
		"resource busy: Lockspace resource '/srv/a' is locked":                                       true,
		`-blockdev {"node-name":"libvirt-1-format"}: Image is not in qcow2 format`:                   false,
		`-blockdev {"filename":"/srv/a"}: Could not open '/srv/a': Permission denied`:                false,
		"Failed to get option 'driver' of -blockdev":                                                 false,
		"block device is full":                                                                       false,
	} {
		if has := func(words string) bool { return strings.Contains(message, words) }; slices.ContainsFunc(HeldElsewhere, has) != want {
			t.Errorf("%s: it is %t", message, !want)
		}
	}
}

// What is no helper is never ended, whatever somebody has called it.
func TestOnlyHelpersAreHelpers(t *testing.T) {
	helper, _, err := HelperFor(hypervisor.DiskSnapshot{Tag: "tag1", Files: []string{"/srv/a"}})
	if err != nil {
		t.Fatal(err)
	}
	other := "11111111-2222-4333-8444-555555555555"
	if !IsHelper(helper.Name, helper.UUID) || IsHelper(helper.Name, other) || IsHelper("tag1", helper.UUID) ||
		IsHelper(helper.Name+"2", helper.UUID) {
		t.Errorf("%s %s", helper.Name, helper.UUID)
	}
}
