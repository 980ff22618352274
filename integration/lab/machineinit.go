package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"berth/shared/units"
)

// machineSpec is what the init of a machine must know. It lies in the machine's directory, so that the machine can be
// powered on again at any time.
type machineSpec struct {
	Name     string
	Address  string
	Kind     string      // kindHost, kindCoordinator or kindOperator
	Binaries string      // seen as binDir inside
	Memory   units.Bytes // hosts: see Shape
	Reserve  units.Bytes
	// LocalPool is how much LocalPoolDir of a host can hold, in memory, until the host loses power. 0: it lies on disk.
	LocalPool units.Bytes
}

const (
	kindHost        = "host"
	kindCoordinator = "coordinator"
	kindOperator    = "operator"
)

// SharedDir is one directory that all machines of a lab see: the guests' kernel and initramfs lie in it, their serial
// logs, and images that a migration has to find on both sides.
const SharedDir = "/var/lib/lab"

// Other paths inside a machine.
const (
	binDir    = SharedDir + "/bin"
	stateDir  = "/run/lab" // process IDs, monitor sockets, shaped files
	qemu      = "/usr/bin/qemu-system-x86_64"
	qemuMoved = stateDir + "/usr/bin/qemu-system-x86_64"
)

func machineDir(dir, name string) string { return filepath.Join(dir, "machines", name) }

func readSpec(dir, name string) (machineSpec, error) {
	var spec machineSpec
	text, err := os.ReadFile(filepath.Join(machineDir(dir, name), initFile))
	if err != nil {
		return spec, err
	}
	return spec, json.Unmarshal(text, &spec)
}

// runLaunch runs inside the lab. It starts the init of one machine, plugs its cable into the switch and goes away; the
// machine then belongs to the lab's init.
func runLaunch(dir, name string) error {
	log, err := os.OpenFile(filepath.Join(machineDir(dir, name), "var/log/init.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	wait, plugged, err := os.Pipe()
	if err != nil {
		return err
	}
	defer plugged.Close()
	machine := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{roleMachine, dir, name}, Stdin: wait, Stderr: log,
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true},
	}
	err = startAndWaitReady(machine, func(pid int) error {
		wait.Close()
		// The port of a machine that was just powered off may not be gone yet.
		_ = run("ip", "link", "delete", name)
		err := runInput(fmt.Sprintf("link add %s type veth peer name eth0 netns %d\nlink set %s master %s up\n", name, pid, name, bridge),
			"ip", "-batch", "-")
		return errors.Join(err, plugged.Close())
	})
	if err != nil {
		return fmt.Errorf("%w, see %s", err, log.Name())
	}
	return nil
}

// runMachineInit is process 1 of a machine. Its mounts are laid out in the machine's directory and then put in place.
func runMachineInit(dir, name string) error {
	spec, err := readSpec(dir, name)
	if err != nil {
		return err
	}
	root := machineDir(dir, name)
	if err := errors.Join(
		syscall.Sethostname([]byte(name)),
		mountMachine(dir, root, spec),
		os.Chdir("/"),
	); err != nil {
		return err
	}
	// The launcher closes the pipe when the cable is in.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := runInput(addressCommands(spec), "ip", "-batch", "-"); err != nil {
		return err
	}
	shaper, err := newShaper(filepath.Join(root, shapeFile), spec.Kind == kindHost)
	if err != nil {
		return err
	}
	go shaper.loop()
	fmt.Print(sayUp)
	os.Stdout.Close()
	reapForever()
	return nil
}

// addressCommands gives a host a bridge with its address on it, as hypervisors have it for their guests, and any other
// machine a plain interface.
func addressCommands(spec machineSpec) string {
	device, lines := "eth0", []string{"link set lo up"}
	if spec.Kind == kindHost {
		device = guestBridge
		lines = append(lines, "link add "+guestBridge+" type bridge forward_delay 0", "link set eth0 master "+guestBridge)
	}
	lines = append(lines, "link set eth0 up", "link set "+device+" up", "address add "+spec.Address+"/24 dev "+device)
	return strings.Join(lines, "\n") + "\n"
}

// guestBridge is the bridge on every host that its guests are connected to.
const guestBridge = "br0"

// mounts collects mount calls and the first error among them.
type mounts struct{ err error }

func (m *mounts) mount(source, target, kind string, flags uintptr, options string) {
	if m.err != nil {
		return
	}
	if err := syscall.Mount(source, target, kind, flags, options); err != nil {
		m.err = fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
}

// bind shows a file or directory in place of another one.
func (m *mounts) bind(source, target string) {
	m.mount(source, target, "", syscall.MS_BIND|syscall.MS_REC, "")
}

// file makes an empty file to bind on.
func (m *mounts) file(path string) { m.write(path, "") }

func (m *mounts) write(path, text string) {
	if m.err == nil {
		m.err = os.WriteFile(path, []byte(text), 0o644)
	}
}

func (m *mounts) link(target, path string) {
	if m.err == nil {
		m.err = os.Symlink(target, path)
	}
}

func (m *mounts) directory(path string) {
	if m.err == nil {
		m.err = os.MkdirAll(path, 0o755)
	}
}

func mountMachine(dir, root string, spec machineSpec) error {
	var m mounts
	m.mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, "")

	// All sources are bound into the machine's tree first, because /etc, /var and /run hide what was there.
	run, lab := filepath.Join(root, "run"), filepath.Join(root, "var/lib/lab")
	m.mount("tmpfs", run, "tmpfs", 0, "mode=755,size=64m")
	m.directory(filepath.Join(run, "lab/qmp"))
	m.directory(filepath.Join(run, "lab/etc"))
	m.directory(filepath.Join(run, "lock"))
	m.bind("/etc", filepath.Join(run, "lab/etc"))
	m.write(filepath.Join(run, "lab/boot_id"), randomUUID()+"\n")
	m.bind(filepath.Join(dir, "shared"), lab)
	m.bind(spec.Binaries, filepath.Join(lab, "bin"))
	if spec.Kind == kindHost {
		// QEMU looks for its modules and firmware beside the directory that it lies in.
		m.directory(filepath.Join(run, "lab/usr/bin"))
		for _, beside := range []string{"lib", "share"} {
			m.link("/usr/"+beside, filepath.Join(run, "lab/usr", beside))
		}
		moved := filepath.Join(run, "lab/usr/bin", filepath.Base(qemu))
		m.file(moved)
		m.bind(qemu, moved)
		m.bind(filepath.Join(dir, "shared", qemuWrapper), qemu)
		if spec.LocalPool > 0 {
			m.mount("tmpfs", filepath.Join(root, LocalPoolDir), "tmpfs", 0, fmt.Sprintf("mode=711,size=%d", spec.LocalPool))
		}
	}
	m.bind(filepath.Join(root, "etc"), "/etc")
	m.bind(filepath.Join(root, "var"), "/var")
	m.bind(run, "/run")

	m.mount("proc", "/proc", "proc", 0, "")
	m.bind(stateDir+"/boot_id", "/proc/sys/kernel/random/boot_id") // every power cycle is a boot
	m.mount("sysfs", "/sys", "sysfs", 0, "")
	m.mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=620")
	return m.err
}
