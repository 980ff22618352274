package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
	"berth/integration/writer"
	berthv1 "berth/shared/gen/berth/v1"
)

// play is a seed that is being played.
type play struct {
	*site
	script script
	name   string
	dir    string
	first  *lab.Host

	mu sync.Mutex
	history
}

// playSeed plays a seed. The error is none of the product: the guest could not be raised, or not be taken away.
func (s *site) playSeed(ctx context.Context, drawn script) (*history, error) {
	p := &play{site: s, script: drawn, name: drawn.name(), dir: sharedDir, first: s.lab.Hosts[drawn.seed%uint64(len(s.lab.Hosts))]}
	if drawn.local {
		p.dir = localDir
	}
	p.history.name, p.history.ha = p.name, drawn.ha
	begun := time.Now()
	part := func(name string) { s.took(name, time.Since(begun)); begun = time.Now() }
	if err := p.begin(ctx); err != nil {
		return nil, fmt.Errorf("raise the guest: %w", errors.Join(err, p.remove(ctx)))
	}
	part("begin")
	for i := 0; i < len(drawn.steps); i++ {
		var both sync.WaitGroup
		for drawn.steps[i].twin {
			one := drawn.steps[i]
			both.Go(func() { p.do(ctx, one) })
			i++
		}
		alone := i == 0 || !drawn.steps[i-1].twin
		p.do(ctx, drawn.steps[i])
		both.Wait()
		if alone {
			p.check(ctx)
		}
		if err := pause(ctx, time.Duration(drawn.steps[i].rest)*time.Millisecond); err != nil {
			return nil, err
		}
	}
	part("steps")
	p.settle(ctx)
	part("settle")
	p.restart(ctx)
	part("restart")
	err := errors.Join(p.finish(), p.remove(ctx))
	part("remove")
	return &p.history, err
}

// begin raises the guest, and waits until it writes.
func (p *play) begin(ctx context.Context) error {
	p.breaking.RLock()
	defer p.breaking.RUnlock()
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if err := p.lab.AwaitReady(ctx); err != nil {
		return err
	}
	disk := p.base()
	if err := writer.Disk(p.first, disk); err != nil {
		return err
	}
	document := filepath.Join(lab.SharedDir, p.name+".xml")
	if err := os.WriteFile(p.lab.Operator.Path(document), []byte(writer.XML(p.lab, p.name, disk)), 0o600); err != nil {
		return err
	}
	if !p.script.adopted {
		err := poll(ctx, commandLimit, time.Second, func() error { // a restart of another seed may have just left its node without a list
			_, err := p.lab.Berth(ctx, "vm", "start", p.name, "--xml", document, "--node", p.first.Name)
			return err
		})
		if err != nil {
			return err
		}
	} else {
		if _, err := p.first.Virsh(ctx, "define", document); err != nil {
			return err
		}
		if _, err := p.first.Virsh(ctx, "start", p.name); err != nil {
			return err
		}
		err := poll(ctx, commandLimit, time.Second, func() error {
			_, err := p.lab.Berth(ctx, "vm", "adopt", p.name)
			return err
		})
		if err != nil {
			return err
		}
	}
	if p.script.ha {
		err := poll(ctx, commandLimit, time.Second, func() error { // until its node has told its pools, the guest may be bound to it
			_, err := p.lab.Berth(ctx, "vm", "set", p.name, "--ha=true")
			return err
		})
		if err != nil {
			return err
		}
	}
	return p.writes(ctx, 0)
}

// base is the disk that the guest begins with.
func (p *play) base() string { return place{name: p.name, dir: p.dir, with: "qcow2"}.file() }

// writes waits until the guest has said more than so many lines, and has written since it booted last.
func (p *play) writes(ctx context.Context, more int) error {
	return poll(ctx, commandLimit, 200*time.Millisecond, func() error {
		lines, err := writer.Log(p.lab, p.name)
		if err == nil && (len(lines) <= more || lines[len(lines)-1].Word != writer.Wrote) {
			err = fmt.Errorf("it has said %d lines, and no more than %d before", len(lines), more)
		}
		return err
	})
}

// where is the host that has the guest's process, or had it last.
func (p *play) where() *lab.Host {
	if host, err := p.lab.HostOf(p.name); err == nil {
		return host
	}
	host := p.first
	for _, run := range p.runsOf() {
		if h, err := p.lab.Host(run.Host); err == nil {
			host = h
		}
	}
	return host
}

func (p *play) runsOf() []lab.Run {
	var own []lab.Run
	for _, run := range p.watch.Runs() {
		if run.Name == p.name {
			own = append(own, run)
		}
	}
	return own
}

// do does one step, and keeps what came of it.
func (p *play) do(ctx context.Context, one step) {
	host := p.where()
	if h, err := p.lab.Host(one.at); err == nil {
		host = h
	}
	other := p.lab.Hosts[0]
	for i, h := range p.lab.Hosts {
		if h == host {
			other = p.lab.Hosts[(i+1+int(p.script.seed)%2)%len(p.lab.Hosts)]
		}
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	d := done{step: one, begun: time.Now()}
	defer func() { p.took("step "+one.verb.name, time.Since(d.begun)) }()
	var args []string
	if one.verb.args != nil {
		args = one.verb.args(place{name: p.name, host: host.Name, other: other.Name, dir: p.dir, with: one.with})
	}
	switch one.verb.by {
	case berth:
		result, err := p.lab.CLI(ctx, args...)
		d.code, d.said = result.Code, result.Stdout+result.Stderr
		if err != nil {
			d.code, d.said = -1, err.Error()
		}
	case virsh:
		d.code, d.said = outcome(host.Virsh(ctx, args...))
	case shell:
		d.code, d.said = outcome(host.Exec(ctx, "sh", "-c", args[0]))
	case fault:
		d.code, d.said = outcome("", p.fail(ctx, one.verb.name, host))
	}
	d.said = host.Name + ": " + strings.TrimSpace(d.said)
	d.ended = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, d)
}

func outcome(said string, err error) (int, string) {
	if err != nil {
		return 1, err.Error()
	}
	return 0, said
}

// check holds what Berth says it has done against what is so. Only what nobody else was working at is checked.
func (p *play) check(ctx context.Context) {
	p.mu.Lock()
	last := p.done[len(p.done)-1]
	p.mu.Unlock()
	if last.verb.by != berth || last.code != 0 {
		return
	}
	wanted := map[string]int{"berth start": 1, "berth stop": 0, "berth stop --force": 0}
	want, promised := wanted[last.verb.name]
	if !promised || strings.Contains(last.said, "another node may run it") {
		return
	}
	// The observer sees it a moment later.
	_ = poll(ctx, late, 100*time.Millisecond, func() error {
		if running := p.watch.Running(p.name); running != want {
			return fmt.Errorf("%d processes execute it", running)
		}
		return nil
	})
	if running := p.watch.Running(p.name); running != want {
		const broken = "%s is done at %s, and %d processes execute it: %s"
		p.kept = append(p.kept, fmt.Sprintf(broken, last.step, clock(last.ended), running, last.said))
	}
}

// settle waits until Berth explains all that is so.
func (p *play) settle(ctx context.Context) {
	_ = poll(ctx, quietLimit, 2*time.Second, func() error { // what is not explained by then, the judge finds
		l, err := p.see(ctx)
		if err != nil {
			return err
		}
		p.look, p.quiet, p.off = l, time.Now(), l.host == ""
		if found := l.unexplained(); len(found) > 0 {
			return errors.New(strings.Join(found, "; "))
		}
		if l.busy {
			return errors.New("an operation works on it")
		}
		return nil
	})
}

// verbNamed is a row of the table.
func verbNamed(name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
	}
	panic("there is no verb " + name)
}

// restart stops the guest and starts it again, as Berth says that it can be done, and waits until it writes: what it finds on its disk then
// is judged.
func (p *play) restart(ctx context.Context) {
	lines, _ := writer.Log(p.lab, p.name) // what cannot be read, finish tells
	l := p.look
	var told answer
	var unseen error // why the guest could not be looked at the last time
	for begun := time.Now(); ; {
		name, at := l.next(told)
		p.do(ctx, step{verb: verbNamed(name), at: at})
		last := p.done[len(p.done)-1]
		if last.code == 0 && name == "berth start" {
			break
		}
		told = told.after(name, last.code, last.said)
		if time.Since(begun) > startLimit {
			const gave = "not within %s: %s: exit code %d, %s; seen last: %+v, %v"
			if p.held = p.heldByLibvirt(ctx, l.left); p.held == "" {
				p.stuck = fmt.Sprintf(gave, startLimit, name, last.code, last.said, l, unseen)
			}
			return
		}
		if err := pause(ctx, time.Second); err != nil {
			p.stuck = err.Error()
			return
		}
		var now look
		if now, unseen = p.see(ctx); unseen == nil {
			l = now
		}
	}
	if err := p.writes(ctx, len(lines)); err != nil {
		p.stuck = fmt.Sprintf("started again it does not write: %v", err)
	}
}

// heldByLibvirt is what libvirt says where it does not end what a migration has left, though nothing of Berth asks it to: a libvirtd whose
// peer went away at the wrong moment keeps the domain's lock, now and then also over a restart. Whoever does what Berth says gets no
// further then. It breaks no promise of Berth's, which starts no second copy beside that one. Empty: it ends it.
func (p *play) heldByLibvirt(ctx context.Context, left []string) string {
	for _, name := range left {
		h, err := p.lab.Host(name)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, commandLimit)
		defer cancel()
		if _, err := h.Virsh(ctx, "destroy", p.name); err != nil && strings.Contains(err.Error(), "cannot acquire state change lock") {
			return fmt.Sprintf("libvirt on %s: %v", h.Name, err)
		}
	}
	return ""
}

// finish gathers what the judge needs.
func (p *play) finish() error {
	var err error
	p.lines, err = writer.Log(p.lab, p.name)
	p.runs = p.runsOf()
	for _, overlap := range p.watch.Overlaps() {
		if overlap.First.Name == p.name {
			p.twice = append(p.twice, overlap.String())
		}
	}
	// A step that met a fault may have its effect once that is mended.
	for i := range p.done {
		d := &p.done[i]
		for _, f := range p.faulty() {
			if f.from.Before(d.ended.Add(late)) && f.to.After(d.begun) && f.to.Add(cutLength).After(d.ended) {
				d.ended = f.to.Add(cutLength)
			}
		}
	}
	return err
}

// remove takes the guest and all of its files away.
func (p *play) remove(ctx context.Context) error {
	err := poll(ctx, quietLimit, 2*time.Second, func() error {
		var answer berthv1.GetVMResponse
		result, err := p.lab.CLI(ctx, "vm", "show", p.name, "-o", "name")
		if err != nil || result.Code == 4 {
			return err
		}
		if err := p.lab.Ask(ctx, &answer, "vm", "show", p.name); err != nil {
			return err
		}
		var last error
		if id := answer.GetVm().GetOperationId(); id != "" {
			_, last = p.lab.Berth(ctx, "operation", "cancel", id)
			return errors.Join(errors.New("an operation works on it"), last)
		}
		if answer.GetVm().GetState() != berthv1.VMState_VM_STATE_STOPPED {
			_, last = p.lab.Berth(ctx, "vm", "stop", p.name, "--force")
		}
		_, err = p.lab.Berth(ctx, "vm", "delete", p.name, "--yes")
		return errors.Join(err, last)
	})
	var all errgroup.Group
	for _, h := range p.lab.Hosts {
		all.Go(func() error {
			// One virsh for all: to start a process is most of what this costs. It goes on after a command that fails.
			const script = `virsh -q "destroy $0; managedsave-remove $0; undefine $0"
rm -f "$1/berth-$0".* "$1/berth-$0"-*`
			_, err := h.Exec(ctx, "sh", "-c", script, p.name, p.dir)
			return err
		})
	}
	if err = errors.Join(err, all.Wait()); err != nil {
		return fmt.Errorf("take %s away: %w", p.name, err)
	}
	return nil
}
