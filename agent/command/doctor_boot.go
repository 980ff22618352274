package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// examineBoot looks for the service of libvirt that lets guests run on when a host boots. It asks nobody: by then a guest may have been
// started elsewhere. Root is the directory that has etc.
func examineBoot(root string) []finding {
	const service = "libvirt-guests.service"
	enabled, _ := filepath.Glob(filepath.Join(root, "etc/systemd/system/*.wants", service))
	if len(enabled) == 0 {
		return []finding{{"libvirt-guests", "it is not enabled, so no guest starts but by Berth's word", "", good}}
	}
	// What it does when nothing is set.
	onBoot, onShutdown, file := "start", "suspend", "/etc/default/libvirt-guests"
	for _, path := range []string{"/etc/default/libvirt-guests", "/etc/sysconfig/libvirt-guests"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue
		}
		file = path
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch value = strings.Trim(value, `"'`); name {
			case "ON_BOOT":
				onBoot = value
			case "ON_SHUTDOWN":
				onShutdown = value
			}
		}
	}
	if onBoot == "ignore" && onShutdown == "shutdown" {
		return []finding{{"libvirt-guests", "it shuts guests down, and starts none at boot", "", good}}
	}
	return []finding{{
		"libvirt-guests",
		fmt.Sprintf("at shutdown it does %q with guests that libvirt keeps a definition of, and at boot %q, even with those that run elsewhere "+
			"by then", onShutdown, onBoot),
		"set ON_BOOT=ignore and ON_SHUTDOWN=shutdown in " + file + ": Berth starts again what ran", warning,
	}}
}
