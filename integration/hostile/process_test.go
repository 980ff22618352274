package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	"berth/shared/pki"
)

// What the hostile process on a host is, reads and writes.
const (
	program = "/var/tmp/hostile-agent" // this test's own program, under a name by which it knows what to be
	others  = "/var/tmp/others"        // VMs of other nodes, a UUID a line
	said    = "/var/tmp/said"          // how many things it has said

	agentKeys = "/var/lib/berth/agent/tls"
	peerKeys  = "/var/lib/berth/coordinator/tls"
)

func TestMain(m *testing.M) {
	lab.Child()
	if filepath.Base(os.Args[0]) == filepath.Base(program) {
		fmt.Fprintln(os.Stderr, beHostile(os.Args[1:]))
		os.Exit(1)
	}
	if filepath.Base(os.Args[0]) == filepath.Base(asker) {
		if err := ask(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	fmt.Println(lab.Watched("hostile"))
	os.Exit(code)
}

// copyProgram puts this test's own program on a machine, under a name by which it knows what to be.
func (s *site) copyProgram(to *lab.Machine, path string) {
	s.Helper()
	own, err := os.Executable()
	s.check(err)
	text, err := os.ReadFile(own)
	s.check(err)
	s.check(os.WriteFile(to.Path(path), text, 0o755))
}

// beHostile speaks to the coordinators at these addresses with the certificate of the host's agent until it is killed.
func beHostile(addresses []string) error {
	files := pki.Files{
		CA: filepath.Join(agentKeys, "ca.pem"), Certificate: filepath.Join(agentKeys, "agent.pem"), Key: filepath.Join(agentKeys, "agent.key"),
	}
	own, err := pki.LoadPair(files)
	if err != nil {
		return err
	}
	a := &Agent{NodeID: own.Identity.ID, ClusterID: own.Identity.ClusterID, Files: files, Addresses: addresses}
	go a.hear()
	return a.Run(context.Background())
}

// hear takes in for ever whom to lie about, and tells how much was said.
func (a *Agent) hear() {
	for known := 0; ; time.Sleep(100 * time.Millisecond) {
		text, _ := os.ReadFile(others) // there is none as long as nothing runs
		all := strings.Fields(string(text))
		for ; known < len(all); known++ {
			a.Saw(all[known])
		}
		_ = os.WriteFile(said+".new", fmt.Append(nil, a.Said()), 0o644) // the test fails if it reads nothing
		_ = os.Rename(said+".new", said)
	}
}
