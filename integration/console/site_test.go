package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/units"
)

// patience is how long anything may take on a busy machine. It is no promise.
const patience = 3 * time.Minute

// site is a cluster of three coordinators with four simulated nodes.
type site struct {
	*testing.T

	coordinators *testbed.Coordinators
	fleet        *testbed.Fleet
	chromium     context.Context
	program      string
	kept         string // folder for screenshots
}

// raise makes the site and starts a browser.
func raise(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, program: filepath.Join(t.TempDir(), "berth"), kept: t.ArtifactDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, "berth/coordinator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
	s.chromium = launch(t)
	var err error
	if s.coordinators, err = testbed.RaiseCoordinators(t.Context(), s.program, t.TempDir(), 3); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.coordinators.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.fleet, err = testbed.EnrolFleet(t.Context(), s.coordinators, 4); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.fleet.Close)
	return s
}

// sub runs a part of the test under a name of its own.
func (s *site) sub(name string, part func(*site)) {
	s.Run(name, func(t *testing.T) {
		of := *s
		of.T = t
		part(&of)
	})
}

// check ends the test with an error.
func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// berth runs a line as a shell of the operator does.
func (s *site) berth(line string) (out string, code int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(s.program)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"BERTH_CONFIG="+filepath.Join(s.coordinators.Dir, "client.yaml"), "HOME="+s.coordinators.Dir)
	said, err := command.CombinedOutput()
	if command.ProcessState == nil {
		s.Fatalf("%s: %v", line, err)
	}
	return string(said), command.ProcessState.ExitCode()
}

// does runs a line that has to work.
func (s *site) does(line string) {
	s.Helper()
	if out, code := s.berth(line); code != 0 {
		s.Fatalf("%s: exit code %d\n%s", line, code, out)
	}
}

// api is the API of a member that runs.
func (s *site) api() berthv1connect.BerthServiceClient { return s.coordinators.Running()[0].API }

// awaits repeats a check until it has no complaint.
func (s *site) awaits(what string, check func(context.Context) error) {
	s.Helper()
	s.check(testbed.Await(s.Context(), what, patience, check))
}

// leader is the member that leads, and follower one that does not.
func (s *site) leader() (leader, follower *testbed.Member) {
	s.Helper()
	s.awaits("a leader", func(ctx context.Context) (err error) {
		leader, err = s.coordinators.Leader(ctx)
		return err
	})
	for _, m := range s.coordinators.Running() {
		if m != leader {
			return leader, m
		}
	}
	s.Fatal("no coordinator follows")
	return nil, nil
}

// vm is a VM as the cluster has it now.
func (s *site) vm(ctx context.Context, name string) (*berthv1.VM, error) {
	answer, err := s.api().GetVM(ctx, connect.NewRequest(&berthv1.GetVMRequest{Vm: name}))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetVm(), nil
}

// stands waits until a VM is in a state, on a node if one is named.
func (s *site) stands(name string, state berthv1.VMState, node string) {
	s.Helper()
	s.awaits(fmt.Sprintf("%s to be %s on %s", name, state, node), func(ctx context.Context) error {
		vm, err := s.vm(ctx, name)
		if err == nil && (vm.GetState() != state || node != "" && vm.GetNode() != node) {
			err = fmt.Errorf("it is %s on %s", vm.GetState(), vm.GetNode())
		}
		return err
	})
}

const (
	running = berthv1.VMState_VM_STATE_RUNNING
	stopped = berthv1.VMState_VM_STATE_STOPPED
)

// hostile is what somebody may write where a line of text is asked for: markup, letters that turn the direction of the rest, and as many
// as are taken.
var hostile = func() string {
	const text = `"><script>window.hacked=1</script><img src=x onerror="window.hacked=2">` + "\u05d0\u05d1\u05d2"
	return text + strings.Repeat("W", 200-len([]rune(text)))
}()

// longName is a name of as many characters as one may have.
var longName = "long-" + strings.Repeat("n", 59)

// peopled gives the site what its screens show: VMs, a group that holds and one that cannot, and a text from a hostile hand.
func (s *site) peopled() {
	s.Helper()
	s.does("berth policy copy vm-evenly-distributed even --parameter HighVMCount=4,MigrationThreshold=2")
	s.does("berth cluster set default --policy even --cooldown 1s")
	for i, name := range []string{"web1", "web2", "db1", "db2", "lot1", "lot2", "lot3", longName} {
		node := "node1"
		if i < 2 {
			node = "node2"
		}
		_, err := s.api().StartVM(s.Context(), connect.NewRequest(&berthv1.StartVMRequest{
			Name: name, Node: node, Vm: &berthv1.NewVM{
				Spec:        &berthv1.VMSpec{MemoryBytes: int64(400 * units.GiB), Vcpus: 2},
				Description: map[string]string{"web2": hostile}[name], Labels: []string{"tier-" + strings.TrimRight(name, "0123456789n")[:2]},
			},
		}))
		s.check(err)
	}
	for _, name := range []string{"fix1", "fix2"} {
		_, err := s.api().StartVM(s.Context(), connect.NewRequest(&berthv1.StartVMRequest{
			Name: name, Node: "node4", Vm: &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: int64(units.GiB), Vcpus: 1}, Migration: "never"},
		}))
		s.check(err)
		s.stands(name, running, "node4")
	}
	s.does("berth group add pair --vm fix1,fix2 --vms-rule positive")
	s.does("berth group add spread --vm fix1,fix2 --vms-rule negative")
	for _, name := range []string{"web1", "web2", "db1", "db2", "lot1", "lot2", "lot3", longName} {
		s.stands(name, running, "")
	}
}
