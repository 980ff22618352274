package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	berthv1 "berth/shared/gen/berth/v1"
)

// oldSnapshot is where the operator keeps a snapshot of better times.
const oldSnapshot = "/var/tmp/old.snapshot"

// disaster is a lab that things are done to which nobody does twice.
type disaster struct {
	*testing.T
	*Lab
	watch *Observer
}

// What the coordinators know is lost, and brought back, on real machines with guests that run all the while.
func TestWhatTheCoordinatorsKnewComesBackAndNoGuestIsTouched(t *testing.T) {
	d := &disaster{t, raise(t, Options{Hosts: 3, Coordinators: 3}), nil}
	d.watch = d.Observe()
	defer d.watch.Stop()
	for name, host := range map[string]string{"kept": "node1", "moved": "node1", "stopped": "node2", "started": "node3"} {
		d.does("vm", "start", name, "--memory", "64M", "--node", host)
	}
	d.does("vm", "stop", "started", "--force")
	d.does("coordinator", "snapshot", "save", oldSnapshot)
	if said := d.on(
		d.Operator, 0, "berth", "coordinator", "snapshot", "verify", oldSnapshot,
	); !strings.Contains(said, "is whole") || !strings.Contains(said, "VMs 4") {
		t.Errorf("the snapshot: %s", said)
	}
	d.does("vm", "migrate", "moved", "--to", "node2")
	d.does("vm", "stop", "stopped", "--force")
	d.does("vm", "start", "started", "--node", "node3")
	d.does("vm", "start", "newer", "--memory", "64M", "--node", "node3")

	d.part("an old snapshot is restored over it", (*disaster).restores)
	d.part("two of three coordinators and a node are gone for good", (*disaster).recovers)
	for _, fault := range d.watch.Faults() {
		t.Error(fault)
	}
}

// part is one that the next ones build on.
func (d *disaster) part(name string, part func(*disaster)) {
	if !d.Run(name, func(t *testing.T) { part(&disaster{t, d.Lab, d.watch}) }) {
		d.FailNow()
	}
}

// restores restores the old snapshot, RESTORES times.
func (d *disaster) restores() {
	before := d.guests()
	changes := d.restore()
	// What the nodes show is what is on record now.
	for name, where := range map[string]string{"kept": "node1", "moved": "node2", "started": "node3", "stopped": ""} {
		if vm := d.vm(name); vm.GetNode() != where || (where != "") != (vm.GetState() == berthv1.VMState_VM_STATE_RUNNING) {
			d.Errorf("%s is %s on %q, and should be on %q", name, vm.GetState(), vm.GetNode(), where)
		}
	}
	d.refuses([]string{"vm", "show", "newer"}, "newer")
	if err := says(d.does("status"), "domain newer on node3", "berth vm adopt newer"); err != nil {
		d.Error(err)
	}
	d.does("vm", "adopt", "newer")
	if after := d.guests(); !slices.Equal(before, after) {
		d.Errorf("guests were %q before, and are %q after an adoption", before, after)
	}
	d.does("vm", "start", "stopped", "--node", "node2")

	wanted := 1
	if text := os.Getenv("RESTORES"); text != "" {
		var err error
		if wanted, err = strconv.Atoi(text); err != nil {
			d.Fatal(err)
		}
	}
	for n := range wanted - 1 {
		d.does("vm", "migrate", "moved", "--to", d.Hosts[n%2].Name)
		d.does("vm", "stop", "stopped", "--force")
		changes += d.restore()
		d.does("vm", "adopt", "newer")
		d.does("vm", "start", "stopped", "--node", d.Hosts[n%2].Name)
	}
	d.Logf("GOAL G14: an old snapshot restored over a running lab %d times, "+
		"%d changes of a guest until every node had reported | wanted 0 | %s",
		wanted, changes, map[bool]string{true: "met", false: "not met"}[changes == 0])
	if d.vm("moved").GetNode() != "node1" {
		d.does("vm", "migrate", "moved", "--to", "node1")
	}
}

// restore restores the old snapshot while an agent is away, and counts what happens to guests until all have reported.
func (d *disaster) restore() (changes int) {
	node3 := d.Hosts[2]
	if err := node3.StopAgent(); err != nil {
		d.Fatal(err)
	}
	before := d.guests()
	restored := time.Now()
	if said := d.does("coordinator", "snapshot", "restore", oldSnapshot, "--yes"); !strings.Contains(said, "quarantine") {
		d.Errorf("a restore says %q", said)
	}
	d.awaits("the quarantine to wait for node3 alone", func() error {
		return says(d.does("status"), "quarantine: no VM is started, stopped or moved", "have reported: node3 (")
	})
	for _, args := range [][]string{
		{"vm", "start", "stopped"},
		{"vm", "stop", "kept", "--force"},
		{"vm", "migrate", "kept", "--best"},
		{"vm", "adopt", "moved"},
		{"node", "drain", "node1", "--yes"},
	} {
		d.refuses(args, "quarantine", "berth status")
	}
	d.refuses([]string{"node", "delete", "node3", "--yes"}, "node3", "berth node fence node3 --confirmed-off")
	if err := node3.StartAgent(d.Context()); err != nil {
		d.Fatal(err)
	}
	d.awaitsRelease()
	changes = d.changesSince(restored)
	if after := d.guests(); !slices.Equal(before, after) {
		changes++
		d.Errorf("guests were %q, and are %q", before, after)
	}
	return changes
}

func (d *disaster) awaitsRelease() {
	d.Helper()
	d.awaits("the quarantine to end", func() error {
		if said := d.does("status"); strings.Contains(said, "quarantine") {
			return fmt.Errorf("%s", said)
		}
		return nil
	})
}

func (d *disaster) recovers() {
	survivor, lost := d.Coordinators[0], d.Coordinators[1:]
	for _, c := range lost {
		if err := c.Kill(); err != nil {
			d.Fatal(err)
		}
	}
	node3 := d.Hosts[2]
	if err := node3.PowerOff(); err != nil {
		d.Fatal(err)
	}
	before := d.guests()
	begun := time.Now()
	d.damages(survivor)
	d.on(survivor.Machine, 0, "berth", "coordinator", "recover", "--yes")
	if err := survivor.Start(d.Context()); err != nil {
		d.Fatal(err)
	}
	// Silence is no proof, and neither is that all others have reported.
	d.awaits("the quarantine to wait for node3 alone", func() error {
		result, err := d.CLI(d.Context(), "status")
		if err != nil {
			return err
		}
		return says(result.Stdout, "by one coordinator alone", "have reported: node3 (")
	})
	d.awaits("somebody's word to be taken that node3 is off", func() error {
		_, err := d.Berth(d.Context(), "node", "fence", "node3", "--confirmed-off", "--yes")
		return err
	})
	d.awaitsRelease()
	if after := d.guests(); !slices.Equal(before, after) || d.changesSince(begun) > 0 {
		d.Errorf("guests were %q, and are %q", before, after)
	}
	if vm := d.vm("started"); vm.GetNode() != "" {
		d.Errorf("a VM of a node that is off is on %q", vm.GetNode())
	}
	d.does("vm", "start", "started", "--node", "node1")

	d.outlives(lost)
	for _, c := range lost {
		d.on(c.Machine, 0, "rm", "-rf", "/var/lib/berth/coordinator")
		token, err := d.Token(d.Context(), "coordinator", c.Name)
		if err != nil {
			d.Fatal(err)
		}
		if err := c.Join(d.Context(), survivor, token); err != nil {
			d.Fatal(err)
		}
		if err := c.Start(d.Context()); err != nil {
			d.Fatal(err)
		}
	}
	d.awaits("three voters", func() error {
		var members berthv1.ListMembersResponse
		if err := d.Ask(d.Context(), &members, "coordinator", "list"); err != nil {
			return err
		}
		voters := 0
		for _, member := range members.GetMembers() {
			if member.GetVoter() && member.GetHealthy() {
				voters++
			}
		}
		if voters != 3 {
			return fmt.Errorf("the members are %v", members.GetMembers())
		}
		return nil
	})
	// Now one may go.
	if err := survivor.Kill(); err != nil {
		d.Fatal(err)
	}
	d.awaits("a migration with the new members alone", func() error {
		_, err := d.Berth(d.Context(), "vm", "migrate", "moved", "--to", "node2")
		return err
	})
}

// damages looks at the survivor's store: whole, in use, and with one bit of it changed.
func (d *disaster) damages(c *Coordinator) {
	const folder, other = "/var/lib/berth/coordinator", "/var/tmp/damaged"
	for _, verb := range []string{"verify", "compact"} {
		if said := d.on(c.Machine, 1, "berth", "coordinator", verb); says(said, "in use", folder, "systemctl stop berth-coordinator") != nil {
			d.Errorf("%s of a running coordinator: %s", verb, said)
		}
	}
	if err := c.Stop(); err != nil {
		d.Fatal(err)
	}
	d.on(c.Machine, 0, "berth", "coordinator", "verify")
	if said := d.on(c.Machine, 0, "berth", "coordinator", "compact"); says(said, "the log of coordinator "+c.Name) != nil {
		d.Errorf("compact: %s", said)
	}
	whole := d.on(c.Machine, 0, "berth", "coordinator", "verify")
	if err := says(whole, "is whole", "nodes 3, VMs 5"); err != nil {
		d.Error(err)
	}

	// A bit in the middle of a command. Where bbolt keeps it is found by a word that is in it.
	const script = `set -e
cp -a "$1" "$2"
sed "s#^data_dir:.*#data_dir: $2#; t; \$a data_dir: $2" /etc/berth/coordinator.yaml >"$2.yaml"
at=$(grep -abo cluster.restored "$2/raft/log.db" "$2"/raft/snapshots/*/state.bin | head -n 1)
test -n "$at"
file=${at%%:*}; at=${at#*:}
printf X | dd of="$file" bs=1 seek="${at%%:*}" conv=notrunc status=none
echo "$file"`
	file := strings.TrimSpace(d.on(c.Machine, 0, "sh", "-c", script, "damage", folder, other))
	damaged := d.on(c.Machine, 1, "berth", "coordinator", "verify", "--config", other+".yaml")
	if strings.Contains(file, "snapshots") {
		file = path.Dir(file)
	}
	if err := says(damaged, "damaged", file, "berth coordinator delete "+c.Name); err != nil {
		d.Error(err)
	}
	if said := d.on(c.Machine, 1, "berth", "coordinator", "recover", "--yes", "--config", other+".yaml"); says(said, "damaged") != nil {
		d.Errorf("a damaged store is recovered: %s", said)
	}
}

// outlives starts the coordinators that were given up with what they had, which nobody should. They are a majority of what
// they know, and no agent obeys them.
func (d *disaster) outlives(lost []*Coordinator) {
	for _, c := range lost {
		if err := c.Start(d.Context()); err != nil {
			d.Fatal(err)
		}
	}
	d.awaits("one of them to lead", func() error {
		result, err := d.CLI(d.Context(), "--coordinator", lost[0].Address, "status", "-o", "json")
		if err != nil {
			return err
		}
		var status berthv1.StatusResponse
		if err := protojson.Unmarshal([]byte(result.Stdout), &status); err != nil {
			return err
		}
		if leader := status.GetLeader(); leader != lost[0].Name && leader != lost[1].Name {
			return fmt.Errorf("the leader is %q", leader)
		}
		return nil
	})
	node1 := d.Hosts[0]
	config := node1.Path("/etc/berth/agent.yaml")
	at := func(addresses ...string) {
		if err := node1.StopAgent(); err != nil {
			d.Fatal(err)
		}
		// What coordinators have told it is asked as well: it would go to the right one at once, every third time.
		if err := os.Remove(node1.Path("/var/lib/berth/agent/coordinators.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
			d.Fatal(err)
		}
		err := editYAML(config, func(text map[string]any) { text["coordinators"] = addresses })
		if err == nil {
			err = node1.StartAgent(d.Context())
		}
		if err != nil {
			d.Fatal(err)
		}
	}
	at(lost[0].Address+":"+agentPort, lost[1].Address+":"+agentPort)
	d.awaits("the agent to refuse a leader of before", func() error { return says(node1.Log(Agent), "older leader") })
	old, err := d.CLI(d.Context(), "--coordinator", lost[0].Address, "status")
	if err != nil || !strings.Contains(old.Stdout, "0 of 3 up") {
		d.Errorf("the coordinators of before: %+v, %v", old, err)
	}
	for _, c := range lost {
		if err := c.Kill(); err != nil {
			d.Fatal(err)
		}
	}
	at(d.Coordinators[0].Address + ":" + agentPort)
	d.awaits("the agent to be back", func() error {
		var status berthv1.StatusResponse
		if err := d.Ask(d.Context(), &status, "status"); err != nil {
			return err
		}
		if status.GetNodesUp() != 2 {
			return fmt.Errorf("%d nodes are up", status.GetNodesUp())
		}
		return nil
	})
}

func (d *disaster) does(args ...string) string {
	d.Helper()
	said, err := d.Berth(d.Context(), args...)
	if err != nil {
		d.Fatal(err)
	}
	return said
}

// on runs a command on a machine, which has to end with this code, and is what it said.
func (d *disaster) on(m *Machine, code int, argv ...string) string {
	d.Helper()
	cmd, err := m.Command(d.Context(), argv...)
	if err != nil {
		d.Fatal(err)
	}
	said, _ := cmd.CombinedOutput() // the code tells
	if got := cmd.ProcessState.ExitCode(); got != code {
		d.Fatalf("%q on %s: exit code %d, want %d: %s", argv, m.Name, got, code, said)
	}
	return string(said)
}

func (d *disaster) refuses(args []string, words ...string) {
	d.Helper()
	result, err := d.CLI(d.Context(), args...)
	if err == nil && result.Code == 0 {
		err = fmt.Errorf("it was done")
	}
	if err == nil {
		err = says(result.Stderr, words...)
	}
	if err != nil {
		d.Errorf("berth %s: %v", strings.Join(args, " "), err)
	}
}

func (d *disaster) awaits(what string, holds func() error) {
	d.Helper()
	err := await(d.Context(), what, time.Minute, func() (bool, error) {
		err := holds()
		return err == nil, err
	})
	if err != nil {
		d.Fatal(err)
	}
}

func (d *disaster) vm(name string) *berthv1.VM {
	d.Helper()
	var answer berthv1.GetVMResponse
	if err := d.Ask(d.Context(), &answer, "vm", "show", name); err != nil {
		d.Fatal(err)
	}
	return answer.GetVm()
}

// guests are all that run or stand still, with their processes.
func (d *disaster) guests() []string {
	var guests []string
	for _, host := range d.Hosts {
		if !host.Running() {
			continue
		}
		for _, guest := range host.QEMUs() {
			state, err := host.Virsh(context.WithoutCancel(d.Context()), "domstate", "--reason", guest.Name)
			if err != nil {
				d.Fatal(err)
			}
			guests = append(guests, fmt.Sprint(host.Name, " ", guest.Name, " ", guest.PID, " ", strings.TrimSpace(state)))
		}
	}
	slices.Sort(guests)
	return guests
}

// changesSince counts how often a guest began or ceased to execute, as seen from outside.
func (d *disaster) changesSince(at time.Time) int {
	changes := 0
	for _, run := range d.watch.Runs() {
		if run.From.After(at) || run.To.After(at) {
			d.Errorf("%s on %s began at %s and ended at %s", run.Name, run.Host, run.From, run.To)
			changes++
		}
	}
	return changes
}

// says tells which of these words a text lacks.
func says(text string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("%q is not said in: %s", word, text)
		}
	}
	return nil
}
