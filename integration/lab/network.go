package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A machine's port on the switch has its name. While its cable is shaped, a wire process stands between: the port is
// then the wire's end and has the name with this suffix.
const wireSuffix = "~"

// cutTable drops what goes from one port to another, one way: all of it, or the requests to a libvirtd, or its answers. The
// ports are named, so a rule holds across a power cycle.
const cutTable = `table bridge lab {
	set cut {
		type ifname . ifname
	}
	set requests {
		type ifname . ifname
	}
	set answers {
		type ifname . ifname
	}
	chain forward {
		type filter hook forward priority 0
		iifname . oifname @cut drop
		tcp dport ` + controlPort + ` ip length > ` + idle + ` iifname . oifname @requests drop
		tcp sport ` + controlPort + ` ip length > ` + idle + ` iifname . oifname @answers drop
	}
}
`

const (
	// controlPort is where a libvirtd listens to others.
	controlPort = "16514"
	// idle is the most bytes that an acknowledgement has, or a keepalive under TLS. Requests and answers are longer.
	idle = "112"
)

// network is the switch that a lab's machines are on.
type network struct{ lab *Lab }

// inLab runs a command in the lab's own namespaces, where the switch is.
func (n network) inLab(ctx context.Context, argv ...string) error {
	cmd, err := enter(ctx, n.lab.initPid(), argv...)
	if err != nil {
		return err
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// CutLink pulls the machine's cable out of the switch: its services run on and reach nobody.
func (m *Machine) CutLink(ctx context.Context) error {
	return m.lab.inLab(ctx, "ip", "link", "set", m.Name, "down")
}

// RestoreLink plugs the cable in again.
func (m *Machine) RestoreLink(ctx context.Context) error {
	return m.lab.inLab(ctx, "ip", "link", "set", m.Name, "up")
}

// Cut drops everything that from sends to to. Cut both ways for a partition between two machines.
func (n network) Cut(ctx context.Context, from, to *Machine) error {
	return n.drop(ctx, "cut", from, to)
}

// HoldRequests drops what one host's libvirtd asks the other's, and nothing else: memory is copied, agents are heard, and
// a connection without requests is alive. TCP sends it again, so that it arrives late if Release comes before libvirt gives up,
// LibvirtPatience after the first request.
func (n network) HoldRequests(ctx context.Context, from, to *Host) error {
	return n.drop(ctx, "requests", from.Machine, to.Machine)
}

// HoldAnswers drops what one host's libvirtd answers to the other's: what it is asked to do is done. Otherwise it is as
// HoldRequests.
func (n network) HoldAnswers(ctx context.Context, from, to *Host) error {
	return n.drop(ctx, "answers", from.Machine, to.Machine)
}

func (n network) drop(ctx context.Context, set string, from, to *Machine) error {
	return n.inLab(ctx, "nft", "add", "element", "bridge", "lab", set, pairs(from, to))
}

// Partition cuts two machines from each other, both ways. Everyone else reaches both.
func (n network) Partition(ctx context.Context, a, b *Machine) error {
	return errors.Join(n.Cut(ctx, a, b), n.Cut(ctx, b, a))
}

// Heal takes all cuts back, and lets go what is held. Pulled cables and shaped links stay as they are.
func (n network) Heal(ctx context.Context) error {
	return errors.Join(n.flush(ctx, "cut"), n.Release(ctx))
}

// Release lets go what HoldRequests and HoldAnswers hold.
func (n network) Release(ctx context.Context) error {
	return errors.Join(n.flush(ctx, "requests"), n.flush(ctx, "answers"))
}

func (n network) flush(ctx context.Context, set string) error {
	return n.inLab(ctx, "nft", "flush", "set", "bridge", "lab", set)
}

// pairs names all ports that the two machines can have.
func pairs(from, to *Machine) string {
	var all []string
	for _, a := range []string{from.Name, from.Name + wireSuffix} {
		for _, b := range []string{to.Name, to.Name + wireSuffix} {
			all = append(all, fmt.Sprintf("%q . %q", a, b))
		}
	}
	return "{ " + strings.Join(all, ", ") + " }"
}

// ShapeLink makes the machine's cable slow and lossy: each frame in either direction is late by delay (so a round trip
// takes twice that longer) and lost with the given probability (0 to 1). It holds until UnshapeLink or a power cycle.
// It does not need the kernel's netem, which many kernels lack.
func (m *Machine) ShapeLink(ctx context.Context, delay time.Duration, loss float64) error {
	if delay < 0 || delay > time.Minute || loss < 0 || loss > 1 {
		return fmt.Errorf("shape the link of %s: delay %v or loss %v is out of range", m.Name, delay, loss)
	}
	if err := m.UnshapeLink(ctx); err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd, err := enterRole(ctx, m.lab.initPid(), true, roleWire, m.lab.Dir, m.Name, delay.String(), fmt.Sprint(loss))
	if err != nil {
		writer.Close()
		return err
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	err = cmd.Run()
	writer.Close()
	if err != nil {
		return err
	}
	if said, _ := io.ReadAll(reader); string(said) != sayUp {
		return fmt.Errorf("shape the link of %s: %s", m.Name, strings.TrimSpace(string(said)))
	}
	return nil
}

// UnshapeLink makes the cable as good as new.
func (m *Machine) UnshapeLink(ctx context.Context) error {
	pid := findRole(roleWire, m.lab.Dir, m.Name)
	if pid == 0 {
		return nil
	}
	namespace, err := pidNamespace(pid)
	if err != nil {
		return nil // it has just gone, and the tap with it
	}
	if err := signalIn(namespace, pid, syscall.SIGKILL); err != nil {
		return err
	}
	return m.lab.inLab(ctx, "ip", "link", "set", m.Name, "master", bridge)
}
