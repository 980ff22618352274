package chaos

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// give copies a machine's file to the operator's.
func (s *site) give(from *lab.Machine, path, to string) string {
	s.Helper()
	text, err := os.ReadFile(from.Path(path))
	s.must(err)
	return s.file(to, string(text))
}

// client writes a client configuration for the lab's coordinators and returns the flags that use it.
func (s *site) client(ca, certificate, key string) []string {
	s.Helper()
	var coordinators []string
	for _, c := range s.lab.Coordinators {
		coordinators = append(coordinators, c.Address+":7420")
	}
	path := s.file("client.yaml", fmt.Sprintf("current: lab\ncontexts:\n  lab: {coordinators: [%s], ca: %s, certificate: %s, key: %s}\n",
		strings.Join(coordinators, ", "), ca, certificate, key))
	return []string{"--client-config", path}
}

func TestAnAgentsCertificateGivesNoOrders(t *testing.T) {
	s := begin(t)
	s.firmware("safe", s.lab.Hosts[1])
	node := s.lab.Hosts[0].Machine
	const dir = "/var/lib/berth/agent/tls/"
	as := s.client(
		s.give(node, dir+"ca.pem", "ca.pem"), s.give(node, dir+"agent.pem", "agent.pem"), s.give(node, dir+"agent.key", "agent.key"),
	)
	denied := []string{"agent/node1 may not"}
	s.refuse(
		refusal{"start", append(as, "vm", "start", "mine", "--memory", "64M"), 1, denied},
		refusal{"stop", append(as, "vm", "stop", "safe", "--force"), 1, denied},
		refusal{"delete", append(as, "vm", "delete", "safe", "--yes"), 1, denied},
		refusal{"look", append(as, "vm", "list"), 1, denied},
		refusal{"let somebody in", append(as, "token", "add", "--for", "operator"), 1, denied},
		refusal{"remove a coordinator", append(as, "coordinator", "delete", "coord2", "--yes"), 1, denied},
	)
}

func TestAnOperatorsCertificateIsNoAgents(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	s.must(host.StopAgent())
	for theirs, own := range map[string]string{"certificate.pem": "agent.pem", "key.pem": "agent.key"} {
		text, err := os.ReadFile(s.lab.Operator.Path("/etc/berth/client/default/" + theirs))
		s.must(err)
		s.edit(host.Machine, "/var/lib/berth/agent/tls/"+own, func(string) string { return string(text) })
	}
	already := len(host.Log(lab.Agent))
	s.must(host.StartAgent(t.Context()))
	t.Cleanup(func() { s.must(host.StopAgent()) })
	s.within(15*time.Second, "the agent says why it is not let in", func() error {
		if text := host.Log(lab.Agent)[already:]; !strings.Contains(text, "operator/admin may not") {
			return fmt.Errorf("its log has %s", text)
		}
		return nil
	})
	s.node(host, 30*time.Second, berthv1.NodeState_NODE_STATE_UNREACHABLE)
}

func TestACertificateOfAnotherClusterIsRefusedOnBothSides(t *testing.T) {
	s := begin(t)
	operator := s.lab.Operator
	s.on(operator, "rm", "-rf", "/var/tmp/other")
	s.says(operator, []string{
		"berth", "coordinator", "init", "--name", "other", "--advertise", operator.Address,
		"--config", "/var/tmp/other/coordinator.yaml", "--data-dir", "/var/tmp/other/data", "--client-config", "/var/tmp/other/client.yaml",
	}, 0)
	member := s.lab.Coordinators[0].Address
	other := []string{"--client-config", "/var/tmp/other/client.yaml", "--coordinator", member}
	s.refuse(refusal{"a foreign coordinator", append(other, "vm", "start", "mine", "--memory", "64M"), 1, []string{member, "another cluster"}})

	// Our own client would not even send a foreign certificate. OpenSSL does, to every port of a member.
	const theirs, agents = "/var/tmp/other/client/default/certificate.pem", "/var/tmp/agent.pem"
	s.give(s.lab.Hosts[0].Machine, "/var/lib/berth/agent/tls/agent.pem", "agent.pem")
	s.give(s.lab.Hosts[0].Machine, "/var/lib/berth/agent/tls/agent.key", "agent.key")
	for _, c := range []struct{ why, port, certificate, key string }{
		{"a foreign certificate on the API", "7420", theirs, "/var/tmp/other/client/default/key.pem"},
		{"a foreign certificate on the agents' port", "7421", theirs, "/var/tmp/other/client/default/key.pem"},
		{"a foreign certificate on Raft's port", "7422", theirs, "/var/tmp/other/client/default/key.pem"},
		{"an agent's certificate on Raft's port", "7422", agents, "/var/tmp/agent.key"},
		{"no certificate on the agents' port", "7421", "", ""},
		{"no certificate on Raft's port", "7422", "", ""},
	} {
		// With TLS 1.3 the refusal comes after the client's handshake, so the client stays until the member ends the connection.
		argv := "timeout 20 openssl s_client -ign_eof -tls1_3 -connect " + member + ":" + c.port
		if c.certificate != "" {
			argv += " -cert " + c.certificate + " -key " + c.key
		}
		result := s.on(operator, "sh", "-c", argv+" </dev/null")
		if !strings.Contains(result.Stderr, "alert") {
			t.Errorf("%s is not refused:\n%s%s", c.why, result.Stdout, result.Stderr)
		}
	}
}

func TestAMissingOrBrokenCertificateIsNamed(t *testing.T) {
	s := begin(t)
	ca := s.give(s.lab.Hosts[0].Machine, "/var/lib/berth/agent/tls/ca.pem", "ca.pem")
	broken := s.file("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	const certificate, key = "/etc/berth/client/default/certificate.pem", "/etc/berth/client/default/key.pem"
	s.answers(append(s.client(ca, "/var/tmp/nothing.pem", key), "status"), 1, "/var/tmp/nothing.pem", "next step: ")
	s.answers(append(s.client(ca, broken, key), "status"), 1, broken, "next step: ")
	s.answers(append(s.client(broken, certificate, key), "status"), 1, broken, "next step: ")

	agent := s.lab.Hosts[0]
	s.must(agent.StopAgent())
	s.edit(agent.Machine, "/var/lib/berth/agent/tls/agent.pem", func(string) string { return "" })
	s.says(agent.Machine, []string{"berth-agent", "run"}, 1, "/var/lib/berth/agent/tls/agent.pem")

	// The member itself runs on undisturbed: its files are copied for this.
	member := s.lab.Coordinators[2]
	s.says(member.Machine, []string{"sh", "-c", `rm -rf /var/tmp/copy && cp -a /var/lib/berth/coordinator /var/tmp/copy &&
		rm /var/tmp/copy/tls/peer.pem &&
		echo 'data_dir: /var/tmp/copy
listen: {api: ":1420", agent: ":1421", raft: ":1422"}' >/var/tmp/copy.yaml`}, 0)
	s.says(member.Machine, []string{"berth", "coordinator", "run", "--config", "/var/tmp/copy.yaml"}, 1, "/var/tmp/copy/tls/peer.pem")
}

func TestATokenLetsInOnceAndOnlyWhatItIsFor(t *testing.T) {
	s := begin(t)
	operator, host := s.lab.Operator, s.lab.Hosts[0].Machine
	token := func(purpose, name string) string {
		text, err := s.lab.Token(t.Context(), purpose, name)
		s.must(err)
		return text
	}
	member := s.lab.Coordinators[1].Address
	join := func(token, name string) []string {
		return []string{"berth-agent", "join", member, token, "--name", name, "--config", "/var/tmp/spare.yaml", "--data-dir", "/var/tmp/spare"}
	}
	refused := func(m *lab.Machine, argv []string, says ...string) {
		t.Helper()
		s.says(m, argv, 1, says...)
		if left := s.on(m, "sh", "-c", "ls -A /var/tmp/spare /var/tmp/spare.yaml 2>/dev/null").Stdout; left != "" {
			t.Errorf("a refused machine keeps %s", left)
		}
	}
	before := s.facts()
	refused(host, join(token("agent", "spare"), "another"), `"another"`, `"spare"`, "berth token add")
	refused(host, join(token("agent", "spare"), "spare"), "node1", "UUID", "berth node delete node1") // the host is a node already
	s.must(s.lab.Hosts[0].Stop(lab.Libvirtd))
	refused(host, join(token("agent", "spare"), "spare"), "host UUID", "see to libvirt")
	s.must(s.lab.Hosts[0].StartLibvirtd(t.Context()))
	refused(host, join(token("coordinator", "spare"), "spare"), "--for agent")
	refused(host, join("berth1.agent.nonsense", "spare"), "berth token add")
	refused(operator, []string{
		"berth", "coordinator", "join", member, token("agent", "coord9"), "--name", "coord9",
		"--advertise", operator.Address, "--config", "/var/tmp/spare.yaml", "--data-dir", "/var/tmp/spare",
	}, "--for coordinator")
	if diff := cmp.Diff(before, s.facts()); diff != "" {
		t.Errorf("somebody was let in:\n%s", diff)
	}

	alice := token("operator", "alice")
	login := func(to string) []string {
		return []string{"berth", "login", member, alice, "--name", "alice", "--client-config", to}
	}
	s.says(operator, login("/var/tmp/alice.yaml"), 0, "alice")
	s.says(operator, []string{"berth", "--client-config", "/var/tmp/alice.yaml", "vm", "list"}, 0)
	s.says(operator, login("/var/tmp/mallory.yaml"), 1, "used already", "next step: ")
	if left := s.on(operator, "sh", "-c", "ls /var/tmp/mallory.yaml 2>/dev/null").Stdout; left != "" {
		t.Errorf("the second use of a token has left %s", left)
	}
}
