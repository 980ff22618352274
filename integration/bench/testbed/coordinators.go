package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clientconfig"
	"berth/integration/loopback"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Coordinators are real `berth` processes on loopback: what a cluster of three machines does, without the network
// between them, which the bare twin does not have either.
type Coordinators struct {
	program string
	Dir     string
	Members []*Member
	http    *http.Client
}

// Member is one coordinator.
type Member struct {
	Name    string
	dir     string
	Listen  listen
	Metrics string // address of its figures for Prometheus
	API     berthv1connect.BerthServiceClient
	Process *Process // nil while it does not run
}

// Listen is the part of a coordinator's configuration that this program writes; the rest comes from init and join.
type listen struct {
	API     string `yaml:"api"`
	Agent   string `yaml:"agent"`
	Raft    string `yaml:"raft"`
	Console string `yaml:"console"`
}

func (m *Member) config() string { return filepath.Join(m.dir, "coordinator.yaml") }

// Data is the folder with its data.
func (m *Member) Data() string { return filepath.Join(m.dir, "data") }

// RaiseCoordinators makes a cluster of n members below dir and returns when all of them vote. What they can do is measured,
// not what they let one caller do.
func RaiseCoordinators(ctx context.Context, program, dir string, n int) (*Coordinators, error) {
	return RaiseLimited(ctx, program, dir, n, map[string]any{"rate": -1})
}

// RaiseLimited is raiseCoordinators with other limits, as the configuration file has them.
func RaiseLimited(ctx context.Context, program, dir string, n int, limits map[string]any) (_ *Coordinators, err error) {
	c := &Coordinators{program: program, Dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("raise %d coordinators: %w", n, err), c.Close())
		}
	}()
	addresses, err := FreeAddresses(5 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		m := &Member{
			Name: fmt.Sprintf("coord%d", i+1), dir: filepath.Join(dir, fmt.Sprintf("coord%d", i+1)),
			Listen:  listen{API: addresses[5*i], Agent: addresses[5*i+1], Raft: addresses[5*i+2], Console: addresses[5*i+3]},
			Metrics: addresses[5*i+4],
		}
		if err := config.Write(m.config(), map[string]any{
			"listen": m.Listen, "metrics": map[string]string{"listen": m.Metrics}, "log_level": "info", "limits": limits,
		}, 0o644); err != nil {
			return nil, err
		}
		c.Members = append(c.Members, m)
	}
	if err := c.initialise(ctx, c.Members[0]); err != nil {
		return nil, err
	}
	for _, m := range c.Members[1:] {
		if err := c.join(ctx, m); err != nil {
			return nil, err
		}
	}
	return c, c.AwaitWhole(ctx)
}

// FreeAddresses are so many addresses on loopback that nobody else gets.
func FreeAddresses(n int) ([]string, error) {
	var found []string
	for range n {
		address, err := loopback.Address()
		if err != nil {
			return nil, err
		}
		found = append(found, address)
	}
	return found, nil
}

// Command runs the CLI of the operator.
func (c *Coordinators) Command(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, c.program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(c.program), strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

func (c *Coordinators) initialise(ctx context.Context, m *Member) error {
	client := filepath.Join(c.Dir, "client.yaml")
	err := c.Command(ctx, "coordinator", "init", "--config", m.config(), "--data-dir", m.Data(), "--name", m.Name,
		"--advertise", localhost, "--client-config", client)
	if err != nil {
		return err
	}
	if c.http, err = OperatorClient(client); err != nil {
		return err
	}
	for _, m := range c.Members {
		m.API = berthv1connect.NewBerthServiceClient(c.http, "https://"+m.Listen.API)
	}
	if err := c.Start(m); err != nil {
		return err
	}
	return Await(ctx, "the first leader", 30*time.Second, func(ctx context.Context) error {
		if err := m.Process.Alive(); err != nil {
			return err
		}
		_, err := m.API.ListMembers(ctx, connect.NewRequest(&berthv1.ListMembersRequest{}))
		return err
	})
}

// OperatorClient speaks with the certificate of a client configuration.
func OperatorClient(path string) (*http.Client, error) {
	file, err := clientconfig.Load(path)
	if err != nil {
		return nil, err
	}
	current, _, err := file.Context("", path)
	if err != nil {
		return nil, err
	}
	secure, err := pki.ClientConfig(current.Files(), pki.RolePeer)
	if err != nil {
		return nil, err
	}
	return rpc.NewHTTPClient(secure), nil
}

func (c *Coordinators) join(ctx context.Context, m *Member) error {
	token, err := c.Token(ctx, pki.PurposeCoordinator, m.Name)
	if err != nil {
		return err
	}
	err = c.Command(ctx, "coordinator", "join", c.Members[0].Listen.API, token, "--config", m.config(), "--data-dir", m.Data(),
		"--name", m.Name, "--advertise", localhost)
	if err != nil {
		return err
	}
	return c.Start(m)
}

// Token lets one machine of that name join.
func (c *Coordinators) Token(ctx context.Context, purpose, name string) (string, error) {
	answer, err := c.Members[0].API.CreateToken(ctx, connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose, Name: name}))
	if err != nil {
		return "", err
	}
	return answer.Msg.GetToken(), nil
}

// Start runs a member.
func (c *Coordinators) Start(m *Member) (err error) {
	m.Process, err = StartProcess(filepath.Join(m.dir, "log"), c.program, "coordinator", "run", "--config", m.config())
	return err
}

// Stop ends a member with a signal.
func (c *Coordinators) Stop(m *Member, signal os.Signal) error {
	p := m.Process
	m.Process = nil
	return p.End(signal)
}

// Running are the members whose processes are there.
func (c *Coordinators) Running() []*Member {
	var all []*Member
	for _, m := range c.Members {
		if m.Process != nil {
			all = append(all, m)
		}
	}
	return all
}

// PIDs are the process IDs of these.
func (c *Coordinators) PIDs() []int {
	var all []int
	for _, m := range c.Running() {
		all = append(all, m.Process.PID())
	}
	return all
}

// Leader is the member that leads now.
func (c *Coordinators) Leader(ctx context.Context) (*Member, error) {
	var last error
	for _, m := range c.Running() {
		status, err := m.API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			last = err
			continue
		}
		for _, candidate := range c.Running() {
			if candidate.Name == status.Msg.GetLeader() {
				return candidate, nil
			}
		}
	}
	return nil, errors.Join(errors.New("no coordinator leads"), last)
}

// AwaitWhole waits until every member votes, is reachable and has as much of the log as the leader.
func (c *Coordinators) AwaitWhole(ctx context.Context) error {
	return Await(ctx, "all coordinators to be members", time.Minute, func(ctx context.Context) error {
		for _, m := range c.Running() {
			if err := m.Process.Alive(); err != nil {
				return err
			}
		}
		lead, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		answer, err := lead.API.ListMembers(ctx, connect.NewRequest(&berthv1.ListMembersRequest{}))
		if err != nil {
			return err
		}
		ready := 0
		for _, m := range answer.Msg.GetMembers() {
			if m.GetVoter() && m.GetReachable() {
				ready++
			}
		}
		if ready != len(c.Members) {
			return fmt.Errorf("%d of %d coordinators vote and are reachable", ready, len(c.Members))
		}
		return nil
	})
}

// Close ends all members.
func (c *Coordinators) Close() error {
	var errs []error
	for _, m := range c.Running() {
		errs = append(errs, c.Stop(m, syscall.SIGKILL))
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// Await repeats a check until it has no complaint. The last one is part of the error.
func Await(ctx context.Context, what string, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
