package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	run := exec.Command(filepath.Join(binaries, "berth"), "coordinator", "run", "--config", config)
	ts.Check(run.Start())
	ts.Defer(func() {
		_ = run.Process.Kill()
		_ = run.Wait() // of a killed process, always an error
	})
	ts.Setenv("BERTH_CONFIG", client)
	for began := time.Now(); ts.Exec("berth", "status") != nil; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > startLimit {
			ts.Fatalf("the coordinator does not lead after %s", startLimit)
		}
	}
}

// free is an address that nobody listens on.
func free(ts *testscript.TestScript) string {
	address, err := loopback.Address()
	ts.Check(err)
	return address
}
