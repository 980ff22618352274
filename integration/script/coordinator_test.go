package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"berth/integration/loopback"
)

// startLimit is how long a new coordinator may take until it leads.
const startLimit = 30 * time.Second

// coordinator: a new cluster of one coordinator without nodes runs until the script ends, and the environment leads to it.
func coordinator(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: coordinator")
	}
	folder := ts.MkAbs("coordinator")
	ts.Check(os.MkdirAll(folder, 0o755))
	config, client := filepath.Join(folder, "coordinator.yaml"), filepath.Join(folder, "client.yaml")
	ts.Check(os.WriteFile(config, fmt.Appendf(nil, "listen:\n  api: %s\n  agent: %s\n  raft: %s\n", free(ts), free(ts), free(ts)), 0o600))
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

// stoppers is under which key a script has the functions that stop its coordinators, by their names.
type stoppers struct{}

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

// free is an address that nobody listens on.
func free(ts *testscript.TestScript) string {
	address, err := loopback.Address()
	ts.Check(err)
	return address
}
