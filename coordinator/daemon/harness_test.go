package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"berth/coordinator/cli/clientconfig"
	"berth/integration/loopback"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/scrape"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a directory that stands for a machine: its configuration, its data, and what runs on it.
type machine struct {
	t      *testing.T
	dir    string
	config string
	data   string
	client string // configuration of the operator that init made

	stop func() error
	log  *buffer
}

// buffer is a log that can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newMachine(t *testing.T, name string) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{
		t: t, dir: dir, config: filepath.Join(dir, "coordinator.yaml"), data: filepath.Join(dir, "data"),
		client: filepath.Join(dir, "client.yaml"), log: &buffer{},
	}
	m.check(config.Write(m.config, Config{
		Name: name, DataDir: m.data, Advertise: "127.0.0.1",
		Listen: Listen{API: freeAddress(t), Agent: freeAddress(t), Raft: freeAddress(t), Console: scrape.Off}, Stability: time.Second,
		Metrics: scrape.Config{Listen: scrape.Off},
	}, 0o644))
	t.Cleanup(func() { m.halt() })
	return m
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func (m *machine) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) init() Made {
	m.t.Helper()
	made, err := Init(m.t.Context(), InitOptions{ConfigPath: m.config, ClientConfig: m.client})
	m.check(err)
	return made
}

func (m *machine) load() Config {
	m.t.Helper()
	c, err := LoadConfig(m.config)
	m.check(err)
	return c
}

// run runs the coordinator until halt. It returns what Run returned if that is at once.
func (m *machine) run() {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	c := m.load()
	go func() {
		ended <- Run(ctx, c, hclog.New(&hclog.LoggerOptions{Output: m.log, Level: hclog.Info}))
	}()
	m.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(30 * time.Second):
			return fmt.Errorf("it did not stop in 30 s")
		}
	})
}

func (m *machine) halt() {
	m.t.Helper()
	if m.stop == nil {
		return
	}
	if err := m.stop(); err != nil {
		m.t.Errorf("the coordinator did not stop well: %v", err)
	}
	if m.t.Failed() {
		m.t.Logf("log of %s:\n%s", m.config, m.log)
	}
	m.stop = nil
}

// operator speaks to the coordinator at an address with the certificate that init made here.
func (m *machine) operator(address string) berthv1connect.BerthServiceClient {
	m.t.Helper()
	loaded, err := clientconfig.Load(m.client)
	m.check(err)
	context, _, err := loaded.Context("", m.client)
	m.check(err)
	if address == "" {
		address = context.Coordinators[0]
	}
	settings, err := pki.ClientConfig(context.Files(), pki.RolePeer)
	m.check(err)
	client := rpc.NewHTTPClient(settings)
	m.t.Cleanup(client.CloseIdleConnections)
	return berthv1connect.NewBerthServiceClient(client, "https://"+address)
}

// status waits until the cluster has a leader and everything else that is wanted of it.
func (m *machine) status(address string, good func(*berthv1.StatusResponse) bool) *berthv1.StatusResponse {
	m.t.Helper()
	client := m.operator(address)
	var last string
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		answer, err := client.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		cancel()
		if err == nil && good(answer.Msg) {
			return answer.Msg
		}
		last = fmt.Sprint(answer, err)
	}
	m.t.Fatalf("not in time; the last status was %s", last)
	return nil
}

func (m *machine) token(request *berthv1.CreateTokenRequest) string {
	m.t.Helper()
	answer, err := m.operator("").CreateToken(m.t.Context(), connect.NewRequest(request))
	m.check(err)
	return answer.Msg.GetToken()
}

func led(*berthv1.StatusResponse) bool { return true }

func (m *machine) files() map[string]os.FileMode {
	m.t.Helper()
	found := make(map[string]os.FileMode)
	m.check(filepath.WalkDir(m.data, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(m.data, path)
			found[name] = info.Mode().Perm()
		}
		return err
	}))
	return found
}

func (m *machine) now() time.Time { return time.Now() }
