package main

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
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/loopback"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// coordinators are real `berth` processes on loopback: what a cluster of three machines does, without the network
// between them, which the bare twin does not have either.
type coordinators struct {
	program string
	dir     string
	members []*member
	http    *http.Client
}

// member is one coordinator.
type member struct {
	name    string
	dir     string
	listen  listen
	api     berthv1connect.BerthServiceClient
	process *process // nil while it does not run
}

// listen is the part of a coordinator's configuration that this program writes; the rest comes from init and join.
type listen struct {
	API   string `yaml:"api"`
	Agent string `yaml:"agent"`
	Raft  string `yaml:"raft"`
}

func (m *member) config() string { return filepath.Join(m.dir, "coordinator.yaml") }
func (m *member) data() string   { return filepath.Join(m.dir, "data") }

// raiseCoordinators makes a cluster of n members below dir and returns when all of them vote. What they can do is measured,
// not what they let one caller do.
func raiseCoordinators(ctx context.Context, program, dir string, n int) (*coordinators, error) {
	return raiseLimited(ctx, program, dir, n, map[string]any{"rate": -1})
}

// raiseLimited is raiseCoordinators with other limits, as the configuration file has them.
func raiseLimited(ctx context.Context, program, dir string, n int, limits map[string]any) (_ *coordinators, err error) {
	c := &coordinators{program: program, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("raise %d coordinators: %w", n, err), c.close())
		}
	}()
	addresses, err := freeAddresses(3 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		m := &member{
			name: fmt.Sprintf("coord%d", i+1), dir: filepath.Join(dir, fmt.Sprintf("coord%d", i+1)),
			listen: listen{API: addresses[3*i], Agent: addresses[3*i+1], Raft: addresses[3*i+2]},
		}
		if err := config.Write(m.config(), map[string]any{
			"listen": m.listen, "log_level": "info", "limits": limits,
		}, 0o644); err != nil {
			return nil, err
		}
		c.members = append(c.members, m)
	}
	if err := c.initialise(ctx, c.members[0]); err != nil {
		return nil, err
	}
	for _, m := range c.members[1:] {
		if err := c.join(ctx, m); err != nil {
			return nil, err
		}
	}
	return c, c.awaitWhole(ctx)
}

func freeAddresses(n int) ([]string, error) {
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

func (c *coordinators) command(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, c.program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(c.program), strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

func (c *coordinators) initialise(ctx context.Context, m *member) error {
	client := filepath.Join(c.dir, "client.yaml")
	err := c.command(ctx, "coordinator", "init", "--config", m.config(), "--data-dir", m.data(), "--name", m.name,
		"--advertise", localhost, "--client-config", client)
	if err != nil {
		return err
	}
	if c.http, err = operatorClient(client); err != nil {
		return err
	}
	for _, m := range c.members {
		m.api = berthv1connect.NewBerthServiceClient(c.http, "https://"+m.listen.API)
	}
	if err := c.start(m); err != nil {
		return err
	}
	return await(ctx, "the first leader", 30*time.Second, func(ctx context.Context) error {
		if err := m.process.alive(); err != nil {
			return err
		}
		_, err := m.api.ListMembers(ctx, connect.NewRequest(&berthv1.ListMembersRequest{}))
		return err
	})
}

// operatorClient speaks with the certificate of a client configuration.
func operatorClient(path string) (*http.Client, error) {
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

func (c *coordinators) join(ctx context.Context, m *member) error {
	token, err := c.token(ctx, pki.PurposeCoordinator, m.name)
	if err != nil {
		return err
	}
	err = c.command(ctx, "coordinator", "join", c.members[0].listen.API, token, "--config", m.config(), "--data-dir", m.data(),
		"--name", m.name, "--advertise", localhost)
	if err != nil {
		return err
	}
	return c.start(m)
}

func (c *coordinators) token(ctx context.Context, purpose, name string) (string, error) {
	answer, err := c.members[0].api.CreateToken(ctx, connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose, Name: name}))
	if err != nil {
		return "", err
	}
	return answer.Msg.GetToken(), nil
}

// start runs a member.
func (c *coordinators) start(m *member) (err error) {
	m.process, err = startProcess(filepath.Join(m.dir, "log"), c.program, "coordinator", "run", "--config", m.config())
	return err
}

// stop ends a member with a signal.
func (c *coordinators) stop(m *member, signal os.Signal) error {
	p := m.process
	m.process = nil
	return p.end(signal)
}

func (c *coordinators) running() []*member {
	var all []*member
	for _, m := range c.members {
		if m.process != nil {
			all = append(all, m)
		}
	}
	return all
}

func (c *coordinators) pids() []int {
	var all []int
	for _, m := range c.running() {
		all = append(all, m.process.pid())
	}
	return all
}

// leader is the member that leads now.
func (c *coordinators) leader(ctx context.Context) (*member, error) {
	var last error
	for _, m := range c.running() {
		status, err := m.api.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			last = err
			continue
		}
		for _, candidate := range c.running() {
			if candidate.name == status.Msg.GetLeader() {
				return candidate, nil
			}
		}
	}
	return nil, errors.Join(errors.New("no coordinator leads"), last)
}

// awaitWhole waits until every member votes, is reachable and has as much of the log as the leader.
func (c *coordinators) awaitWhole(ctx context.Context) error {
	return await(ctx, "all coordinators to be members", time.Minute, func(ctx context.Context) error {
		for _, m := range c.running() {
			if err := m.process.alive(); err != nil {
				return err
			}
		}
		lead, err := c.leader(ctx)
		if err != nil {
			return err
		}
		answer, err := lead.api.ListMembers(ctx, connect.NewRequest(&berthv1.ListMembersRequest{}))
		if err != nil {
			return err
		}
		ready := 0
		for _, m := range answer.Msg.GetMembers() {
			if m.GetVoter() && m.GetReachable() {
				ready++
			}
		}
		if ready != len(c.members) {
			return fmt.Errorf("%d of %d coordinators vote and are reachable", ready, len(c.members))
		}
		return nil
	})
}

// close ends all members.
func (c *coordinators) close() error {
	var errs []error
	for _, m := range c.running() {
		errs = append(errs, c.stop(m, syscall.SIGKILL))
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// await repeats a check until it has no complaint. The last one is part of the error.
func await(ctx context.Context, what string, limit time.Duration, check func(context.Context) error) error {
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
