package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// prove follows the README from fresh machines to a migrated VM, and then back to machines without Berth.
func prove(ctx context.Context, s *site, packages string) error {
	for _, part := range []func(context.Context, *site, string) error{
		installByHand, bringUp, prepareMigration, lookAround, askFenceAgent, moveVM, workBeside, cutPower, changePackage, upgrade, removeAll,
	} {
		if err := part(ctx, s, packages); err != nil {
			return err
		}
	}
	return nil
}

// do runs lines on one machine until one fails.
func (m *machine) do(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		if _, err := m.run(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies the one package that matches the pattern to the machine.
func (m *machine) fetch(packages, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(packages, pattern))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d packages match %s in %s, want 1: run make packages", len(found), pattern, packages)
	}
	return m.put(found[0])
}

// installByHand tries the agent's RPM where it is not needed: a package that nobody has set up does nothing, and goes without a trace.
func installByHand(ctx context.Context, s *site, packages string) error {
	step("Install the agent's RPM by hand: a service that is not set up yet waits, it neither fails nor loops")
	name, err := s.coord.fetch(packages, "berth-agent-*.rpm")
	if err != nil {
		return err
	}
	return s.coord.do(ctx,
		"rpm -Uvh --nodeps "+name, // Debian's rpm does not know what dpkg has installed
		"systemd-analyze verify --man=yes /usr/lib/systemd/system/berth-agent.service",
		"systemd-analyze verify --man=yes /usr/lib/systemd/system/berth-status-files.socket",
		"for unit in /usr/lib/systemd/system/berth-*.service; do"+ // those of both packages
			" systemd-analyze security --offline=true --threshold=25 --no-pager $unit || exit 1; done",
		"systemctl start berth-agent && ! systemctl is-failed berth-agent",
		"id berth-agent | grep libvirt",
		"rpm -e berth-agent && test ! -e /usr/bin/berth-agent",
	)
}

// introduced is how long libvirt takes to let a node in that was introduced to it: it restarts for that. It is less than the timer needs
// to come round, so that what 'node add' did not do is not done for it.
const introduced = 20 * time.Second

// prepareMigration looks whether 'node add' has let the libvirts of the nodes know of each other: whoever joined first was told of nobody
// else. Nothing is started here for that.
func prepareMigration(ctx context.Context, s *site, _ string) error {
	step("The libvirts of the nodes know of each other, without waiting for the timer")
	for i, node := range s.nodes {
		other := s.nodes[1-i].name
		if err := node.do(ctx, "systemctl is-active berth-libvirt-tls.timer"); err != nil {
			return err
		}
		if err := wait(ctx, introduced, func() error {
			return node.do(ctx, "virsh --connect qemu+tls://"+other+"/system version --daemon")
		}); err != nil {
			return err
		}
		if err := node.do(ctx,
			// What QEMU has does not open another host's libvirt.
			"mkdir -p /tmp/qemus && cd /etc/pki/qemu && cp ca-cert.pem /tmp/qemus/cacert.pem && cp client-cert.pem /tmp/qemus/clientcert.pem"+
				" && cp client-key.pem /tmp/qemus/clientkey.pem",
			"! virsh --connect 'qemu+tls://"+other+"/system?no_verify=1&pkipath=/tmp/qemus' version --daemon",
		); err != nil {
			return err
		}
	}
	return nil
}

func lookAround(ctx context.Context, s *site, _ string) error {
	step("What the first run has left")
	if err := s.coord.do(ctx,
		"berth init", // says what is there
		"berth node add hv1 hv2",
		"berth status",
		"berth node list",
		"berth token list",
		"stat --format='%U %a %n' /var/lib/berth/coordinator /var/lib/berth/coordinator/tls/ca.key",
		// The line that is printed works as it is printed.
		`XDG_CONFIG_HOME=/root/alice sh -c "$(berth token add --for operator --name alice --quiet)"`,
		"berth --client-config /root/alice/berth/client.yaml status",
	); err != nil {
		return err
	}
	if err := s.awaitNodes(ctx); err != nil {
		return err
	}
	for _, node := range s.nodes {
		if err := node.do(ctx,
			"stat --format='%U %a %n' /var/lib/berth/agent /var/lib/berth/agent/tls/agent.key",
			"berth-agent doctor",
			"berth-agent doctor | grep 'passed on to the agent'",
			"systemctl is-active berth-status-files.service && journalctl -u berth-agent | grep 'passed on by their service'",
		); err != nil {
			return err
		}
	}
	return nil
}

// probe is a fence agent that looks for what it must not read. It says that the machine is on if it finds nothing, and leaves a process.
const probe = `#!/bin/sh
while IFS='=' read -r name value; do [ "$name" = password ] && password=$value; done
fail() { echo "$*"; exit 1; }
[ "$(id -un)" = berth-fence ] || fail "it runs as $(id -un)"
[ "$password" = swordfish ] || fail "it was told no password"
grep -q herring /etc/berth/fence/secret || fail "it reads no file that is for it"
for file in /var/lib/berth/coordinator/tls/ca.key /var/lib/berth/coordinator/tls/peer.key /etc/shadow; do
	head -c 1 "$file" >/dev/null 2>&1 && fail "it reads $file"
done
ls /var/lib/berth/coordinator >/dev/null 2>&1 && fail "it sees the coordinator's folder"
grep -q 'sword[f]ish' /proc/*/cmdline /proc/*/environ 2>/dev/null && fail "the password is where others see it"
perl -MIO::Socket::UNIX -e 'exit(IO::Socket::UNIX->new("/run/berth/fence.sock") ? 0 : 1)' && fail "it may have fence agents run"
touch /usr/local/sbin/fence_other 2>/dev/null && fail "it may make fence agents"
setsid sleep 7777 >/dev/null 2>&1 </dev/null &
exit 0
`

// askFenceAgent has the coordinator ask a fence agent that tries to read what the coordinator reads.
func askFenceAgent(ctx context.Context, s *site, _ string) error {
	step("Fence agents have an account of their own: they are told their arguments, and read no key of the coordinator")
	if err := os.WriteFile(s.coord.path("/usr/local/sbin/fence_probe"), []byte(probe), 0o755); err != nil {
		return err
	}
	const check = "berth node fence hv1 --check"
	return errors.Join(s.coord.do(ctx,
		"systemd-analyze verify --man=yes /usr/lib/systemd/system/berth-fence.socket",
		"systemd-analyze security --offline=true --threshold=25 --no-pager /usr/lib/systemd/system/berth-coordinator.service",
		"systemd-analyze security --offline=true --threshold=25 --no-pager /usr/lib/systemd/system/berth-fence@.service",
		"systemctl is-active berth-fence.socket",
		"stat --format='%U %G %a %n' /run/berth/fence.sock /etc/berth/fence",
		"echo herring > /etc/berth/fence/secret && chgrp berth-fence /etc/berth/fence/secret && chmod 640 /etc/berth/fence/secret",
		"berth node set hv1 --fence command --fence-program fence_probe --fence-arg plug=1 --fence-arg password=swordfish",
		check, check+" | grep 'says that it is on'",
		// What it has left is gone, and nothing of it failed.
		`timeout 20 sh -c "while pgrep --full 'sleep [7]777'; do sleep 0.2; done"`,
		"! systemctl list-units --failed --no-legend 'berth-fence@*' | grep .",
		"! berth status | grep 'its own account'",
		// Without the service no fence agent runs, and whoever asks is told why.
		"systemctl stop berth-fence.socket",
		"! "+check+" && "+check+" 2>&1 | grep 'systemctl status berth-fence.socket'",
		"systemctl start berth-fence.socket",
		check+" | grep 'says that it is on'",
	), s.coord.do(ctx, "berth node set hv1 --fence none", "rm /usr/local/sbin/fence_probe /etc/berth/fence/secret"))
}

// awaitNodes waits until the coordinator says that every node is up.
func (s *site) awaitNodes(ctx context.Context) error {
	return wait(ctx, time.Minute, func() error {
		out, err := s.coord.try(ctx, "berth node list -o json")
		if up := strings.Count(out, "NODE_STATE_UP"); err == nil && up != len(s.nodes) {
			err = fmt.Errorf("%d nodes are up: %s", up, out)
		}
		return err
	})
}

// nodeOf is the node that Berth says holds the VM.
func (s *site) nodeOf(ctx context.Context, vm string) (*machine, error) {
	out, err := s.coord.try(ctx, "berth vm show "+vm+" -o json")
	if err != nil {
		return nil, fmt.Errorf("vm show: %w: %s", err, out)
	}
	var answer struct {
		VM struct{ Node, State string }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return nil, err
	}
	for _, node := range s.nodes {
		if node.name == answer.VM.Node && answer.VM.State == "VM_STATE_RUNNING" {
			return node, nil
		}
	}
	return nil, fmt.Errorf("%s is %s on %q", vm, answer.VM.State, answer.VM.Node)
}

// runsOnlyOn asks libvirt itself.
func (s *site) runsOnlyOn(ctx context.Context, vm string, want *machine) error {
	for _, node := range s.nodes {
		out, err := node.run(ctx, "virsh --quiet list --state-running --name")
		if err != nil {
			return err
		}
		if runs := strings.Contains("\n"+out, "\n"+vm+"\n"); runs != (node == want) {
			return fmt.Errorf("%s runs on %s: %v, want it on %s alone", vm, node.name, runs, want.name)
		}
	}
	return nil
}

func moveVM(ctx context.Context, s *site, _ string) error {
	first, err := s.nodeOf(ctx, "web-1")
	if err != nil {
		return err
	}
	if err := s.runsOnlyOn(ctx, "web-1", first); err != nil {
		return err
	}
	step("Start another VM on %s that the first one keeps apart from, so that the other node is the best", first.name)
	if err := s.coord.do(ctx,
		"berth key set vm/web-1 Apart=1 --weight -100 --class customer",
		"berth vm start load-1 --memory 1G --vcpus 2 --key Apart=1@-100 --node "+first.name,
	); err != nil {
		return err
	}
	step("The last command of the first run: migrate to the best node while the guest runs")
	began := time.Now()
	if err := s.coord.do(ctx, s.migrate); err != nil {
		return err
	}
	s.first += time.Since(began)
	if err := s.coord.do(ctx,
		"berth vm why web-1",
		"berth vm list",
	); err != nil {
		return err
	}
	second, err := s.nodeOf(ctx, "web-1")
	if err != nil {
		return err
	}
	if second == first {
		return fmt.Errorf("web-1 is still on %s", first.name)
	}
	if err := s.runsOnlyOn(ctx, "web-1", second); err != nil {
		return err
	}
	return s.coord.do(ctx, "berth decision list")
}

// workBeside changes a guest with virsh. libvirt's files of it are root's, and the agent is not root: it has to hear of the change anyway.
func workBeside(ctx context.Context, s *site, _ string) error {
	step("Plug a disk in with virsh, beside Berth: it is told at once")
	if err := s.coord.do(ctx, "berth vm start beside-1 --memory 64M"); err != nil {
		return err
	}
	node, err := s.nodeOf(ctx, "beside-1")
	if err != nil {
		return err
	}
	const disk = "/var/lib/libvirt/images/beside.raw"
	if err := node.do(ctx, "truncate -s 1M "+disk, "virsh attach-disk beside-1 "+disk+" vdb --live --subdriver raw"); err != nil {
		return err
	}
	if err := wait(ctx, 10*time.Second, func() error {
		shown, err := s.coord.try(ctx, "berth vm show beside-1")
		if err == nil && !strings.Contains(shown, disk) {
			err = fmt.Errorf("nothing tells of %s:\n%s", disk, shown)
		}
		return err
	}); err != nil {
		return err
	}
	step("The service that reads libvirt's files for the agent reads what its unit lets it, and tells nobody else")
	const reads = `perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new("/run/berth/status-files.sock") or exit 2; ` +
		`while (<$s>) { exit 0 if /"there","name":"beside-1","text":/ } exit 1'`
	if err := node.do(ctx, "timeout 30 "+reads, "! timeout 30 setpriv --reuid 65534 --regid 65534 --clear-groups "+reads); err != nil {
		return err
	}
	return errors.Join(s.coord.do(ctx, "berth vm show beside-1", "berth vm stop beside-1 --force", "berth vm delete beside-1 --yes"),
		node.do(ctx, "rm "+disk))
}

// cutPower takes the power from all machines at once, and gives it back.
func cutPower(ctx context.Context, s *site, _ string) error {
	step("Cut the power of all machines and give it back: what ran runs again, once and in order; what was stopped does not")
	began := time.Now()
	if err := s.coord.do(ctx,
		"berth vm set load-1 --label first",
		"berth vm set web-1 --restart-after first",
		"berth vm start off-1 --memory 64M",
		"berth vm stop off-1 --force",
	); err != nil {
		return err
	}
	for _, node := range s.nodes {
		if err := node.do(ctx, "cmp /proc/sys/kernel/random/boot_id "+
			"/proc/$(systemctl show --property=MainPID --value berth-agent)/root/proc/sys/kernel/random/boot_id"); err != nil {
			return fmt.Errorf("the agent sees another boot ID than its machine has: %w", err)
		}
	}
	for _, m := range s.machines() {
		if err := m.powerOff(); err != nil {
			return err
		}
	}
	for _, m := range s.machines() {
		if err := m.powerOn(); err != nil {
			return err
		}
	}
	for _, m := range s.machines() {
		if err := m.ready(ctx); err != nil {
			return err
		}
	}
	if err := s.ranAgain(ctx, "load-1", "web-1"); err != nil {
		return err
	}
	for _, node := range s.nodes {
		if err := node.do(ctx, "! virsh --quiet list --all --name | grep --line-regexp off-1"); err != nil {
			return err
		}
	}
	fmt.Printf("\nthe power cut: all that ran runs again, %.0f s\n", time.Since(began).Seconds())
	return s.coord.do(ctx, "berth vm delete off-1 --yes", "berth vm list")
}

// ranAgain waits until VMs run again, and proves that each runs once, and that they began in this order.
func (s *site) ranAgain(ctx context.Context, vms ...string) error {
	began := map[string]string{}
	if err := wait(ctx, 90*time.Second, func() error {
		for _, vm := range vms {
			on, err := s.nodeOf(ctx, vm)
			if err != nil {
				return err
			}
			// libvirt writes this file when it starts the guest's process. All machines have one clock.
			if began[vm], err = on.try(ctx, "stat --format=%.9Y /run/libvirt/qemu/"+vm+".pid"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		_, shown := s.coord.run(ctx, "berth vm show "+strings.Join(vms, "; berth vm show ")+"; berth events; berth node list")
		return errors.Join(err, shown)
	}
	if !slices.IsSortedFunc(vms, func(a, b string) int { return strings.Compare(began[a], began[b]) }) {
		return fmt.Errorf("they began in another order than %v: %v", vms, began)
	}
	for _, vm := range vms {
		on, err := s.nodeOf(ctx, vm)
		if err == nil {
			err = s.runsOnlyOn(ctx, vm, on)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// guests are the process IDs of all QEMUs of a node: a guest that was touched has another one, or none.
func (m *machine) guests(ctx context.Context) (string, error) {
	out, err := m.try(ctx, "pgrep --full ^/usr/bin/qemu-system | sort")
	if err != nil || strings.TrimSpace(out) == "" {
		return "", fmt.Errorf("%s runs no guest: %s", m.name, out)
	}
	return out, nil
}

// mainPID is the process that a service's unit watches.
func (m *machine) mainPID(ctx context.Context, unit string) (string, error) {
	out, err := m.try(ctx, "systemctl show --property=MainPID --value "+unit)
	if pid := strings.TrimSpace(out); err == nil && (pid == "" || pid == "0") {
		err = fmt.Errorf("%s: %s does not run", m.name, unit)
	}
	return out, err
}

// changePackage has the first node run the agent of the RPM from now on, with the identity that it has.
func changePackage(ctx context.Context, s *site, packages string) error {
	node := s.nodes[0]
	step("On %s the agent's DEB gives way to the RPM: it is the same node, and guests do not notice", node.name)
	before, err := node.guests(ctx)
	if err != nil {
		return err
	}
	name, err := node.fetch(packages, "berth-agent-*.rpm")
	if err != nil {
		return err
	}
	if err := node.do(ctx, "dpkg --remove berth-agent", "rpm -Uvh --nodeps "+name, "systemctl enable --now berth-agent"); err != nil {
		return err
	}
	after, err := node.guests(ctx)
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("%s: guests were %s, are %s", node.name, before, after)
	}
	return s.awaitNodes(ctx)
}

// upgrade installs the same package again, which runs the scripts of an upgrade, and tells whether the service restarted.
func (m *machine) upgrade(ctx context.Context, packages, pattern, line, unit string) (restarted bool, err error) {
	was, err := m.mainPID(ctx, unit)
	if err != nil {
		return false, err
	}
	name, err := m.fetch(packages, pattern)
	if err != nil {
		return false, err
	}
	if err := m.do(ctx, fmt.Sprintf(line, name), "systemctl is-active "+unit); err != nil {
		return false, err
	}
	is, err := m.mainPID(ctx, unit)
	return was != is, err
}

func upgrade(ctx context.Context, s *site, packages string) error {
	const apt, rpm = "apt-get install -qq -y --reinstall ./%s", "rpm -Uvh --nodeps --replacepkgs %s"
	step("Upgrade: agents restart, and guests do not notice; the coordinator waits for the administrator")
	for i, node := range s.nodes {
		before, err := node.guests(ctx)
		if err != nil {
			return err
		}
		pattern, line := "berth-agent-*.rpm", rpm
		if i == 1 {
			pattern, line = "berth-agent_*.deb", apt
		}
		restarted, err := node.upgrade(ctx, packages, pattern, line, "berth-agent")
		if err == nil && !restarted {
			err = fmt.Errorf("%s: the agent is still the old process", node.name)
		}
		if err != nil {
			return err
		}
		after, err := node.guests(ctx)
		if err != nil {
			return err
		}
		if before != after {
			return fmt.Errorf("%s: guests were %s, are %s", node.name, before, after)
		}
	}
	restarted, err := s.coord.upgrade(ctx, packages, "berth_*.deb", apt, "berth-coordinator")
	if err == nil && restarted {
		err = errors.New("the upgrade restarted the coordinator")
	}
	if err != nil {
		return err
	}
	if err := s.coord.do(ctx, "systemctl restart berth-coordinator"); err != nil {
		return err
	}
	if err := s.awaitNodes(ctx); err != nil {
		return err
	}
	return s.coord.do(ctx, "berth status")
}

func removeAll(ctx context.Context, s *site, _ string) error {
	step("Remove Berth: guests run on")
	for i, line := range []string{"rpm -e berth-agent", "apt-get purge -qq -y berth-agent"} {
		node := s.nodes[i]
		before, err := node.guests(ctx)
		if err != nil {
			return err
		}
		if err := node.do(ctx, line, "! systemctl is-active berth-agent berth-status-files.socket", "test ! -e /usr/bin/berth-agent",
			"test ! -e /etc/pki/qemu/server-key.pem && ! grep berth-agent /etc/libvirt/libvirtd.conf"); err != nil {
			return err
		}
		after, err := node.guests(ctx)
		if err != nil {
			return err
		}
		if before != after {
			return fmt.Errorf("%s: guests were %s, are %s", node.name, before, after)
		}
		if err := node.do(ctx, "virsh --quiet list"); err != nil {
			return err
		}
	}
	if _, err := os.Stat(s.nodes[1].path("/var/lib/berth/agent")); err == nil {
		return errors.New("purge left the agent's identity behind")
	}
	return s.coord.do(ctx,
		"apt-get purge -qq -y berth && test ! -e /run/berth/fence.sock",
		"test -e /var/lib/berth/coordinator/tls/ca.key",
	)
}
