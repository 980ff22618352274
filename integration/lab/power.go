package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FenceAgent is the name of a fence agent that every coordinator has. Its argument plug is the name of a host, or SecondPlug of it,
// and it does something only while a PowerStrip is there.
const FenceAgent = "fence_lab"

const (
	fenceAgent = SharedDir + "/fence/" + FenceAgent
	powerDir   = SharedDir + "/power" // PLUG.on: it has power; PLUG.off: somebody wants it switched off
)

// fenceScript reads what all fence agents read, and ends as they end.
const fenceScript = `#!/bin/sh
while IFS='=' read -r name value; do
	case $name in
	action) action=$value ;;
	plug) plug=$value ;;
	esac
done
[ -d ` + powerDir + ` ] || exit 1
case $action in
off)
	: >"` + powerDir + `/$plug.off"
	while [ -e "` + powerDir + `/$plug.off" ]; do sleep 0.1; done
	;;
status) [ -e "` + powerDir + `/$plug.on" ] || exit 2 ;;
*) exit 1 ;;
esac
`

// PowerStrip switches hosts off when a fence agent asks for it.
type PowerStrip struct {
	stop context.CancelFunc
	done sync.WaitGroup
	dir  string

	mu    sync.Mutex
	lying map[string]bool // hosts that it says are off, and leaves on
	off   map[string]time.Time
	lies  int
	errs  []error
}

// SecondPlug is what the second power supply of a host is plugged into.
func SecondPlug(host *Host) string { return host.Name + ".second" }

// PowerStrip plugs all hosts into a strip, until Unplug.
func (l *Lab) PowerStrip() (*PowerStrip, error) {
	inside := func(path string) string { return filepath.Join(l.Dir, "shared", path[len(SharedDir):]) }
	power := inside(powerDir)
	if err := errors.Join(os.MkdirAll(power, 0o755), os.MkdirAll(filepath.Dir(inside(fenceAgent)), 0o755),
		os.WriteFile(inside(fenceAgent), []byte(fenceScript), 0o755)); err != nil {
		return nil, err
	}
	for _, host := range l.Hosts {
		if err := os.WriteFile(filepath.Join(power, host.Name+".on"), nil, 0o644); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	strip := &PowerStrip{stop: cancel, dir: power, off: map[string]time.Time{}, lying: map[string]bool{}}
	strip.done.Go(func() {
		defer os.RemoveAll(power)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			for _, host := range l.Hosts {
				for _, plug := range []string{host.Name, SecondPlug(host)} {
					if strip.is(plug, "off") {
						strip.cut(host, plug)
					}
				}
			}
		}
	})
	return strip, nil
}

// TwoSupplies gives a host a second power supply: it is off when both of its plugs are.
func (p *PowerStrip) TwoSupplies(host *Host) error {
	return os.WriteFile(p.file(SecondPlug(host), "on"), nil, 0o644)
}

// Lie has the strip say from now on that a host is off, without switching it off.
func (p *PowerStrip) Lie(host *Host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lying[host.Name] = true
}

func (p *PowerStrip) file(plug, what string) string { return filepath.Join(p.dir, plug+"."+what) }

func (p *PowerStrip) is(plug, what string) bool {
	_, err := os.Stat(p.file(plug, what))
	return err == nil
}

// cut takes the power from a plug, and its host is off when it has no other. Only then it says so.
func (p *PowerStrip) cut(host *Host, plug string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	other := host.Name
	if plug == other {
		other = SecondPlug(host)
	}
	dies := !p.lying[host.Name] && !p.is(other, "on")
	var err error
	if dies {
		err = host.PowerOff()
	}
	if err == nil {
		if err = os.Remove(p.file(plug, "on")); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		p.errs = append(p.errs, err)
		return
	}
	if _, before := p.off[host.Name]; dies && !before {
		p.off[host.Name] = time.Now()
	}
	if p.lying[host.Name] {
		p.lies++
	}
	p.errs = append(p.errs, os.Remove(p.file(plug, "off")))
}

// Lies is how often it has said that a host is off which it has left on.
func (p *PowerStrip) Lies() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lies
}

// Off is when a host was switched off first; zero: it was not.
func (p *PowerStrip) Off(host *Host) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.off[host.Name]
}

// Unplug takes the strip away. The error has what it could not do.
func (p *PowerStrip) Unplug() error {
	p.stop()
	p.done.Wait()
	return errors.Join(p.errs...)
}
