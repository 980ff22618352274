package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The commands of the first run are read from the README: what stands there is what is run.
const (
	readme         = "README.md"
	firstRunTitle  = "## The first run"
	commandsPrefix = "    "
)

// firstRun are the commands below the heading, in their order.
func firstRun(text string) []string {
	_, section, found := strings.Cut(text, "\n"+firstRunTitle+"\n")
	if !found {
		return nil
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for line := range strings.Lines(section) {
		if command, indented := strings.CutPrefix(line, commandsPrefix); indented {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// letIn lets root of the coordinator in on the nodes, as an administrator has it before the first run.
func letIn(ctx context.Context, s *site) error {
	if err := s.coord.do(ctx, "ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519"); err != nil {
		return err
	}
	key, err := os.ReadFile(s.coord.path("/root/.ssh/id_ed25519.pub"))
	if err != nil {
		return err
	}
	var known strings.Builder
	for _, node := range s.nodes {
		if err := os.MkdirAll(node.path("/root/.ssh"), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(node.path("/root/.ssh/authorized_keys"), key, 0o600); err != nil {
			return err
		}
		own, err := os.ReadFile(node.path("/etc/ssh/ssh_host_ed25519_key.pub"))
		if err != nil {
			return err
		}
		fmt.Fprintf(&known, "%s %s", node.name, own)
	}
	return os.WriteFile(s.coord.path("/root/.ssh/known_hosts"), []byte(known.String()), 0o600)
}

// bringUp runs the commands of the README up to the VM, and tells how long they took. The migration follows in moveVM, when there is
// something that makes another node the best.
func bringUp(ctx context.Context, s *site, packages string) error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	commands := firstRun(string(text))
	if len(commands) != 5 {
		return fmt.Errorf("the first run of %s has %d commands, want 5: %q", readme, len(commands), commands)
	}
	if err := letIn(ctx, s); err != nil {
		return err
	}
	step("The first run, as %s has it: %d commands on the coordinator, none on the hypervisors", readme, len(commands))
	if _, err := s.coord.fetch(packages, "berth_*.deb"); err != nil {
		return err
	}
	began := time.Now()
	if err := s.coord.do(ctx, commands[0]); err != nil {
		return err
	}
	s.first, s.migrate = time.Since(began), commands[4]
	step("A service that is not set up yet waits: it neither fails nor loops")
	if err := s.coord.do(ctx,
		"systemd-analyze verify --man=yes /usr/lib/systemd/system/berth-coordinator.service",
		"systemd-analyze security --offline=true --threshold=25 --no-pager /usr/lib/systemd/system/berth-coordinator.service",
		"systemctl start berth-coordinator && systemctl show --property=ActiveState,ConditionResult berth-coordinator",
		"! systemctl is-failed berth-coordinator",
		"id berth",
	); err != nil {
		return err
	}
	step("On with the first run")
	began = time.Now()
	for _, command := range commands[1:4] {
		if err := s.coord.do(ctx, command); err != nil {
			return err
		}
	}
	s.first += time.Since(began)
	for _, node := range s.nodes {
		if _, err := os.Stat(node.path("/usr/bin/berth-agent")); err != nil {
			return fmt.Errorf("%s has no agent: %w", node.name, err)
		}
		if left, err := filepath.Glob(node.path("/tmp/tmp.*")); err != nil || len(left) > 0 {
			return fmt.Errorf("%s: copies of the package are left: %v (%w)", node.name, left, err)
		}
	}
	return nil
}
