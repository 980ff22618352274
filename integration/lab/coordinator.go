package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"berth/agent/hypervisor/statusfiles"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// Coordinator is a machine with a Raft member of Berth.
type Coordinator struct{ *Machine }

// Berth is the name of the coordinator's service, for Machine.Kill and its kind.
const Berth = "berth"

// The ports that the lab connects to, Berth's defaults.
const (
	apiPort   = "7420"
	agentPort = "7421"
)

// Init makes the first member of a new cluster. It is not started.
func (c *Coordinator) Init(ctx context.Context) error {
	if _, err := c.Exec(ctx, "berth", "coordinator", "init", "--name", c.Name, "--advertise", c.Address); err != nil {
		return err
	}
	return c.configure()
}

// Join enrols this member with another one. It is not started.
func (c *Coordinator) Join(ctx context.Context, other *Coordinator, token string) error {
	if _, err := c.Exec(ctx, "berth", "coordinator", "join", other.Address, token, "--name", c.Name, "--advertise", c.Address); err != nil {
		return err
	}
	return c.configure()
}

// configure tells the member what the lab wants otherwise than the product's defaults.
func (c *Coordinator) configure() error {
	return editYAML(c.Path("/etc/berth/coordinator.yaml"), func(config map[string]any) {
		config["fence_agents"] = []string{path.Dir(fenceAgent)}
		if c.lab.options.PassInterval != 0 {
			config["pass_interval"] = c.lab.options.PassInterval.String()
		}
	})
}

// Start starts the member.
func (c *Coordinator) Start(ctx context.Context) error {
	return c.Machine.Start(ctx, Berth, "berth", "coordinator", "run")
}

// Kill ends the member with SIGKILL.
func (c *Coordinator) Kill() error { return c.Machine.Kill(Berth) }

// Stop ends the member in an orderly way.
func (c *Coordinator) Stop() error { return c.Machine.Stop(Berth) }

// Pause freezes the member.
func (c *Coordinator) Pause() error { return c.Machine.Pause(Berth) }

// Continue thaws a paused member.
func (c *Coordinator) Continue() error { return c.Machine.Continue(Berth) }

// StartAgent starts the agent as its unit does (systemd/berth-agent.service): under an account of its own that may use libvirt's socket,
// and may do nothing else.
func (h *Host) StartAgent(ctx context.Context) error {
	const prepare = `find /var/lib/berth/agent -xdev -user root -exec chown --no-dereference "$0:$0" {} +
mkdir -p /run/berth-agent && chown "$0:$0" /run/berth-agent
[ ! -e /sys/class/dmi/id/product_uuid ] || install -m 0444 /sys/class/dmi/id/product_uuid /run/berth-agent/product_uuid
berth-agent departed`
	if _, err := h.Exec(ctx, "sh", "-c", prepare, agentAccount); err != nil {
		return err
	}
	if err := h.startStatusFiles(ctx); err != nil {
		return err
	}
	return h.Start(ctx, Agent, "setpriv", "--reuid", agentAccount, "--regid", agentAccount, "--groups", libvirtGroup,
		"--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "berth-agent", "run")
}

// startStatusFiles starts the service that reads libvirt's files for the agent, if it does not run. It outlives the agent.
func (h *Host) startStatusFiles(ctx context.Context) error {
	if h.Pid(StatusFiles) != 0 {
		return nil
	}
	if err := h.Start(ctx, StatusFiles, "berth-agent", "status-files", "--listen", statusfiles.DefaultSocket); err != nil {
		return err
	}
	return await(ctx, StatusFiles+" on "+h.Name, 30*time.Second, func() (bool, error) {
		_, err := os.Stat(h.Path(statusfiles.DefaultSocket))
		return err == nil, err
	})
}

// StopAgent ends the agent in an orderly way.
func (h *Host) StopAgent() error { return h.Stop(Agent) }

// KillAgent ends the agent with SIGKILL.
func (h *Host) KillAgent() error { return h.Kill(Agent) }

// Enrol makes the host a node of the cluster. The agent is not started.
func (h *Host) Enrol(ctx context.Context, with *Coordinator, token string, flags ...string) error {
	join := append([]string{"berth-agent", "join", with.Address, token, "--name", h.Name, "--yes"}, flags...)
	if _, err := h.Exec(ctx, join...); err != nil {
		return err
	}
	var coordinators []string
	for _, c := range h.lab.Coordinators {
		coordinators = append(coordinators, c.Address+":"+agentPort)
	}
	return editYAML(h.Path("/etc/berth/agent.yaml"), func(config map[string]any) {
		config["coordinators"] = coordinators
		config["virt_type"] = h.lab.VirtType
	})
}

// foundCluster makes a cluster of the coordinators and gives the operator a client configuration.
func (r raising) foundCluster(ctx context.Context) error {
	first := r.Coordinators[0]
	if err := first.Init(ctx); err != nil {
		return err
	}
	if err := first.Start(ctx); err != nil {
		return err
	}
	if err := r.equipOperator(first); err != nil {
		return err
	}
	if err := r.awaitStatus(ctx, func(*berthv1.StatusResponse) bool { return true }); err != nil {
		return err
	}
	// Its suites attach all sorts of devices, and their images are in the lab's own folder. What the guard refuses is tested without a lab.
	if _, err := r.Berth(ctx, "cluster", "set", model.DefaultCluster, "--permit", model.PermitAll); err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, c := range r.Coordinators[1:] {
		all.Go(func() error {
			token, err := r.Token(ctx, "coordinator", c.Name)
			if err != nil {
				return err
			}
			if err := c.Join(ctx, first, token); err != nil {
				return err
			}
			return c.Start(ctx)
		})
	}
	return all.Wait()
}

// enrolHosts makes every host a node, and waits until the cluster is complete.
func (r raising) enrolHosts(ctx context.Context) error {
	all, joined := errgroup.WithContext(ctx)
	for _, h := range r.Hosts {
		all.Go(func() error {
			token, err := r.Token(joined, "agent", h.Name)
			if err != nil {
				return err
			}
			return h.Enrol(joined, r.Coordinators[0], token)
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	// Whoever joined first was told of nobody else.
	if err := r.RenewTLS(ctx); err != nil {
		return err
	}
	for _, h := range r.Hosts {
		if err := h.StartAgent(ctx); err != nil {
			return err
		}
	}
	return r.AwaitReady(ctx)
}

// equipOperator gives the operator's machine the certificate that `berth coordinator init` has made, and the addresses
// of all coordinators.
func (r raising) equipOperator(first *Coordinator) error {
	for _, name := range []string{"client.yaml", "client"} {
		if err := run("cp", "-a", first.Path("/etc/berth/"+name), r.Operator.Path("/etc/berth/")); err != nil {
			return err
		}
	}
	var addresses []string
	for _, c := range r.Coordinators {
		addresses = append(addresses, c.Address+":"+apiPort)
	}
	return editYAML(r.Operator.Path("/etc/berth/client.yaml"), func(config map[string]any) {
		contexts, _ := config["contexts"].(map[string]any)
		for _, entry := range contexts {
			if fields, ok := entry.(map[string]any); ok {
				fields["coordinators"] = addresses
			}
		}
	})
}

// editYAML changes a configuration file in place.
func editYAML(path string, edit func(map[string]any)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	edit(config)
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, info.Mode())
}

// Result is how a run of the CLI ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// CLI runs `berth` as an operator. An exit code other than 0 is no error; a command that cannot run is.
func (l *Lab) CLI(ctx context.Context, args ...string) (Result, error) {
	cmd, err := l.Operator.Command(ctx, append([]string{"berth"}, args...)...)
	if err != nil {
		return Result{}, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, err
}

// Berth runs `berth` as an operator and returns its standard output; any other exit code than 0 is an error.
func (l *Lab) Berth(ctx context.Context, args ...string) (string, error) {
	result, err := l.CLI(ctx, args...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("exit code %d: %s", result.Code, strings.TrimSpace(result.Stderr))
	}
	if err != nil {
		return result.Stdout, fmt.Errorf("berth %s: %w", strings.Join(args, " "), err)
	}
	return result.Stdout, nil
}

// Ask runs `berth` as an operator and reads its answer, which is the API's own message.
func (l *Lab) Ask(ctx context.Context, answer proto.Message, args ...string) error {
	output, err := l.Berth(ctx, append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	if err := protojson.Unmarshal([]byte(output), answer); err != nil {
		return fmt.Errorf("the answer of berth %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Token makes a join token for a machine of the given name; the purpose is agent, coordinator or operator.
func (l *Lab) Token(ctx context.Context, purpose, name string) (string, error) {
	var answer berthv1.CreateTokenResponse
	err := l.Ask(ctx, &answer, "token", "add", "--for", purpose, "--name", name)
	return answer.GetToken(), err
}

// Leader is the coordinator that leads now.
func (l *Lab) Leader(ctx context.Context) (*Coordinator, error) {
	var status berthv1.StatusResponse
	if err := l.Ask(ctx, &status, "status"); err != nil {
		return nil, err
	}
	for _, c := range l.Coordinators {
		if c.Name == status.GetLeader() {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no coordinator of the lab leads, the leader is %q", status.GetLeader())
}

// AwaitReady waits until every coordinator is a voting member, and every host a node that is up and has told what it has: one
// whose agent has just begun counts as up before it has looked.
func (l *Lab) AwaitReady(ctx context.Context) error {
	err := l.awaitStatus(ctx, func(status *berthv1.StatusResponse) bool {
		voters := 0
		for _, member := range status.GetMembers() {
			if member.GetVoter() && member.GetReachable() {
				voters++
			}
		}
		return voters == len(l.Coordinators) && int(status.GetNodesUp()) == len(l.Hosts)
	})
	if err != nil {
		return err
	}
	return await(ctx, "what the nodes have", time.Minute, func() (bool, error) {
		var list berthv1.ListNodesResponse
		if err := l.Ask(ctx, &list, "node", "list"); err != nil {
			return false, err
		}
		for _, node := range list.GetNodes() {
			if node.GetState() != berthv1.NodeState_NODE_STATE_UP || node.GetLedgers() == nil || node.TelemetryAgeSeconds == nil {
				return false, fmt.Errorf(
					"node %s is %s (%s), its memory and load are not known yet", node.GetName(), node.GetState(), node.GetStateReason(),
				)
			}
		}
		return true, nil
	})
}

// awaitStatus asks until there is a leader and the answer is good.
func (l *Lab) awaitStatus(ctx context.Context, good func(*berthv1.StatusResponse) bool) error {
	err := await(ctx, "coordinators and nodes", time.Minute, func() (bool, error) {
		var status berthv1.StatusResponse
		if err := l.Ask(ctx, &status, "status"); err != nil {
			return false, err
		}
		if status.GetLeader() != "" && good(&status) {
			return true, nil
		}
		return false, fmt.Errorf("the status is %v", &status)
	})
	if err == nil {
		return nil
	}
	// The reader wants to know which of them failed, and why.
	var logs strings.Builder
	for _, c := range l.Coordinators {
		logs.WriteString(c.tail(Berth))
	}
	for _, h := range l.Hosts {
		logs.WriteString(h.tail(Agent))
	}
	return fmt.Errorf("%w%s", err, logs.String())
}
