package lab

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"berth/integration/lab/initramfs"
)

// What a guest boots from, as a path on every host.
const (
	Kernel = SharedDir + "/vmlinuz"
	Initrd = SharedDir + "/initrd"
	// Cmdline is the guest's kernel command line. Without the self-tests of its ciphers it boots a tenth faster. Adding
	// lab.dirty=N makes the guest rewrite N MiB without a pause.
	Cmdline = "console=ttyS0 quiet panic=-1 cryptomgr.notests"
)

//go:embed guest-init.sh
var guestInit string

// powerButton is what the guest does when it is asked to shut down.
const powerButton = "#!/bin/sh\necho powering off >/dev/console\npoweroff -f\n"

// prepareGuests puts what guests need where all hosts see it.
func (r raising) prepareGuests() error {
	from := filepath.Join(r.options.Binaries, "lab")
	kernel, err := os.ReadFile(filepath.Join(from, "vmlinuz"))
	if err != nil {
		return fmt.Errorf("the guests' kernel: %w; get it with: make deps", err)
	}
	initrd, err := packInitramfs(from)
	if err != nil {
		return fmt.Errorf("the guests' initramfs: %w", err)
	}
	shared := filepath.Join(r.Dir, "shared")
	return errors.Join(
		os.WriteFile(filepath.Join(shared, filepath.Base(Kernel)), kernel, 0o644),
		os.WriteFile(filepath.Join(shared, filepath.Base(Initrd)), initrd, 0o644),
		os.WriteFile(filepath.Join(shared, qemuWrapper), []byte(qemuWrapperScript), 0o755),
	)
}

// packInitramfs packs busybox, the guest's init, the kernel modules that `make deps` has chosen, and more programs with their libraries.
func packInitramfs(from string, programs ...string) ([]byte, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("%w; install it with: make deps", err)
	}
	busybox, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := initramfs.Writer{To: zip}
	for _, dir := range []string{"bin", "dev", "etc", "etc/acpi", "etc/acpi/PWRF", "lib", "lib64", "modules"} {
		archive.Add(dir, 0o040755, nil)
	}
	archive.Add("bin/busybox", 0o100755, busybox)
	archive.Add("bin/sh", 0o120777, []byte("busybox"))
	archive.Add("init", 0o100755, []byte(guestInit))
	archive.Add("etc/acpi/PWRF/00000080", 0o100755, []byte(powerButton))
	modules, err := filepath.Glob(filepath.Join(from, "modules", "*.ko"))
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			return nil, err
		}
		archive.Add("modules/"+filepath.Base(module), 0o100644, text)
	}
	for _, program := range programs {
		if err := archive.AddProgram(program); err != nil {
			return nil, err
		}
	}
	archive.Add("TRAILER!!!", 0, nil)
	err = errors.Join(archive.Err, zip.Close())
	return packed.Bytes(), err
}

// probeOnce boots a guest under KVM, because /dev/kvm alone does not prove that one can boot. A boot that hangs takes
// all of probeLimit, so the answer is kept until the machine or the kernel changes.
func (r raising) probeOnce(ctx context.Context) (virtType string, err error) {
	keep := filepath.Join(r.options.Binaries, "lab")
	machine, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	info, err := os.Stat(filepath.Join(keep, "vmlinuz"))
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s %d ", strings.TrimSpace(string(machine)), info.ModTime().UnixNano())
	file := filepath.Join(keep, "virt-type")
	if text, err := os.ReadFile(file); err == nil {
		if virtType, known := strings.CutPrefix(string(text), key); known {
			return virtType, nil
		}
	}
	booted, err := r.probe(ctx)
	if err != nil {
		return "", err
	}
	virtType = "qemu"
	if booted {
		virtType = "kvm"
	}
	temporary := file + randomHex(4)
	if err := os.WriteFile(temporary, []byte(key+virtType), 0o644); err != nil {
		return "", err
	}
	return virtType, os.Rename(temporary, file)
}

const probeLimit = 6 * time.Second

// probe tells whether a guest under KVM reaches its first tick in time. The guest runs on the operator's machine, so
// that it cannot be left behind.
func (r raising) probe(ctx context.Context) (booted bool, err error) {
	if _, err := os.Stat("/dev/kvm"); err != nil {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd, err := r.Operator.Command(limited, qemu, "-accel", "kvm", "-m", "128", "-nodefaults", "-display", "none",
		"-kernel", Kernel, "-initrd", Initrd, "-append", Cmdline, "-serial", "stdio")
	if err != nil {
		return false, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	for lines := bufio.NewScanner(output); !booted && lines.Scan(); {
		_, booted = parseTick(lines.Text())
	}
	cancel()
	_ = cmd.Wait() // it was killed
	return booted, ctx.Err()
}

// Tick is what a guest says about itself once a second.
type Tick struct {
	Count  int
	Uptime time.Duration
	Boot   string // changes with every boot
	Intact bool   // the memory pattern is as it was written
	Hears  bool   // it has loaded its drivers, and hears its power button
}

// parseTick reads a line of a guest's console.
func parseTick(line string) (Tick, bool) {
	var t Tick
	var uptime float64
	var memory, hears string
	at := strings.Index(line, "tick ")
	if at < 0 {
		return t, false
	}
	_, err := fmt.Sscanf(line[at:], "tick %d uptime %f boot %s memory %s hears %s", &t.Count, &uptime, &t.Boot, &memory, &hears)
	t.Uptime, t.Intact, t.Hears = time.Duration(uptime*float64(time.Second)), memory == "ok", hears == "yes"
	return t, err == nil
}

// After checks that a later tick comes from the same, unharmed run of the guest.
func (t Tick) After(earlier Tick) error {
	switch {
	case t.Boot != earlier.Boot:
		return fmt.Errorf("the guest has booted again: boot %s was %s", t.Boot, earlier.Boot)
	case t.Count <= earlier.Count || t.Uptime <= earlier.Uptime:
		return fmt.Errorf("the guest went back in time: tick %d at %v after tick %d at %v",
			t.Count, t.Uptime, earlier.Count, earlier.Uptime)
	case !t.Intact:
		return errors.New("the guest's memory is damaged")
	}
	return nil
}

// GuestXML is a domain that boots the lab's guest, for tests that talk to libvirt alone. Its console goes to the file
// that SerialLog reads, which a migration does not interrupt.
func (l *Lab) GuestXML(name string, memoryMiB int, cmdline string) string {
	return fmt.Sprintf(`<domain type="%s">
  <name>%s</name>
  <memory unit="MiB">%d</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch="x86_64" machine="pc">hvm</type>
    <kernel>%s</kernel>
    <initrd>%s</initrd>
    <cmdline>%s</cmdline>
  </os>
  <features><acpi/></features>
  <on_crash>destroy</on_crash>
  <devices>
    <serial type="file">
      <source path="%s" append="on"/>
    </serial>
    <memballoon model="virtio"/>
  </devices>
</domain>
`, l.VirtType, name, memoryMiB, Kernel, Initrd, cmdline, SharedDir+"/serial/"+name+".log")
}

// SerialLog is what a guest made from GuestXML has written to its console so far, on whatever hosts it ran.
func (l *Lab) SerialLog(name string) ([]Tick, error) {
	text, err := os.ReadFile(filepath.Join(l.Dir, "shared/serial", name+".log"))
	if err != nil {
		return nil, err
	}
	var ticks []Tick
	for line := range strings.Lines(string(text)) {
		if tick, ok := parseTick(line); ok {
			ticks = append(ticks, tick)
		}
	}
	return ticks, nil
}

// ForgetSerialLogs removes what guests made from GuestXML have written. A later guest of the same name would go on with it.
func (l *Lab) ForgetSerialLogs() error {
	logs, err := filepath.Glob(filepath.Join(l.Dir, "shared/serial/*.log"))
	for _, log := range logs {
		err = errors.Join(err, os.Remove(log))
	}
	return err
}
