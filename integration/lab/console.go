package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReadTick waits for the next tick on the serial console of a guest on this host.
func (h *Host) ReadTick(ctx context.Context, guest string) (Tick, error) {
	var tick Tick
	err := h.readConsole(ctx, guest, func(line string) (found bool) {
		tick, found = parseTick(line)
		return found
	})
	return tick, err
}

// readConsole reads whole lines of a guest's serial console (a pty, as Berth gives it to its VMs) until one is taken.
// What is read is lost to anyone else who has the console open. It gives up after two minutes: without KVM, on a machine
// whose processors other suites have as well, a guest needed more than half a minute to boot from its disk.
func (h *Host) readConsole(ctx context.Context, guest string, take func(line string) bool) error {
	output, err := h.Virsh(ctx, "ttyconsole", guest)
	if err != nil {
		return err
	}
	console, err := unix.Open(h.Path(strings.TrimSpace(output)), unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the console of %s on %s: %w", guest, h.Name, err)
	}
	file := os.NewFile(uintptr(console), guest)
	defer file.Close()
	deadline := time.Now().Add(2 * time.Minute)
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	if err := file.SetReadDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Now()) })
	defer stop()

	var text, last string
	buffer := make([]byte, 4096)
	for {
		n, err := file.Read(buffer)
		text += string(buffer[:n])
		for line, rest, whole := strings.Cut(text, "\n"); whole; line, rest, whole = strings.Cut(text, "\n") {
			text, last = rest, line
			if take(line) {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("the console of %s on %s does not say it, its last line is %q and then %q: %w",
				guest, h.Name, last, text, errors.Join(err, ctx.Err()))
		}
	}
}

// ReadTick waits for the next tick of a guest, wherever in the lab it runs.
func (l *Lab) ReadTick(ctx context.Context, guest string) (Tick, error) {
	host, err := l.HostOf(guest)
	if err != nil {
		return Tick{}, err
	}
	return host.ReadTick(ctx, guest)
}

// HostOf is the host that has the guest's process. None and several are errors.
func (l *Lab) HostOf(guest string) (*Host, error) {
	var found []*Host
	for _, host := range l.Hosts {
		for _, process := range host.QEMUs() {
			if process.Name == guest || process.UUID == guest {
				found = append(found, host)
			}
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("guest %s has a process on %d hosts", guest, len(found))
	}
	return found[0], nil
}
