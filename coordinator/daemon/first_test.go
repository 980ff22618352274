package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/coordinator/cli/clientconfig"
	"berth/shared/config"
)

// bare is a machine on which nothing was set up, and what berth init says on it.
type bare struct {
	*machine
	first
	said bytes.Buffer
}

func newBare(t *testing.T) *bare {
	t.Helper()
	b := &bare{machine: newMachine(t, "c1")}
	b.first = first{
		host: host{
			root: true, wait: 30 * time.Second, listen: tryListen,
			run: func(_ context.Context, name string, arguments ...string) (string, error) {
				return "", fmt.Errorf("not expected: %s %v", name, arguments)
			},
			lookup:  func(context.Context, string) ([]string, error) { return []string{"127.0.1.1"}, nil },
			reached: func() ([]string, error) { return []string{"192.0.2.7"}, nil },
			sudoer:  func() (*user.User, error) { return nil, nil },
		},
		options: InitOptions{ConfigPath: b.config, ClientConfig: b.client},
		out:     &b.said,
	}
	return b
}

func (b *bare) refused(says ...string) {
	b.t.Helper()
	err := b.first.make(b.t.Context())
	for _, text := range says {
		if err == nil || !strings.Contains(err.Error(), text) {
			b.t.Errorf("it does not say %q: %v", text, err)
		}
	}
}

func TestInitRunAgainSaysWhatIsThere(t *testing.T) {
	b := newBare(t)
	b.check(b.first.make(t.Context()))
	if said := b.said.String(); !strings.Contains(said, ": made, with coordinator c1") ||
		!strings.Contains(said, "berth coordinator run --config "+b.config) {
		t.Errorf("it says\n%s", said)
	}
	before, client := b.files(), b.read(b.client)
	b.said.Reset()
	b.check(b.first.make(t.Context()))
	if said := b.said.String(); !strings.Contains(said, ": there already, with this machine as coordinator c1") {
		t.Errorf("run again it says\n%s", said)
	}
	if fmt.Sprint(before) != fmt.Sprint(b.files()) || client != b.read(b.client) {
		t.Error("run again it changed files")
	}
}

func (m *machine) read(path string) string {
	m.t.Helper()
	data, err := os.ReadFile(path)
	m.check(err)
	return string(data)
}

// A machine that lost its power between the coordinator's identity and the operator's certificate.
func TestInitFinishesWhatWasHalfDone(t *testing.T) {
	b := newBare(t)
	b.check(b.first.make(t.Context()))
	b.check(os.RemoveAll(b.client))
	b.check(os.RemoveAll(filepath.Join(filepath.Dir(b.client), "client")))
	b.check(b.first.make(t.Context()))
	b.machine.run()
	b.status("", led)
}

func TestInitRefusesAnInterruptedTry(t *testing.T) {
	b := newBare(t)
	b.check(os.MkdirAll(filepath.Join(b.data, "tls"), 0o700))
	b.refused("tls", "remove what is left of an earlier try", "--data-dir")
}

func TestInitStartsTheServiceAndWaits(t *testing.T) {
	b := newBare(t)
	var ran []string
	b.host.systemd = true
	b.host.run = func(_ context.Context, name string, arguments ...string) (string, error) {
		ran = append(ran, name+" "+strings.Join(arguments, " "))
		b.machine.run()
		return "", nil
	}
	b.first.unitConfig = b.config
	b.check(b.first.make(t.Context()))
	if len(ran) != 1 || ran[0] != "systemctl enable --now berth-coordinator" {
		t.Errorf("it ran %q", ran)
	}
	if said := b.said.String(); !strings.Contains(said, "it answers at 127.0.0.1:") || !strings.Contains(said, "berth node add HOST") {
		t.Errorf("it says\n%s", said)
	}
}

func TestInitTellsWhyTheServiceDoesNotStart(t *testing.T) {
	b := newBare(t)
	b.host.systemd, b.first.unitConfig, b.host.wait = true, b.config, 50*time.Millisecond
	b.host.run = func(_ context.Context, name string, _ ...string) (string, error) {
		if name == "journalctl" {
			return "the disk is full", nil
		}
		return "", nil
	}
	b.refused("does not answer", "the disk is full", "run 'berth init' again")
	b.host.run = func(context.Context, string, ...string) (string, error) {
		return "Unit is masked", errors.New("exit status 1")
	}
	b.refused("does not start", "Unit is masked", "run 'berth init' again")
}

func TestInitRefusesAMachineOnWhichItCouldNotWork(t *testing.T) {
	t.Run("no root", func(t *testing.T) {
		b := newBare(t)
		b.host.root = false
		b.refused("as root", "sudo")
	})
	t.Run("a port in use", func(t *testing.T) {
		b := newBare(t)
		b.host.listen = func(address string) error {
			if address == b.load().Listen.Raft {
				return errors.New("address already in use")
			}
			return nil
		}
		b.refused(b.load().Listen.Raft, "already in use", "listen.raft", b.config)
		if files := b.filesIfAny(); files {
			t.Error("it made a data directory")
		}
	})
	t.Run("several addresses", func(t *testing.T) {
		b := newBare(t)
		c := b.load()
		b.check(config.Write(b.config, Config{Name: c.Name, DataDir: c.DataDir, Listen: c.Listen}, 0o644))
		b.host.reached = func() ([]string, error) { return []string{"192.0.2.7", "198.51.100.7"}, nil }
		b.refused("192.0.2.7, 198.51.100.7", "--advertise 192.0.2.7")
		b.host.reached = func() ([]string, error) { return nil, nil }
		b.refused("no address", "--advertise")
		b.host.reached = func() ([]string, error) { return []string{"192.0.2.7"}, nil }
		b.check(b.first.make(t.Context()))
		if got := b.load().Advertise; got != "192.0.2.7" {
			t.Errorf("the configuration advertises %q", got)
		}
	})
	t.Run("a host name that others can reach", func(t *testing.T) {
		b := newBare(t)
		b.host.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.1.1", "192.0.2.9"}, nil }
		if name, err := b.advertise(t.Context(), "c1.example"); name != "c1.example" || err != nil {
			t.Errorf("it advertises %q, %v", name, err)
		}
	})
}

func (m *machine) filesIfAny() bool {
	_, err := os.Stat(m.data)
	return err == nil
}

func TestInitGivesTheAccountThatCalledSudoAConfiguration(t *testing.T) {
	b := newBare(t)
	home := t.TempDir()
	b.host.sudoer = func() (*user.User, error) {
		return &user.User{Username: "alice", Uid: strconv.Itoa(os.Getuid()), Gid: strconv.Itoa(os.Getgid()), HomeDir: home}, nil
	}
	b.check(b.first.make(t.Context()))
	path := filepath.Join(home, ".config", "berth", "client.yaml")
	loaded, err := clientconfig.Load(path)
	b.check(err)
	context, _, err := loaded.Context("", path)
	b.check(err)
	if info, err := os.Stat(context.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("alice's key: %v, %v", info, err)
	}
	b.client = path // the coordinator lets it in
	b.machine.run()
	b.status("", led)
}
