package lab

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/shared/units"
)

// raise raises a lab for one test.
func raise(t *testing.T, options Options) *Lab {
	t.Helper()
	options.Log = t.Output()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	begin := time.Now()
	l, err := Up(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up in %v", time.Since(begin).Round(10*time.Millisecond))
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// startGuest starts a guest with virsh, from GuestXML, changed by the replacements (old, new, old, new ...).
func (h *Host) startGuest(ctx context.Context, name, cmdline string, replacements ...string) (string, error) {
	text := h.lab.GuestXML(name, 128, strings.TrimSpace(Cmdline+" "+cmdline))
	file := filepath.Join(SharedDir, name+".xml")
	outside := filepath.Join(h.lab.Dir, "shared", name+".xml")
	if err := os.WriteFile(outside, []byte(strings.NewReplacer(replacements...).Replace(text)), 0o644); err != nil {
		return "", err
	}
	return h.Virsh(ctx, "create", file)
}

// traces is everything of a lab that this machine could still have.
type traces struct {
	dir        string
	namespaces map[string]bool
}

// tracesOf remembers the namespaces of all machines. None of them may be this process's own.
func tracesOf(t *testing.T, dir string) traces {
	t.Helper()
	found := traces{dir, map[string]bool{}}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range processes {
		text, _ := os.ReadFile(path)
		init := strings.HasPrefix(string(text), roleInit) || strings.HasPrefix(string(text), roleMachine)
		if !init || !strings.Contains(string(text), dir) {
			continue
		}
		for _, kind := range []string{"pid", "mnt", "net", "uts", "ipc"} {
			namespace, err := os.Readlink(filepath.Join(filepath.Dir(path), "ns", kind))
			if err != nil {
				t.Fatal(err)
			}
			if own, _ := os.Readlink("/proc/self/ns/" + kind); own == namespace {
				t.Errorf("a process of the lab is in the %s namespace of this machine", kind)
			}
			found.namespaces[namespace] = true
		}
	}
	if len(found.namespaces) == 0 {
		t.Fatalf("no process of lab %s", dir)
	}
	return found
}

// left is what is still there: processes, namespaces, mounts and files.
func (r traces) left() []string {
	var left []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		if text, err := os.ReadFile(process + "/cmdline"); err == nil && strings.Contains(string(text), r.dir) {
			left = append(left, fmt.Sprintf("process %s: %q", filepath.Base(process), text))
		}
		for _, kind := range []string{"pid", "mnt", "net", "uts", "ipc"} {
			if namespace, err := os.Readlink(filepath.Join(process, "ns", kind)); err == nil && r.namespaces[namespace] {
				left = append(left, fmt.Sprintf("namespace %s of process %s", namespace, filepath.Base(process)))
			}
		}
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(text), r.dir) {
		left = append(left, "mounts")
	}
	if _, err := os.Lstat(r.dir); !os.IsNotExist(err) {
		left = append(left, "directory "+r.dir)
	}
	return left
}

func TestALabThatIsTakenDownLeavesNoTrace(t *testing.T) {
	l := raise(t, Options{Hosts: 2})
	if _, err := l.Hosts[0].startGuest(t.Context(), "guest", ""); err != nil {
		t.Fatal(err)
	}
	traces := tracesOf(t, l.Dir)
	if len(traces.left()) == 0 {
		t.Fatal("a lab that is up has no traces: this test cannot fail")
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces.left() {
		t.Error("left:", trace)
	}
	if err := l.Down(); err != nil {
		t.Errorf("taking it down again: %v", err)
	}
}

func TestALabDiesWithItsOwner(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			owner := exec.Command(os.Args[0])
			owner.Env = append(os.Environ(), ownerVariable+"=1")
			output, err := owner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = owner.Process.Kill() })
			dir, _ := bufio.NewReader(output).ReadString('\n')
			dir = strings.TrimSpace(dir)
			if !strings.HasPrefix(dir, dirPrefix) {
				t.Fatal(dir)
			}
			traces := tracesOf(t, dir)
			if err := owner.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = owner.Wait()
			err = await(t.Context(), "the lab to go", 10*time.Second, func() (bool, error) {
				if left := traces.left(); len(left) > 0 {
					return false, fmt.Errorf("left: %q", left)
				}
				return true, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestALabThatCannotComeUpLeavesNoTrace(t *testing.T) {
	before, _ := filepath.Glob(dirPrefix + "broken-*")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	empty := t.TempDir() // no kernel for guests
	_, err := Up(ctx, Options{Name: "broken", Hosts: 1, Binaries: empty})
	if err == nil || !strings.Contains(err.Error(), "make deps") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	if after, _ := filepath.Glob(dirPrefix + "broken-*"); len(after) != len(before) {
		t.Errorf("left: %q", after)
	}
}

func TestOptionsThatCannotBeRaisedAreRefused(t *testing.T) {
	for name, options := range map[string]Options{
		"name":         {Name: "../x"},
		"hosts":        {Hosts: -1},
		"coordinators": {Coordinators: 6},
		"memory":       {HostMemory: []units.Bytes{1}, HostReserve: 2},
		"binaries":     {Coordinators: 1, Binaries: t.TempDir()},
	} {
		if l, err := Up(t.Context(), options); err == nil {
			_ = l.Down()
			t.Errorf("%s: %+v was raised", name, options)
		}
	}
}

// Two labs use the same names and addresses, and the same guest, and do not notice each other.
func TestTwoLabsSideBySide(t *testing.T) {
	var labs [2]*Lab
	for i, name := range []string{"left", "right"} {
		labs[i] = raise(t, Options{Name: name, Hosts: 1})
		const uuid = "</name><uuid>8d3f0c6e-1f0e-4a53-9f4c-3c0f7c0de111</uuid>"
		if _, err := labs[i].Hosts[0].startGuest(t.Context(), "twin", "", "</name>", uuid); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range labs {
		if guests := l.Hosts[0].QEMUs(); len(guests) != 1 || guests[0].Name != "twin" {
			t.Errorf("%s shows %+v, want its own guest", l.Name, guests)
		}
	}
	if err := labs[0].Down(); err != nil {
		t.Fatal(err)
	}
	if state, err := labs[1].Hosts[0].Virsh(t.Context(), "domstate", "twin"); err != nil || strings.TrimSpace(state) != "running" {
		t.Errorf("after the other lab is down: %q %v", state, err)
	}
}

func TestAKeptLabOutlivesItsOwnerAndIsFoundAgain(t *testing.T) {
	l := raise(t, Options{Name: "kept", Hosts: 1, Keep: true})
	// To the reaper the owner is gone: the pipe is closed.
	if err := l.owner.Close(); err == nil {
		t.Fatal("the owner still holds the lab")
	}
	found, err := Open("kept")
	if err != nil {
		t.Fatal(err)
	}
	if found.Dir != l.Dir || len(found.Hosts) != 1 || found.VirtType != l.VirtType {
		t.Errorf("found %+v, want %+v", found, l)
	}
	name, err := found.Hosts[0].Exec(t.Context(), "hostname")
	if err != nil || name != "node1\n" {
		t.Errorf("hostname is %q: %v", name, err)
	}
	traces := tracesOf(t, l.Dir)
	if err := found.Down(); err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces.left() {
		t.Error("left:", trace)
	}
	if _, err := Open("kept"); err == nil {
		t.Error("the lab is still found")
	}
}
