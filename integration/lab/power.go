package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FenceAgent is the name of a fence agent that every coordinator has. Its argument plug is the name of a host, and it does
// something only while a PowerStrip is there.
const FenceAgent = "fence_lab"

const (
	fenceAgent = SharedDir + "/fence/" + FenceAgent
	powerDir   = SharedDir + "/power" // HOST.on: it has power; HOST.off: somebody wants it switched off
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

	mu   sync.Mutex
	off  map[string]time.Time
	errs []error
}

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
	strip := &PowerStrip{stop: cancel, off: map[string]time.Time{}}
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
				wanted := filepath.Join(power, host.Name+".off")
				if _, err := os.Stat(wanted); err == nil {
					strip.cut(host, filepath.Join(power, host.Name+".on"), wanted)
				}
			}
		}
	})
	return strip, nil
}

// cut switches a host off, and only then says so.
func (p *PowerStrip) cut(host *Host, on, wanted string) {
	err := host.PowerOff()
	if err == nil {
		if err = os.Remove(on); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.errs = append(p.errs, err)
		return
	}
	if _, before := p.off[host.Name]; !before {
		p.off[host.Name] = time.Now()
	}
	p.errs = append(p.errs, os.Remove(wanted))
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
