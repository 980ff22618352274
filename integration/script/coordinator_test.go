package script

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/rogpeppe/go-internal/testscript"

	"berth/integration/loopback"
	"berth/integration/simagent"
	"berth/shared/units"
)

// startLimit is how long a new coordinator may take until it leads.
const startLimit = 30 * time.Second

// coordinator LINE...: a new cluster of one coordinator without nodes runs until the script ends, and the environment leads to it. The
// lines are put into its configuration.
func coordinator(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: coordinator LINE...")
	}
	folder := ts.MkAbs("coordinator")
	ts.Check(os.MkdirAll(folder, 0o755))
	config, client := filepath.Join(folder, "coordinator.yaml"), filepath.Join(folder, "client.yaml")
	ts.Check(os.WriteFile(config, fmt.Appendf(nil, "listen:\n  api: %s\n  agent: %s\n  raft: %s\n%s\n",
		free(ts), free(ts), free(ts), strings.Join(args, "\n")), 0o600))
	ts.Check(ts.Exec("berth", "coordinator", "init", "--config", config, "--data-dir", filepath.Join(folder, "data"),
		"--client-config", client, "--advertise", "127.0.0.1", "--name", "coord1"))
	runs(ts, "coord1", config)
	ts.Setenv("BERTH_CONFIG", client)
	for began := time.Now(); ts.Exec("berth", "status") != nil; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > startLimit {
			ts.Fatalf("the coordinator does not lead after %s", startLimit)
		}
	}
}

// Under these keys a script has the functions that stop its coordinators, and their processes, by their names, and its simulated nodes.
type (
	stoppers  struct{}
	processes struct{}
	fleet     struct{}
)

// runs starts a coordinator that is set up, until the script ends or stops it.
func runs(ts *testscript.TestScript, name, config string) {
	run := exec.Command(filepath.Join(binaries, "berth"), "coordinator", "run", "--config", config)
	ts.Check(run.Start())
	stop := sync.OnceFunc(func() {
		_ = run.Process.Kill()
		_ = run.Wait() // of a killed process, always an error
	})
	ts.Defer(stop)
	ts.Value(stoppers{}).(map[string]func())[name] = stop
	ts.Value(processes{}).(map[string]*os.Process)[name] = run.Process
}

// How long a coordinator stands still, and how long it goes on, that gets its machine only now and then.
const (
	standsStill = 400 * time.Millisecond
	goesOn      = 100 * time.Millisecond
)

// hinders NAME: from now on a coordinator gets its machine for a fifth of the time, as on one that is busy.
func hinders(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hinders NAME")
	}
	process, known := ts.Value(processes{}).(map[string]*os.Process)[args[0]]
	if !known {
		ts.Fatalf("there is no coordinator %s", args[0])
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for process.Signal(syscall.SIGSTOP) == nil {
			time.Sleep(standsStill)
			if process.Signal(syscall.SIGCONT) != nil {
				return
			}
			select {
			case <-ended:
				return
			case <-time.After(goesOn):
			}
		}
	}()
	ts.Defer(func() { close(ended); <-done })
}

// nodes NAME...: simulated nodes join and are up until the script ends.
func nodes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: nodes NAME...")
	}
	running, cancel := context.WithCancel(context.Background())
	all := ts.Value(fleet{}).(*simagent.Fleet)
	var ended sync.WaitGroup
	ts.Defer(func() { cancel(); ended.Wait() })
	for _, name := range args {
		ts.Check(ts.Exec("berth", "token", "add", "--for", "agent", "-q"))
		line := strings.Fields(ts.ReadFile("stdout")) // echo TOKEN | ... berth-agent join ADDRESS -
		at := slices.Index(line, "join")
		if at < 0 {
			ts.Fatalf("no line to join with: %q", line)
		}
		identity, err := simagent.Enrol(running, line[at+1], line[1], name, ts.MkAbs(name))
		ts.Check(err)
		agent, err := all.Add(identity, simagent.Size{Memory: 64 * units.GiB, CPUs: 64}, hclog.NewNullLogger())
		ts.Check(err)
		ended.Go(func() { _ = agent.Run(running) }) // it ends with its context only
	}
	for _, name := range args {
		up := regexp.MustCompile(`(?m)^` + name + " +up ")
		isUp := func() bool { return ts.Exec("berth", "node", "list") == nil && up.MatchString(ts.ReadFile("stdout")) }
		for began := time.Now(); !isUp(); time.Sleep(100 * time.Millisecond) {
			if time.Since(began) > startLimit {
				ts.Fatalf("%s is not up after %s", name, startLimit)
			}
		}
	}
}

// holds on|off: from now on migrations between simulated nodes go on until they are cancelled; off: those that are held end.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "on" && args[0] != "off" {
		ts.Fatalf("usage: holds on|off")
	}
	ts.Value(fleet{}).(*simagent.Fleet).Hold(args[0] == "on")
}

// lets-go on|off: from now on what simulated nodes are told to stop has gone before, as on a node that takes orders of later epochs only.
func letsGo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "on" && args[0] != "off" {
		ts.Fatalf("usage: lets-go on|off")
	}
	ts.Value(fleet{}).(*simagent.Fleet).LetGo(args[0] == "on")
}

// joins NAME: one more coordinator joins the cluster and is a voter. NAME.yaml is the client configuration of root there.
func joins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: joins NAME")
	}
	name := args[0]
	folder := ts.MkAbs(name)
	ts.Check(os.MkdirAll(folder, 0o755))
	config := filepath.Join(folder, "coordinator.yaml")
	ts.Check(os.WriteFile(config, fmt.Appendf(nil, "listen:\n  api: %s\n  agent: %s\n  raft: %s\n", free(ts), free(ts), free(ts)), 0o600))
	ts.Check(ts.Exec("berth", "token", "add", "--for", "coordinator", "-q"))
	line := strings.Fields(ts.ReadFile("stdout")) // echo TOKEN | berth coordinator join ADDRESS -
	ts.Check(ts.Exec("berth", "coordinator", "join", line[6], line[1], "--config", config, "--data-dir", filepath.Join(folder, "data"),
		"--client-config", ts.MkAbs(name+".yaml"), "--advertise", "127.0.0.1", "--name", name))
	runs(ts, name, config)
	voter := regexp.MustCompile(name + " +(follower|leader) +healthy")
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if ts.Exec("berth", "coordinator", "list") == nil && voter.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Since(began) > startLimit {
			ts.Fatalf("%s is no voter after %s", name, startLimit)
		}
	}
}

// stops NAME: a coordinator dies.
func stops(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stops NAME")
	}
	ts.Value(stoppers{}).(map[string]func())[args[0]]()
}

// begins NAME: a coordinator that has died runs again, with what it has on its disk.
func begins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: begins NAME")
	}
	folder := args[0]
	if folder == "coord1" {
		folder = "coordinator"
	}
	runs(ts, args[0], filepath.Join(ts.MkAbs(folder), "coordinator.yaml"))
}

// free is an address that nobody listens on.
func free(ts *testscript.TestScript) string {
	address, err := loopback.Address()
	ts.Check(err)
	return address
}
