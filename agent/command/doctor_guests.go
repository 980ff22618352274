package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// examineGuests looks at the guests of this host: whether libvirt knows them all, and what of each keeps it here or may cost its writes.
func examineGuests(ctx context.Context, h hypervisor.Hypervisor) []finding {
	const check = "guests"
	if _, err := h.Processes(ctx); err != nil {
		return []finding{{check, err.Error(), "without that nobody can tell that a VM does not run here", bad}}
	}
	domains, err := new(hypervisor.Lister).List(ctx, h, nil)
	if err != nil {
		return []finding{{check, err.Error(), "virsh list --all", bad}}
	}
	findings := []finding{examineOrphans(domains)}
	for i := range domains {
		findings = append(findings, examineGuest(&domains[i])...)
	}
	return findings
}

// examineOrphans compares the processes of guests with libvirt's list. One that is not on it is never taken for absent.
func examineOrphans(domains []hypervisor.Domain) finding {
	const check = "guests"
	var orphans, pids []string
	for i := range domains {
		if one := &domains[i]; one.State == hypervisor.Orphan {
			orphans = append(orphans, fmt.Sprintf("%s (%s): %s", one.Name, one.UUID, one.Reason))
			pids = append(pids, strconv.Itoa(one.PID))
		}
	}
	if len(orphans) > 0 {
		return finding{check, strings.Join(orphans, "; "), "shut the guest down from inside, or kill " + strings.Join(pids, " "), bad}
	}
	return finding{check, "libvirt lists every guest that has a process", "", good}
}

func examineGuest(domain *hypervisor.Domain) (findings []finding) {
	warn := func(result, next string) {
		findings = append(findings, finding{"guest " + domain.Name, result, next, warning})
	}
	if domain.Autostart && domain.Managed {
		warn("libvirt starts it when this host boots, even if it runs elsewhere by then", "virsh autostart --disable "+domain.Name)
	}
	var kept, media []string
	for i := range domain.Bindings {
		if one := &domain.Bindings[i]; one.Kind == domxml.MediaBinding {
			media = append(media, one.Text())
		} else {
			kept = append(kept, one.Text())
		}
	}
	if len(media) > 0 { // other nodes may have it, which only the coordinator knows
		warn("moves only to hosts that have the same file: "+strings.Join(media, "; "), "berth vm media eject "+domain.Name)
	}
	if len(kept) > 0 {
		warn("cannot move while it runs: "+strings.Join(kept, "; "), "'berth vm show' says what lets it go; a drain leaves it here")
	}
	for i := range domain.Devices {
		if one := &domain.Devices[i]; one.Unsafe {
			warn("disk "+one.Key+" has cache mode unsafe: what the guest has synced is lost with the host's power",
				"virsh edit "+domain.Name+": cache='none', then stop and start it")
		}
	}
	return findings
}

// examineLocks looks for libvirt's lock manager, which stands behind QEMU's own locks of images. Root is the directory that has etc.
func examineLocks(root string) finding {
	const check, file = "disk locks", "/etc/libvirt/qemu.conf"
	text, err := os.ReadFile(filepath.Join(root, file))
	manager := ""
	for line := range strings.Lines(string(text)) {
		if name, value, is := strings.Cut(line, "="); is && strings.TrimSpace(name) == "lock_manager" {
			manager = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	const next = `set lock_manager = "lockd" in ` + file + ", with a lockspace that all hosts see: libvirt.org/kbase/locking-lockd.html"
	switch {
	case manager != "" && manager != "nop":
		return finding{check, "libvirt's lock manager " + manager + ", and QEMU's own locks", "", good}
	case err != nil && !os.IsNotExist(err):
		return finding{check, err.Error(), next, warning}
	default:
		return finding{check, "QEMU's own locks alone: they stay on this host for block devices, and for NFS without locks", next, warning}
	}
}
