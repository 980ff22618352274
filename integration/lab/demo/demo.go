package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// demo is one run.
type demo struct {
	out  io.Writer
	keep bool
	lab  *lab.Lab
	step int

	started   int
	migration berthv1.MigrationStats
	failover  time.Duration
	dead      *lab.Coordinator
}

const (
	labName  = "demo"
	vmMemory = "128M"
	vms      = 6
)

func (d *demo) run(ctx context.Context) (err error) {
	if found, _ := lab.Open(labName); found != nil {
		return errors.New("the lab of an earlier demo is up; take it down with: make lab-down")
	}
	d.say("Three hypervisors and three coordinators on this machine",
		"Each gets its own namespaces, address and disk. The hypervisors run the real libvirtd and QEMU, and talk TLS.",
		"One coordinator founds the cluster; everyone else joins with a one-time token.")
	begin := time.Now()
	d.lab, err = lab.Up(ctx, lab.Options{
		Name: labName, Hosts: 3, Coordinators: 3, HostMemory: []units.Bytes{4 * units.GiB, 5 * units.GiB, 6 * units.GiB},
		Keep: d.keep, Log: d.out,
	})
	if err != nil {
		return err
	}
	d.printf("up in %.1f s\n", time.Since(begin).Seconds())
	defer func() {
		if !d.keep {
			err = errors.Join(err, d.lab.Down())
		}
		d.farewell(err)
	}()
	watch := d.lab.Observe()
	defer watch.Stop()
	for _, step := range []func(context.Context) error{
		d.showNodes, d.declare, d.startVMs, d.migrate, d.bootFromDisk,
		d.killLeader, d.startAfter,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return d.checkGuests(ctx, watch)
}

// farewell says what it came to, and where to look.
func (d *demo) farewell(err error) {
	if d.keep {
		d.printf("\n%s", d.lab.Hints("bin/berth-lab"))
	}
	if err != nil {
		return
	}
	d.printf("\ndemo: %d VMs started, migration %.1f s with %.0f ms downtime, failover %.1f s\n",
		d.started, d.migration.GetElapsedSeconds(), 1000*d.migration.GetDowntimeSeconds(), d.failover.Seconds())
	if !d.keep {
		d.printf("The lab is down again. KEEP=1 make demo leaves it up, and says how to open its console in a browser.\n")
	}
}

// say begins a step: a heading, and what it is about.
func (d *demo) say(heading string, lines ...string) {
	d.step++
	d.printf("\n%d. %s\n", d.step, heading)
	for _, line := range lines {
		d.printf("   %s\n", line)
	}
	d.printf("\n")
}

func (d *demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// berth shows a command and runs it on the operator's machine, with this terminal.
func (d *demo) berth(ctx context.Context, args ...string) error {
	d.printf("$ berth %s\n", quote(args))
	if err := d.lab.Operator.Shell(ctx, nil, d.out, d.out, append([]string{"berth"}, args...)...); err != nil {
		return fmt.Errorf("berth %s: %w", quote(args), err)
	}
	return nil
}

// quote joins arguments as one would type them.
func quote(args []string) string {
	var words []string
	for _, word := range args {
		if strings.ContainsAny(word, " '\"$") {
			word = "'" + word + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (d *demo) showNodes(ctx context.Context) error {
	d.say("The nodes, with what they really have",
		"The agents read this from libvirt and from the operating system every two seconds.")
	return d.berth(ctx, "node", "list")
}

// customer is the estate that the demo declares.
const customer = `format: berth/estate/v1
billing_entities:
  - {name: house, master: true}
customers:
  - {name: acme, billing_entity: house}
vdcs:
  - {name: acme-prod, customer: acme}
`

func (d *demo) declare(ctx context.Context) error {
	d.say("A customer, declared in a file", "An estate is applied whole or not at all, and applying it again changes nothing.")
	const file = "/root/acme.yaml"
	if err := os.WriteFile(d.lab.Operator.Path(file), []byte(customer), 0o644); err != nil {
		return err
	}
	d.printf("$ cat %s\n%s\n", file, customer)
	return d.berth(ctx, "apply", "-f", file)
}

func (d *demo) start(ctx context.Context, name string, flags ...string) error {
	err := d.berth(ctx, append([]string{
		"vm", "start", name, "--memory", vmMemory,
		"--kernel", lab.Kernel, "--initrd", lab.Initrd, "--cmdline", lab.Cmdline,
	}, flags...)...)
	if err == nil {
		d.started++
	}
	return err
}

func (d *demo) startVMs(ctx context.Context) error {
	d.say(fmt.Sprintf("%d VMs, and nobody says where", vms),
		"All nodes whose system score is above 80 count as equal; among them the customer's keys decide, and then a draw.",
		"The first three keep apart from each other: key Apart, value 1, weight -100.")
	for i := range vms {
		flags := []string{"--vdc", "acme-prod"}
		if i < len(d.lab.Hosts) {
			flags = append(flags, "--key", "Apart=1@-100")
		}
		if err := d.start(ctx, fmt.Sprintf("vm%d", i+1), flags...); err != nil {
			return err
		}
	}
	// A guest that boots keeps a CPU busy; the migration should be measured on a quiet machine.
	for i := range vms {
		if _, err := d.lab.ReadTick(ctx, fmt.Sprintf("vm%d", i+1)); err != nil {
			return err
		}
	}
	d.printf("\nAll %d guests have booted. Every answer can be asked why.\n\n", vms)
	for _, question := range [][]string{
		{"vm", "list"},
		{"vm", "why", fmt.Sprintf("vm%d", len(d.lab.Hosts))},
		{"decision", "show", "last", "--full"},
		{"decision", "replay", "last"},
		{"capacity", "--memory", "1G", "--vcpus", "1"},
	} {
		if err := d.berth(ctx, question...); err != nil {
			return err
		}
		d.printf("\n")
	}
	return nil
}

func (d *demo) migrate(ctx context.Context) error {
	const name = "vm1"
	source, err := d.lab.HostOf(name)
	if err != nil {
		return err
	}
	d.say("A live migration to the best node",
		fmt.Sprintf("%s runs on %s. To give it a reason to move, the lab makes %s look busy: a load of 40, and less free memory.",
			name, source.Name, source.Name),
		"Its score falls below 80, so the others are in an earlier round. Rounds come before the customer's wish to keep apart.")
	shape, err := source.Shape()
	if err != nil {
		return err
	}
	if err := errors.Join(source.SetLoad(ctx, 40), source.SetMemory(ctx, shape.Memory, shape.Memory/2)); err != nil {
		return err
	}
	if err := d.awaitLoad(ctx, source.Name, 30); err != nil {
		return err
	}
	before, err := d.lab.ReadTick(ctx, name)
	if err != nil {
		return err
	}
	d.printf("the guest says: up %.1f s, boot %s\n\n", before.Uptime.Seconds(), before.Boot)
	if err := d.berth(ctx, "vm", "migrate", name, "--best"); err != nil {
		return err
	}
	target, err := d.lab.HostOf(name)
	if err != nil {
		return err
	}
	if target.Name == source.Name {
		return fmt.Errorf("%s has not left %s", name, source.Name)
	}
	after, err := d.lab.ReadTick(ctx, name)
	if err != nil {
		return err
	}
	if err := after.After(before); err != nil {
		return fmt.Errorf("after the migration of %s: %w", name, err)
	}
	var vm berthv1.GetVMResponse
	if err := d.lab.Ask(ctx, &vm, "vm", "show", name); err != nil {
		return err
	}
	stats := vm.GetOperation().GetMigration()
	if stats == nil {
		return fmt.Errorf("the last operation of %s has no figures of a migration", name)
	}
	d.migration.ElapsedSeconds, d.migration.DowntimeSeconds = stats.GetElapsedSeconds(), stats.DowntimeSeconds
	d.printf("\nthe guest says: up %.1f s, the same boot %s, its memory intact; it is on %s now\n",
		after.Uptime.Seconds(), after.Boot, target.Name)
	d.printf("libvirt says: %.1f s, %.0f ms of downtime; the QEMU process on %s is gone\n",
		stats.GetElapsedSeconds(), 1000*stats.GetDowntimeSeconds(), source.Name)
	return errors.Join(source.SetLoad(ctx, 0), source.SetMemory(ctx, shape.Memory, shape.Reserve))
}

// awaitLoad waits until the coordinators know of a node's load.
func (d *demo) awaitLoad(ctx context.Context, node string, load float64) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		var answer berthv1.GetNodeResponse
		if err := d.lab.Ask(ctx, &answer, "node", "show", node); err != nil {
			return err
		}
		if answer.GetNode().GetTelemetry().GetLoad1() >= load {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (d *demo) bootFromDisk(ctx context.Context) error {
	d.say("A VM with a disk of its own",
		"An image is checked while it is read, and lies in a storage pool of libvirt that all nodes share. The VM boots",
		"from a thin copy of it, which is made when the VM starts and deleted with it.")
	if err := d.lab.MakeDiskImage(ctx); err != nil {
		return err
	}
	d.started++
	for _, args := range [][]string{
		{"pool", "add", "fast", "--cluster", "default", "--scope", "shared", "--source", "shared"},
		{"image", "import", lab.DiskImage, "--name", "small", "--pool", "fast"},
		{"vm", "start", fmt.Sprintf("vm%d", d.started), "--memory", vmMemory, "--image", "small", "--root-size", "1G"},
		{"pool", "list"},
	} {
		if err := d.berth(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) killLeader(ctx context.Context) error {
	leader, err := d.lab.Leader(ctx)
	if err != nil {
		return err
	}
	d.say("The leader dies",
		fmt.Sprintf("%s leads. It is killed with SIGKILL; the two others elect the next leader. No VM notices.", leader.Name))
	if err := leader.Kill(); err != nil {
		return err
	}
	d.dead = leader
	died := time.Now()
	for ctx, cancel := context.WithTimeout(ctx, 30*time.Second); ; {
		next, err := d.lab.Leader(ctx)
		if err == nil && next != leader {
			cancel()
			break
		}
		if ctx.Err() != nil {
			cancel()
			return fmt.Errorf("no new leader: %w", err)
		}
	}
	d.failover = time.Since(died)
	d.printf("the next leader answers after %.1f s", d.failover.Seconds())
	for {
		var status berthv1.StatusResponse
		if err := d.lab.Ask(ctx, &status, "status"); err == nil && int(status.GetNodesUp()) == len(d.lab.Hosts) {
			break
		}
		if time.Since(died) > 30*time.Second {
			return errors.New("the nodes have not come back to the new leader")
		}
	}
	d.printf(", all nodes report to it after %.1f s\n\n", time.Since(died).Seconds())
	return d.berth(ctx, "status")
}

func (d *demo) startAfter(ctx context.Context) error {
	d.say("Work goes on", "A VM is started with two of three coordinators. Then the dead one is started again and catches up.")
	if err := d.start(ctx, fmt.Sprintf("vm%d", d.started+1)); err != nil {
		return err
	}
	if err := d.dead.Start(ctx); err != nil {
		return err
	}
	if err := d.lab.AwaitReady(ctx); err != nil {
		return err
	}
	return d.berth(ctx, "coordinator", "list")
}

// checkGuests ends the demo with what someone outside of the product has seen.
func (d *demo) checkGuests(ctx context.Context, watch *lab.Observer) error {
	for i := range d.started {
		name := fmt.Sprintf("vm%d", i+1)
		tick, err := d.lab.ReadTick(ctx, name)
		if err != nil {
			return err
		}
		if !tick.Intact {
			return fmt.Errorf("the memory of %s is damaged", name)
		}
	}
	watch.Stop()
	if err := errors.Join(watch.Errors()...); err != nil {
		return err
	}
	if overlaps := watch.Overlaps(); len(overlaps) > 0 {
		return fmt.Errorf("an observer outside of Berth saw a VM run twice: %v", overlaps)
	}
	d.printf("\nAll %d guests tick. An observer outside of Berth saw none of them run twice, at no time.\n", d.started)
	return nil
}
