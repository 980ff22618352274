package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"berth/shared/units"
)

// DiskImage is a disk that boots the lab's guest, as a qcow2 file that every machine sees once MakeDiskImage has made it.
const DiskImage = SharedDir + "/guest.qcow2"

// The layout of DiskImage. What follows the areas is free.
const (
	bootSize = 24 << 20 // a FAT file system with the kernel and the initramfs
	// StillSize is the beginning of the disk that a guest never changes after it has filled the rest of it with random
	// data, at its first boot.
	StillSize = 28 << 20
	// MovingSize is the end of what a guest writes over and over.
	MovingSize = 32 << 20
	// DiskImageSize is the size of the disk as its guest sees it.
	DiskImageSize = 34 << 20
)

// bootConfig is SYSLINUX's. The guest keeps an eye on its disk.
const bootConfig = `DEFAULT lab
LABEL lab
	KERNEL vmlinuz
	INITRD initrd
	APPEND ` + Cmdline + ` lab.disk
`

// diskScript makes DiskImage in the shared directory: a disk without partitions, as USB sticks have it.
const diskScript = `set -e
cd "$0"
trap 'rm -f guest.raw syslinux.cfg' EXIT
truncate -s "$1" guest.raw
mformat -i guest.raw -v LAB ::
mcopy -i guest.raw vmlinuz initrd syslinux.cfg ::
syslinux -i guest.raw
truncate -s "$2" guest.raw
qemu-img convert -f raw -O qcow2 guest.raw guest.qcow2.new
mv guest.qcow2.new guest.qcow2`

// MakeDiskImage makes DiskImage.
func (l *Lab) MakeDiskImage(ctx context.Context) error {
	if err := os.WriteFile(path.Join(l.Dir, "shared/syslinux.cfg"), []byte(bootConfig), 0o644); err != nil {
		return err
	}
	_, err := l.Operator.Exec(ctx, "sh", "-c", diskScript, SharedDir, fmt.Sprint(bootSize), fmt.Sprint(DiskImageSize))
	if err != nil {
		return fmt.Errorf("make the guests' disk: %w; install what is missing with: make deps", err)
	}
	return nil
}

// DiskTick is what a guest that has booted from DiskImage says about its first disk about once a second.
type DiskTick struct {
	Size   units.Bytes // of the disk
	Still  string      // MD5 of what is between the boot files and StillSize, hex
	Intact bool        // what the guest writes over and over, it also reads
	Writes int         // since it has booted, 1 MiB each
	// Found is the number that stood on the disk when the guest booted, and Number the one that the guest has written since and is on
	// the disk: it grows by one a turn. 0: none was there.
	Found, Number int
	// Label is that of the second disk's ISO 9660 file system; "-" if there is none.
	Label string
}

// parseDiskTick reads a line of a guest's console.
func parseDiskTick(line string) (DiskTick, bool) {
	var t DiskTick
	var moving string
	at := strings.Index(line, "disk ")
	if at < 0 {
		return t, false
	}
	_, err := fmt.Sscanf(line[at:], "disk %d still %s moving %s writes %d label %s found %d number %d",
		&t.Size, &t.Still, &moving, &t.Writes, &t.Label, &t.Found, &t.Number)
	t.Intact = moving == "ok"
	return t, err == nil
}

// After checks that a later tick comes from the same disk, whole, and that the guest goes on writing to it.
func (t DiskTick) After(earlier DiskTick) error {
	switch {
	case t.Still != earlier.Still:
		return fmt.Errorf("the guest's disk has changed: its checksum %s was %s", t.Still, earlier.Still)
	case !t.Intact:
		return errors.New("the guest does not read what it has written")
	case t.Writes <= earlier.Writes:
		return fmt.Errorf("the guest does not write any more: %d writes after %d", t.Writes, earlier.Writes)
	}
	return nil
}

// ReadDiskTick waits for what a guest on this host says next about its disk, as ReadTick does for its ticks.
func (h *Host) ReadDiskTick(ctx context.Context, guest string) (DiskTick, error) {
	var tick DiskTick
	err := h.readConsole(ctx, guest, func(line string) (found bool) {
		tick, found = parseDiskTick(line)
		return found
	})
	return tick, err
}

// ReadDiskTick waits for what a guest says next about its disk, wherever in the lab it runs.
func (l *Lab) ReadDiskTick(ctx context.Context, guest string) (DiskTick, error) {
	host, err := l.HostOf(guest)
	if err != nil {
		return DiskTick{}, err
	}
	return host.ReadDiskTick(ctx, guest)
}

// DiskPath is the file of a guest's disk, as a path on the host that runs it.
func (h *Host) DiskPath(ctx context.Context, guest, device string) (string, error) {
	listed, err := h.Virsh(ctx, "domblklist", guest)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] != device {
			continue
		}
		if path.IsAbs(fields[1]) {
			return fields[1], nil
		}
		// A disk that is named by its volume is listed by the volume's name.
		found, err := h.volumePath(ctx, fields[1])
		return found, err
	}
	return "", fmt.Errorf("guest %s on %s has no disk %s, it has %s", guest, h.Name, device, strings.TrimSpace(listed))
}

// volumePath finds a volume in the pools of the host by its name.
func (h *Host) volumePath(ctx context.Context, name string) (string, error) {
	volumes, err := h.Volumes(ctx)
	if err != nil {
		return "", err
	}
	for _, volume := range volumes {
		if pool, found := strings.CutSuffix(volume, "/"+name); found {
			text, err := h.Virsh(ctx, "vol-path", "--pool", pool, name)
			return strings.TrimSpace(text), err
		}
	}
	return "", fmt.Errorf("%s has no volume %s", h.Name, name)
}

// Checksum is the SHA-256 of the first bytes of a disk as its guest sees them, in whatever file and with whatever backing
// file they are. Parts that the guest writes meanwhile have no meaning.
func (h *Host) Checksum(ctx context.Context, file, format string, bytes int64) (string, error) {
	const script = `set -e
copy=$(mktemp /var/tmp/checksum.XXXXXX)
trap 'rm -f "$copy"' EXIT
qemu-img convert -U -f "$2" -O raw "$1" "$copy"
head -c "$3" "$copy" | sha256sum | cut -d' ' -f1`
	sum, err := h.Exec(ctx, "bash", "-c", script, "checksum", file, format, fmt.Sprint(bytes))
	return strings.TrimSpace(sum), err
}
