package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// AgentInitrd is what a guest with QEMU's guest agent boots from, as a path on every host, once MakeAgentGuest has made it. Such a guest
// needs a disk, of which it makes a file system, and 192 MiB of memory.
const AgentInitrd = SharedDir + "/initrd-agent"

// MakeAgentGuest makes AgentInitrd.
func (l *Lab) MakeAgentGuest() error {
	from := filepath.Join(l.options.Binaries, "lab")
	initrd, err := packInitramfs(from, filepath.Join(from, "qemu-ga"))
	if err != nil {
		return fmt.Errorf("the initramfs with a guest agent: %w; get it with: make deps", err)
	}
	return os.WriteFile(filepath.Join(l.Dir, "shared", filepath.Base(AgentInitrd)), initrd, 0o644)
}
