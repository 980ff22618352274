package manual

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hoststat"
	"berth/agent/hypervisor/fake"
	"berth/agent/jobs"
	"berth/agent/profile/recorder"
	"berth/agent/session"
	"berth/agent/tasks"
	"berth/agent/telemetry"
	"berth/integration/loopback"
	"berth/integration/simagent"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	startLimit = 30 * time.Second
	joinLimit  = 30 * time.Second
)

// site is a new cluster of one coordinator, and hypervisors that have not joined it yet.
type site struct {
	folder, work string
	address      string // of the coordinator's API
	wire         *fake.Wire
	hosts        map[string]*fake.Hypervisor
	nodes        sync.WaitGroup
	context      context.Context
}

// build makes the program under test.
func build(t *testing.T, folder string) {
	t.Helper()
	command := exec.Command("go", "build", "-o", filepath.Join(folder, "berth"), "berth/coordinator")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
}

// newSite starts the coordinator. The hypervisors hv1 to hv4 have a pool each, and one that all of them share.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{folder: t.TempDir(), wire: fake.NewWire(), hosts: map[string]*fake.Hypervisor{}}
	s.work = filepath.Join(s.folder, "work")
	if err := os.MkdirAll(s.work, 0o755); err != nil {
		t.Fatal(err)
	}
	build(t, s.folder)
	var cancel context.CancelFunc
	s.context, cancel = context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		s.nodes.Wait()
	})
	var hosts []*fake.Hypervisor
	for _, name := range []string{"hv1", "hv2", "hv3", "hv4"} {
		s.hosts[name] = s.wire.Host(name)
		s.hosts[name].MemoryBytes = 64 << 30 // every VM of the manual finds room on any of them, wherever equals are drawn
		hosts = append(hosts, s.hosts[name])
	}
	s.wire.SharePool("vms", 1<<40, hosts...)
	s.guest(t, "hv1", "old-1")
	s.guest(t, "hv2", "old-2")
	s.image(t, "debian-12.qcow2")

	config := filepath.Join(s.folder, "coordinator.yaml")
	var listen strings.Builder
	listen.WriteString("listen:\n")
	for _, name := range []string{"api", "agent", "raft", "console"} {
		address, err := loopback.Address()
		if err != nil {
			t.Fatal(err)
		}
		if name == "api" {
			s.address = address
		}
		fmt.Fprintf(&listen, "  %s: %s\n", name, address)
	}
	if err := os.WriteFile(config, []byte(listen.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	init := fmt.Sprintf("berth coordinator init --config %s --data-dir %s --client-config %s --advertise 127.0.0.1 --name coord1",
		config, filepath.Join(s.folder, "data"), s.client())
	if out, err := s.sh(init); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(s.folder, "coordinator.log"))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(filepath.Join(s.folder, "berth"), "coordinator", "run", "--config", config)
	run.Stdout, run.Stderr = log, log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait() // of a killed process, always an error
		_ = log.Close()
	})
	s.until(t, startLimit, "berth status")
	return s
}

func (s *site) client() string { return filepath.Join(s.folder, "client.yaml") }

// sh runs a line as a shell on the first coordinator would.
func (s *site) sh(line string) (string, error) {
	ctx, cancel := context.WithTimeout(s.context, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-c", line)
	command.Dir = s.work
	command.Env = append(os.Environ(), "PATH="+s.folder+string(os.PathListSeparator)+os.Getenv("PATH"), "BERTH_CONFIG="+s.client(),
		"HOME="+s.work)
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	return string(out), err
}

func (s *site) until(t *testing.T, limit time.Duration, line string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		out, err := s.sh(line)
		if err == nil {
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("%s: %v after %s\n%s", line, err, limit, out)
		}
	}
}

// guest is a domain that runs on a host before Berth comes.
func (s *site) guest(t *testing.T, host, name string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	xml := fmt.Sprintf(`<domain type='kvm'><name>%s</name><uuid>%s</uuid><memory unit='MiB'>512</memory><vcpu>1</vcpu>`+
		`<os><type arch='x86_64' machine='q35'>hvm</type></os><devices/></domain>`, name, uuid)
	if err := s.hosts[host].Start(s.context, xml); err != nil {
		t.Fatal(err)
	}
}

// image is an empty disk image, whole in itself, as qemu-img makes it.
func (s *site) image(t *testing.T, name string) {
	t.Helper()
	const cluster, size = 1 << 16, 2 << 30
	image := make([]byte, 4*cluster) // header, reference table and block, L1 table
	copy(image, "QFI\xfb")
	for at, value := range map[int]uint32{4: 3, 20: 16, 36: 4, 56: 1, 96: 4, 100: 104} {
		binary.BigEndian.PutUint32(image[at:], value)
	}
	for at, value := range map[int]uint64{24: size, 40: 3 * cluster, 48: cluster, cluster: 2 * cluster} {
		binary.BigEndian.PutUint64(image[at:], value)
	}
	for i := range 4 {
		binary.BigEndian.PutUint16(image[2*cluster+2*i:], 1)
	}
	if err := os.WriteFile(filepath.Join(s.work, name), image, 0o600); err != nil {
		t.Fatal(err)
	}
}

// join makes hosts nodes, as 'berth node add' does over ssh on real ones.
func (s *site) join(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		host, known := s.hosts[name]
		if !known {
			t.Fatalf("the pages add %s, and the site has no such host", name)
		}
		line, err := s.sh("berth token add --for agent -q")
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		folder := filepath.Join(s.folder, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		identity, err := simagent.Enrol(s.context, s.address, strings.Fields(line)[1], name, folder)
		if err != nil {
			t.Fatal(err)
		}
		s.nodes.Go(s.agent(t, host, identity, folder))
	}
	for _, name := range names {
		s.until(t, joinLimit, "berth node list --no-headers | grep -E '^"+name+" +up '")
	}
}

// agent is berth-agent run, with a hypervisor in memory in libvirt's place.
func (s *site) agent(t *testing.T, host *fake.Hypervisor, identity simagent.Identity, folder string) (run func()) {
	t.Helper()
	secure, err := pki.ClientConfig(identity.Files, pki.RolePeer)
	if err != nil {
		t.Fatal(err)
	}
	quiet := hclog.NewNullLogger()
	work, err := jobs.Open(jobs.Config{
		Journal: filepath.Join(folder, "journal.db"), Hypervisor: host, NodeID: identity.NodeID, VirtType: "auto", Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := rpc.NewHTTPClient(secure)
	weeks := recorder.Open(telemetry.NewSampler(host, idle{host, time.Now()}), filepath.Join(folder, "profiles"), identity.NodeID, quiet)
	agent := session.New(session.Config{
		NodeID: identity.NodeID, ClusterID: identity.ClusterID, Incarnation: identity.Name, Version: "manual", Addresses: identity.Addresses,
		Client: client, Hypervisor: host, Sampler: weeks,
		Collector: &telemetry.Collector{
			Hypervisor: host, Identity: hoststat.Identity{HostName: identity.Name, MachineID: identity.HostUUID, BootID: identity.HostUUID},
			MigrationURI: host.URI(), Expected: work.Known,
		},
		Jobs: work,
		Tasks: &tasks.Tasks{
			Hypervisor: host, Refuse: work.Refuse, Discard: work.Discard, EndCrashed: work.EndCrashed, Week: weeks.Week,
			Shared: tasks.NewSharedPools(filepath.Join(folder, "shared.json")), Logger: quiet,
		},
		Logger: quiet,
	})
	return func() {
		_ = agent.Run(s.context) // ends with the context
		_ = work.Close()
		client.CloseIdleConnections()
	}
}

// idle is the operating system of a host that has nothing to do.
type idle struct {
	host  *fake.Hypervisor
	began time.Time
}

func (i idle) Read(ctx context.Context) hoststat.Sample {
	memory, err := i.host.Memory(ctx)
	if err != nil {
		return hoststat.Sample{}
	}
	var none int64
	var load float64
	passed := time.Since(i.began).Seconds()
	return hoststat.Sample{
		At: time.Now(), TotalBytes: &memory.TotalBytes, FreeBytes: &memory.FreeBytes, AvailableBytes: &memory.FreeBytes,
		KSMSavedBytes: &none, Load1: &load, Load5: &load, Load15: &load,
		CPU: &hoststat.CPUTimes{Total: passed, Idle: passed},
	}
}
