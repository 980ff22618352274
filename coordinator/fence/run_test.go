package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/coordinator/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent writes a fence agent: a shell script that has read its lines into $plug, $password and $action.
func agent(t *testing.T, body string) *Runner {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\nwhile IFS='=' read -r name value; do " +
		"case \"$name\" in plug) plug=$value;; password) password=$value;; action) action=$value;; esac; done\ncd " +
		dir + "\n" + body
	// A process that another test starts meanwhile would inherit the open file, and Linux runs no file that is open for writing.
	syscall.ForkLock.RLock()
	err := os.WriteFile(filepath.Join(dir, "fence_test"), []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Directories: []string{filepath.Join(dir, "nowhere"), dir}}
}

// ways are how fence agents in the directories of a Runner are run.
var ways = map[string]func(*testing.T, *Runner) *Runner{
	"as its own account": func(_ *testing.T, r *Runner) *Runner { return r },
	"by the service":     served,
}

// eachWay has a test use its fence agent in both ways. What is asked is what way gives; what it is given knows the folder.
func eachWay(t *testing.T, do func(t *testing.T, way func(*testing.T, *Runner) *Runner)) {
	t.Helper()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { do(t, way) })
	}
}

func device(timeout time.Duration) model.FenceDevice {
	return model.FenceDevice{
		Method: model.FenceCommand, Program: "fence_test", Timeout: timeout,
		Arguments: map[string]string{"plug": "n1", "password": "swordfish"},
	}
}

// Only one thing is a proof: the device has switched the machine off, and says that it is off.
func TestWhatIsAProof(t *testing.T) {
	for _, c := range []struct {
		name, body string
		says       string // of the error; empty: proven
	}{
		{"off, and then off", `case $action in off) exit 0;; status) exit 2;; esac; exit 1`, ""},
		{"off, and then on", `case $action in off) exit 0;; status) exit 0;; esac; exit 1`, "then that it is on"},
		{
			"off, and then nothing", `case $action in off) exit 0;; esac; echo "no route to host" >&2; exit 1`,
			`ended with code 1 when it was asked for the power state: it said "no route to host"`,
		},
		{"it could not switch it off, though it is off", `case $action in status) exit 2;; esac; exit 1`, "when it was told to switch off"},
		{"a code that nobody knows", `exit 7`, "code 7"},
		{"off answers as status does", `exit 2`, "code 2 when it was told to switch off"},
		{"it crashes", `kill -9 $$`, "signal: killed"},
		{"it never answers", `sleep 60`, "no answer within 1s"},
		{"a child of it never ends", `sleep 60 & sleep 60`, "no answer within 1s"},
		{"a secret is not repeated", `echo "login with $password for $plug failed"; exit 1`, `"login with *** for n1 failed"`},
	} {
		eachWay(t, func(t *testing.T, way func(*testing.T, *Runner) *Runner) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				err := way(t, agent(t, c.body)).Off(t.Context(), device(time.Second))
				switch {
				case c.says == "":
					if err != nil {
						t.Errorf("no proof: %v", err)
					}
				case err == nil:
					t.Error("it counts as a proof")
				case !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), c.says):
					t.Errorf("error %v, want one that says %s", err, c.says)
				}
				if err != nil && strings.Contains(err.Error(), "swordfish") {
					t.Errorf("the error tells the secret: %v", err)
				}
			})
		})
	}
}

// A machine with two power supplies is off when both of its plugs are, at the same time.
func TestAMachineWithTwoPlugsIsOffWhenBothAre(t *testing.T) {
	const log = `echo "$action $plug" >> asked; `
	for _, c := range []struct {
		name, body string
		says       string // of the error; empty: proven
		asked      string
	}{
		{
			"both off", log + `case $action in off) exit 0;; status) exit 2;; esac; exit 1`, "",
			"off n1\noff n1b\nstatus n1\nstatus n1b\n",
		},
		{
			"the second does not answer", log + `[ "$plug" = n1b ] && exit 1; case $action in off) exit 0;; status) exit 2;; esac; exit 1`,
			"fence_test plug=n1b: the fence agent gave no answer", "off n1\noff n1b\n",
		},
		{
			"the second says on", log + `[ $action = off ] && exit 0; [ "$plug" = n1b ] && exit 0; exit 2`,
			"fence_test plug=n1b: the fence agent gave no answer that counts: fence_test said that it has switched the machine off, and then",
			"off n1\noff n1b\nstatus n1\nstatus n1b\n",
		},
		{
			"the first is switched on again meanwhile", log + `[ "$plug" = n1b ] && touch again; ` +
				`[ $action = off ] && exit 0; [ "$plug" = n1 ] && [ -e again ] && exit 0; exit 2`,
			"fence_test plug=n1: ", "off n1\noff n1b\nstatus n1\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, both := agent(t, c.body), device(0)
			second := device(0)
			second.Arguments["plug"] = "n1b"
			both.Also = []model.FenceDevice{second}
			err := r.Off(t.Context(), both)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			asked, err := os.ReadFile(filepath.Join(r.Directories[1], "asked"))
			if err != nil || string(asked) != c.asked {
				t.Errorf("it was asked %q, %v; want %q", asked, err, c.asked)
			}
		})
	}
}

func TestTheProgramReadsItsArguments(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*testing.T, *Runner) *Runner) {
		r := agent(t, `echo "$action $plug $password" >> asked; [ "$action" = status ] && exit 2; exit 0`)
		if err := way(t, r).Off(t.Context(), device(0)); err != nil {
			t.Fatal(err)
		}
		asked, err := os.ReadFile(filepath.Join(r.Directories[1], "asked"))
		if want := "off n1 swordfish\nstatus n1 swordfish\n"; err != nil || string(asked) != want {
			t.Errorf("it was asked %q, %v; want %q", asked, err, want)
		}
	})
}

func TestThePowerState(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*testing.T, *Runner) *Runner) {
		for body, want := range map[string]bool{
			`[ "$action" = status ] && exit 0; exit 1`: true, `[ "$action" = status ] && exit 2; exit 1`: false,
		} {
			if on, err := way(t, agent(t, body)).On(t.Context(), device(0)); err != nil || on != want {
				t.Errorf("%s: %t, %v", body, on, err)
			}
		}
	})
}

// When the leadership goes, the program goes with all that it has started: its successor asks the device anew.
func TestACallThatIsGivenUpLeavesNothingAtWork(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*testing.T, *Runner) *Runner) {
		r := agent(t, `sleep 1000 & echo $! > child.tmp; mv child.tmp child; wait`)
		ctx, cancel := context.WithCancel(t.Context())
		asks, done := way(t, r), make(chan error, 1)
		go func() { done <- asks.Off(ctx, device(time.Minute)) }()
		var child int
		for child == 0 {
			text, _ := os.ReadFile(filepath.Join(r.Directories[1], "child"))
			child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		cancel()
		if err := <-done; !errors.Is(err, ErrUnknown) {
			t.Errorf("error %v", err)
		}
		for syscall.Kill(child, 0) == nil && running(child) { // the test ends with its time if it lives on
			runtime.Gosched()
		}
	})
}

// running tells whether a process is more than an entry that nobody has waited for.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

func TestOnlyFenceAgentsOfTheDirectoriesAreRun(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*testing.T, *Runner) *Runner) {
		r := agent(t, `exit 0`)
		asks := way(t, r)
		for _, program := range []string{"fence_other", "../fence_test", "/bin/sh", "sh", "fence_", ""} {
			asked := device(0)
			asked.Program = program
			err := asks.Off(t.Context(), asked)
			if missing := errors.Is(err, ErrNoAgent); err == nil || missing != (program == "fence_other") {
				t.Errorf("%q: %v", program, err)
			}
		}
		if err := os.Chmod(filepath.Join(r.Directories[1], "fence_test"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := asks.Off(t.Context(), device(0)); !errors.Is(err, ErrNoAgent) {
			t.Errorf("what is no program: %v", err)
		}
	})
}

func TestOnlyTheEndOfALongOutputIsKept(t *testing.T) {
	err := agent(t, `i=0; while [ $i -lt 4000 ]; do echo "line $i of much"; i=$((i+1)); done; exit 1`).Off(t.Context(), device(0))
	if err == nil || !strings.Contains(err.Error(), "line 3999 of much") || len(err.Error()) > 600 {
		t.Errorf("error of %d bytes: %v", len(err.Error()), err)
	}
}
