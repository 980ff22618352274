package admin

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// verb is one kind of thing that the administrator does.
type verb struct {
	name   string
	by     tool
	weight int
	// fits tells whether it makes sense, as the administrator believes things are.
	fits func(*mind) bool
	// with draws what it is done with. The number is that of the step.
	with func(*rand.Rand, *mind, int) string
	// does changes what the administrator believes.
	does func(m *mind, with string)
	// may is what of the guest it may bring about until it has ended, or a moment later.
	may effect
	// snaps: it writes down what the guest is at that moment, for later.
	snaps bool
	// shifts: the guest writes to other files afterwards.
	shifts bool
	// resizes: the disk has another size afterwards. What it says is its file.
	resizes bool
	// args are the words after the tool's name.
	args func(p place) []string
}

// place is what a step needs to know of the world when it is done.
type place struct {
	name        string
	host, other string // where the guest is or was last, and another one
	dir         string // of the guest's disks
	with        string
}

func always(*mind) bool    { return true }
func isOn(m *mind) bool    { return m.power == on }
func isAlive(m *mind) bool { return m.power == on || m.power == paused }
func isOff(m *mind) bool   { return m.power == off || m.power == saved }
func isFixed(m *mind) bool { return m.defined && m.power == off }
func becomes(p power) func(*mind, string) {
	return func(m *mind, _ string) { m.power = p }
}

// dies is what the administrator believes after the guest's end.
func dies(m *mind, _ string) { m.power = off }

func newFile(_ *rand.Rand, _ *mind, step int) string { return fmt.Sprintf("f%d", step) }

// verbs are all of them. A row more is a thing more that is tried.
var verbs = []verb{
	{
		name: "berth start", by: berth, weight: 8, fits: isOff, does: becomes(on), may: begins | halts,
		args: func(p place) []string { return []string{"vm", "start", p.name} },
	},
	{
		name: "berth stop", by: berth, weight: 3, fits: isAlive, does: dies, may: ends | halts,
		args: func(p place) []string { return []string{"vm", "stop", p.name, "--grace", "5s"} },
	},
	{
		name: "berth stop --force", by: berth, weight: 2, fits: isAlive, does: dies, may: ends | halts,
		args: func(p place) []string { return []string{"vm", "stop", p.name, "--force"} },
	},
	{
		name: "berth migrate", by: berth, weight: 6, fits: isOn, may: moves | halts,
		args: func(p place) []string { return []string{"vm", "migrate", p.name, "--to", p.other} },
	},
	{
		name: "berth reboot", by: berth, weight: 1, fits: isOn, may: halts,
		args: func(p place) []string { return []string{"vm", "reboot", p.name} },
	},
	{
		name: "berth reboot --force", by: berth, weight: 1, fits: isOn, may: halts,
		args: func(p place) []string { return []string{"vm", "reboot", p.name, "--force"} },
	},
	{
		name: "berth adopt", by: berth, weight: 1, fits: always,
		args: func(p place) []string { return []string{"vm", "adopt", p.name} },
	},
	{
		name: "berth accept", by: berth, weight: 3, fits: func(m *mind) bool { return m.marked },
		args: func(p place) []string { return []string{"vm", "accept", p.name} },
	},
	{
		name: "berth revert", by: berth, weight: 2, fits: func(m *mind) bool { return m.marked },
		args: func(p place) []string { return []string{"vm", "revert", p.name} },
	},
	{
		name: "berth set --memory", by: berth, weight: 1, fits: always,
		with: func(random *rand.Rand, _ *mind, _ int) string { return fmt.Sprintf("%dM", 32+8*random.IntN(4)) },
		args: func(p place) []string { return []string{"vm", "set", p.name, "--memory", p.with} },
	},
	{
		name: "virsh snapshot", shifts: true, by: virsh, weight: 6, fits: isAlive, with: newFile, may: halts,
		does: func(m *mind, _ string) { m.layers, m.marked = m.layers+1, true },
		args: func(p place) []string {
			return []string{"snapshot-create-as", p.name, p.with, "--disk-only", "--no-metadata", "--diskspec", "vda,file=" + p.file()}
		},
	},
	{
		name: "virsh blockcopy", shifts: true, by: virsh, weight: 4, fits: isOn, with: newFile, may: halts,
		does: func(m *mind, _ string) { m.layers, m.marked = 0, true },
		args: func(p place) []string {
			return []string{"blockcopy", p.name, "vda", p.file(), "--transient-job", "--format", "qcow2", "--wait", "--pivot", "--timeout", "60"}
		},
	},
	{
		name: "virsh blockcommit", shifts: true, by: virsh, weight: 8, fits: func(m *mind) bool { return m.layers > 0 && isAlive(m) }, may: halts,
		does: func(m *mind, _ string) { m.layers = 0 },
		args: func(p place) []string {
			return []string{"blockcommit", p.name, "vda", "--active", "--wait", "--pivot", "--timeout", "60"}
		},
	},
	{
		name: "virsh blockresize", resizes: true, by: shell, weight: 4, fits: isOn, with: newSize,
		args: func(p place) []string {
			return []string{fmt.Sprintf("virsh -q blockresize %[1]s vda %[2]s >&2 && virsh -q domblklist %[1]s | awk '$1 == \"vda\" { print $2 }'",
				p.name, p.with)}
		},
	},
	{
		name: "qemu-img resize", resizes: true, by: shell, weight: 3, fits: func(m *mind) bool { return m.power == off }, with: newSize,
		args: func(p place) []string {
			return []string{fmt.Sprintf(`file=$(%s) && qemu-img resize -q -f qcow2 --shrink "$file" %s && echo "$file"`, p.newest(), p.with)}
		},
	},
	{
		name: "virsh vol-resize", resizes: true, by: shell, weight: 2, fits: func(m *mind) bool { return m.power == off }, with: newSize,
		args: func(p place) []string {
			return []string{fmt.Sprintf(`file=$(%s) && virsh -q pool-refresh admin && `+
				`virsh -q vol-resize --pool admin "${file##*/}" %s --shrink >&2 && echo "$file"`, p.newest(), p.with)}
		},
	},
	{
		name: "virsh attach-disk", shifts: true, by: shell, weight: 4, fits: func(m *mind) bool { return isAlive(m) && len(m.disks) < 3 },
		with: func(_ *rand.Rand, m *mind, _ int) string { return string([]byte{'v', 'd', byte('b' + len(m.disks))}) },
		does: func(m *mind, with string) { m.disks, m.marked = append(m.disks, with), true },
		args: func(p place) []string {
			file := p.dir + "/berth-" + p.name + "-" + p.with + ".raw"
			return []string{fmt.Sprintf("[ -e %[1]s ] || truncate -s 1M %[1]s; virsh -q attach-disk %[2]s %[1]s %[3]s --live --driver qemu "+
				"--subdriver raw --cache none", file, p.name, p.with)}
		},
	},
	{
		name: "virsh detach-disk", shifts: true, by: virsh, weight: 5, fits: func(m *mind) bool { return m.power == on && len(m.disks) > 0 },
		with: last(func(m *mind) []string { return m.disks }, "vdb"),
		does: func(m *mind, with string) { m.disks = without(m.disks, with) },
		args: func(p place) []string { return []string{"detach-disk", p.name, p.with, "--live"} },
	},
	{
		name: "virsh attach-interface", by: virsh, weight: 3, fits: func(m *mind) bool { return isAlive(m) && len(m.nics) < 3 },
		with: func(random *rand.Rand, _ *mind, _ int) string {
			return fmt.Sprintf("52:54:00:%02x:%02x:%02x", random.IntN(256), random.IntN(256), random.IntN(256))
		},
		does: func(m *mind, with string) { m.nics, m.marked = append(m.nics, with), true },
		args: func(p place) []string {
			return []string{"attach-interface", p.name, "network", "lab", "--mac", p.with, "--model", "virtio", "--live"}
		},
	},
	{
		name: "virsh detach-interface", by: virsh, weight: 3, fits: func(m *mind) bool { return m.power == on && len(m.nics) > 0 },
		with: last(func(m *mind) []string { return m.nics }, "52:54:00:00:00:01"),
		does: func(m *mind, with string) { m.nics = without(m.nics, with) },
		args: func(p place) []string {
			return []string{"detach-interface", p.name, "network", "--mac", p.with, "--live"}
		},
	},
	{
		name: "virsh setmem", by: virsh, weight: 2, fits: isOn,
		args: func(p place) []string { return []string{"setmem", p.name, "24M", "--live"} },
	},
	{
		name: "virsh setvcpus", by: virsh, weight: 2, fits: isOn,
		with: func(random *rand.Rand, _ *mind, _ int) string { return fmt.Sprint(1 + random.IntN(4)) },
		args: func(p place) []string { return []string{"setvcpus", p.name, p.with, "--live"} },
	},
	{
		name: "virsh setmem --config", by: virsh, weight: 1, fits: func(m *mind) bool { return m.defined },
		args: func(p place) []string { return []string{"setmem", p.name, "40M", "--config"} },
	},
	{
		name: "virsh setmem --live --config", by: virsh, weight: 1, fits: func(m *mind) bool { return m.power == on && m.defined },
		args: func(p place) []string { return []string{"setmem", p.name, "32M", "--live", "--config"} },
	},
	{
		name: "virsh setvcpus --config", by: virsh, weight: 1, fits: func(m *mind) bool { return m.defined },
		with: func(random *rand.Rand, _ *mind, _ int) string { return fmt.Sprint(1 + random.IntN(4)) },
		args: func(p place) []string { return []string{"setvcpus", p.name, p.with, "--config"} },
	},
	{
		name: "virsh setvcpus --live --config", by: virsh, weight: 1, fits: func(m *mind) bool { return m.power == on && m.defined },
		with: func(random *rand.Rand, _ *mind, _ int) string { return fmt.Sprint(1 + random.IntN(4)) },
		args: func(p place) []string { return []string{"setvcpus", p.name, p.with, "--live", "--config"} },
	},
	{
		name: "virsh autostart --disable", by: virsh, weight: 1, fits: func(m *mind) bool { return m.defined },
		args: func(p place) []string { return []string{"autostart", p.name, "--disable"} },
	},
	{
		name: "virsh suspend", by: virsh, weight: 4, fits: isOn, does: becomes(paused), may: pauses,
		args: func(p place) []string { return []string{"suspend", p.name} },
	},
	{
		name: "virsh resume", by: virsh, weight: 12, fits: func(m *mind) bool { return m.power == paused }, does: becomes(on), may: resumes,
		args: func(p place) []string { return []string{"resume", p.name} },
	},
	{
		name: "virsh reset", by: virsh, weight: 2, fits: isOn, may: halts,
		args: func(p place) []string { return []string{"reset", p.name} },
	},
	{
		name: "virsh managedsave", by: virsh, weight: 3, fits: func(m *mind) bool { return m.defined && isAlive(m) }, does: becomes(saved),
		may: ends | halts, args: func(p place) []string { return []string{"managedsave", p.name} },
	},
	{
		name: "virsh managedsave-remove", by: virsh, weight: 2, fits: func(m *mind) bool { return m.power == saved }, does: dies,
		args: func(p place) []string { return []string{"managedsave-remove", p.name} },
	},
	{
		name: "virsh start", by: virsh, weight: 8, fits: func(m *mind) bool { return isFixed(m) || m.power == saved }, does: becomes(on),
		may: begins | halts, args: func(p place) []string { return []string{"start", p.name} },
	},
	{
		name: "virsh migrate", by: virsh, weight: 4, fits: isOn, may: moves | halts,
		args: func(p place) []string {
			return []string{"migrate", "--live", "--p2p", "--tls", "--unsafe", p.name, "qemu+tls://" + p.other + "/system"}
		},
	},
	{
		name: "virsh migrate --persistent", by: virsh, weight: 3, fits: func(m *mind) bool { return m.power == on && m.defined },
		may: moves | halts,
		args: func(p place) []string {
			return []string{
				"migrate", "--live", "--p2p", "--tls", "--unsafe", "--persistent", "--undefinesource", p.name, "qemu+tls://" + p.other + "/system",
			}
		},
	},
	{
		name: "virsh shutdown", by: virsh, weight: 2, fits: isOn, does: dies, may: ends | halts,
		args: func(p place) []string { return []string{"shutdown", p.name} },
	},
	{
		name: "virsh destroy", by: virsh, weight: 3, fits: isAlive, does: dies, may: ends | halts,
		args: func(p place) []string { return []string{"destroy", p.name} },
	},
	{
		name: "virsh undefine", by: virsh, weight: 1, fits: func(m *mind) bool { return m.defined && m.power != saved },
		does: func(m *mind, _ string) { m.defined = false },
		args: func(p place) []string { return []string{"undefine", p.name} },
	},
	{
		name: "virsh define", by: shell, weight: 2, fits: isAlive, with: newFile, snaps: true,
		does: func(m *mind, _ string) { m.defined = true },
		args: func(p place) []string {
			return []string{fmt.Sprintf("virsh -q dumpxml --migratable %[1]s >/var/tmp/%[1]s.xml && virsh -q define /var/tmp/%[1]s.xml", p.name)}
		},
	},
	{
		name: "virsh autostart", by: virsh, weight: 1, fits: func(m *mind) bool { return m.defined },
		args: func(p place) []string { return []string{"autostart", p.name} },
	},
	{name: "kill the agent", by: fault, weight: 2, fits: mayFail, does: failed},
	{name: "restart libvirtd", by: fault, weight: 2, fits: mayFail, does: failed},
	{name: "kill the leader", by: fault, weight: 1, fits: mayFail, does: failed},
	{name: "cut the host off", by: fault, weight: 1, fits: mayFail, does: failed},
}

// file is a file for the guest's disk. It is named as Berth names volumes: then Berth has libvirt move a guest with it, though the lab's
// file system is none of those that libvirt knows to be shared.
func (p place) file() string { return p.dir + "/berth-" + p.name + "." + p.with }

// newest prints the file that the guest has written to last, as far as the files tell.
func (p place) newest() string { return "ls -t " + p.dir + "/berth-" + p.name + ".* | head -n 1" }

// newSize is one for the guest's disk: larger or smaller than that has, and more than the guest writes.
func newSize(random *rand.Rand, _ *mind, _ int) string { return fmt.Sprintf("%dM", 6+random.IntN(18)) }

// mayFail: one fault is enough for a seed, because all that run beside it have it too.
func mayFail(m *mind) bool     { return m.faults == 0 }
func failed(m *mind, _ string) { m.faults++ }

// last chooses what was attached last.
func last(of func(*mind) []string, otherwise string) func(*rand.Rand, *mind, int) string {
	return func(_ *rand.Rand, m *mind, _ int) string {
		if list := of(m); len(list) > 0 {
			return list[len(list)-1]
		}
		return otherwise
	}
}

func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == one })
}
