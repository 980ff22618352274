package crew

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"berth/coordinator/model"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// most is how many agents a process has at most: with two connections each while one replaces another, and the files of their
// certificates, they stay far below 20,000 open files.
const most = 5000

// Crew is a number of processes with simulated agents.
type Crew struct {
	size      int // agents
	awaited   int // how many of them are to have a session
	folder    string
	processes []*process
}

type process struct {
	*testbed.Process
	first, count int
	calls        *rpc.Client
}

// Raise starts the processes for so many agents, at least two of them. Certificates, sockets and logs are in a folder that is there.
func Raise(ctx context.Context, folder string, agents int) (_ *Crew, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Crew{size: agents, folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	parts := max(2, (agents+most-1)/most)
	for i := range parts {
		p := &process{first: agents * i / parts, count: agents*(i+1)/parts - agents*i/parts}
		socket := filepath.Join(folder, fmt.Sprintf("agents%d.sock", i))
		if p.Process, err = testbed.StartProcess(filepath.Join(folder, fmt.Sprintf("agents%d.log", i)), self, role, socket); err != nil {
			return nil, err
		}
		c.processes = append(c.processes, p)
		err = testbed.Await(ctx, "a process of agents", 20*time.Second, func(context.Context) error {
			p.calls, err = rpc.Dial("unix", socket)
			return errors.Join(err, p.Alive())
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close ends the processes, and with them all agents.
func (c *Crew) Close() error {
	var all []error
	for _, p := range c.processes {
		if p.calls != nil {
			_ = p.calls.Close() // the process ends
		}
		all = append(all, p.End(syscall.SIGKILL))
	}
	return errors.Join(all...)
}

// PIDs are the process IDs.
func (c *Crew) PIDs() []int {
	var all []int
	for _, p := range c.processes {
		all = append(all, p.PID())
	}
	return all
}

// all tells every process the same at once.
func all[A, R any](c *Crew, method string, argument A, took func(R)) error {
	answers := make([]R, len(c.processes))
	var group errgroup.Group
	for i, p := range c.processes {
		group.Go(func() error { return p.call(method, argument, &answers[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, answer := range answers {
		took(answer)
	}
	return nil
}

func (p *process) call(method string, argument, answer any) error {
	if err := p.calls.Call(role+"."+method, argument, answer); err != nil {
		return errors.Join(fmt.Errorf("a process of agents: %s: %w", method, err), p.Alive())
	}
	return nil
}

// Enrol enrols all nodes through the coordinator that leads.
func (c *Crew) Enrol(ctx context.Context, members *testbed.Coordinators) error {
	var addresses []string
	for _, m := range members.Members {
		addresses = append(addresses, m.Listen.API)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range c.processes {
		group.Go(func() error {
			for at := p.first; at < p.first+p.count; at += model.MaxTokenUses {
				some := Recruits{Coordinators: addresses, Folder: c.folder, First: at, Count: min(model.MaxTokenUses, p.first+p.count-at)}
				made, err := testbed.Patiently(ctx, func() (*connect.Response[berthv1.CreateTokenResponse], error) {
					return members.Members[0].API.CreateToken(ctx, connect.NewRequest(&berthv1.CreateTokenRequest{
						Purpose: pki.PurposeAgent, Uses: int32(some.Count),
					}))
				})
				if err != nil {
					return err
				}
				some.Token = made.Msg.GetToken()
				if err := p.call("Enrol", some, new(bool)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func ignore(bool) {}

// Run lets all agents look for their leader, all at once.
func (c *Crew) Run() error {
	c.awaited = c.size
	return all(c, "Run", true, ignore)
}

// Report lets so many nodes do nothing but report to an address, at a pace of their own, all at once. It is for crews that do not Run.
func (c *Crew) Report(address string, every time.Duration, nodes int) error {
	c.awaited = nodes
	return all(c, "Report", Reports{address, every, nodes}, ignore)
}

// Silence ends what Report has begun.
func (c *Crew) Silence() error { return all(c, "Silence", true, ignore) }

// Gather has all agents call from one address from their next connection on, or each from its own.
func (c *Crew) Gather(one bool) error { return all(c, "Gather", one, ignore) }

// Drop breaks the connections of all agents, without a farewell.
func (c *Crew) Drop() error { return all(c, "Drop", true, ignore) }

// Count counts the agents that a leader has welcomed since a moment.
func (c *Crew) Count(since time.Time) (sum Count, err error) {
	err = all(c, "Count", since, func(one Count) {
		sum.In, sum.Open = sum.In+one.In, sum.Open+one.Open
		sum.Welcomes, sum.Samples = sum.Welcomes+one.Welcomes, sum.Samples+one.Samples
		if one.Last.After(sum.Last) {
			sum.Last = one.Last
		}
	})
	return sum, err
}

// AwaitBack waits until a leader has welcomed every agent since a moment, and tells after which time the last one was.
func (c *Crew) AwaitBack(ctx context.Context, since time.Time, limit time.Duration) (time.Duration, error) {
	var last time.Duration
	err := testbed.Await(ctx, "the agents to be back", limit, func(context.Context) error {
		count, err := c.Count(since)
		if err == nil && count.In < c.awaited {
			err = fmt.Errorf("%d of %d are, with %d welcomes", count.In, c.awaited, count.Welcomes)
		}
		last = count.Last.Sub(since)
		return err
	})
	return last, err
}

// Domains are the nodes that have each domain, by UUID.
func (c *Crew) Domains() (map[string][]string, error) {
	on := map[string][]string{}
	err := all(c, "Domains", true, func(some map[string][]string) {
		for id, nodes := range some {
			on[id] = append(on[id], nodes...)
		}
	})
	return on, err
}
