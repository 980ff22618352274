package daemon

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/consensus"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

func TestInitMakesACluster(t *testing.T) {
	m := newMachine(t, "c1")
	made := m.init()
	files := m.files()
	for _, name := range []string{
		"tls/ca.pem", "tls/ca.key", "tls/peer.pem", "tls/peer.key", "tls/hypervisor-control.pem",
		"tls/hypervisor-data.pem", "cluster.json",
	} {
		if mode, there := files[name]; !there || mode != 0o600 {
			t.Errorf("%s: there %v, mode %o; there are %v", name, there, mode, slices.Sorted(maps.Keys(files)))
		}
	}
	if info, err := os.Stat(m.data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory: %v, %v", info, err)
	}
	who, err := place{m.data}.identity()
	if err != nil || who.Name != "c1" || who.ClusterID != made.ClusterID || who.ID == "" {
		t.Errorf("it is %+v, %v", who, err)
	}
	loaded, err := clientconfig.Load(m.client)
	m.check(err)
	context, name, err := loaded.Context("", m.client)
	if err != nil || name != "default" || context.Coordinators[0] != m.load().Listen.API {
		t.Errorf("the operator's context is %q, %+v, %v", name, context, err)
	}
	if info, err := os.Stat(context.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the operator's key: %v, %v", info, err)
	}

	var said bytes.Buffer
	made.tell(&said)
	for _, line := range []string{
		"next:\n", "berth coordinator run --config " + m.config, "berth --client-config " + m.client + " status",
		"berth --client-config " + m.client + " token add --for agent",
	} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("it does not say %q:\n%s", line, &said)
		}
	}

	_, err = Init(t.Context(), InitOptions{ConfigPath: m.config, ClientConfig: m.client})
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), made.ClusterID) {
		t.Errorf("a second init: %v", err)
	}
	if again := m.files(); !maps.Equal(files, again) {
		t.Errorf("a second init changed the files: %v", again)
	}
}

func TestInitKeepsOtherContexts(t *testing.T) {
	m := newMachine(t, "c1")
	m.check(config.Write(m.client, clientconfig.Config{
		Current: "default", Contexts: map[string]clientconfig.Context{"default": {Coordinators: []string{"elsewhere:7420"}}},
	}, 0o644))
	made := m.init()
	loaded, err := clientconfig.Load(m.client)
	m.check(err)
	if loaded.Contexts["default"].Coordinators[0] != "elsewhere:7420" || made.Context == "default" || loaded.Current != made.Context {
		t.Errorf("the client configuration is %+v", loaded)
	}
}

func TestInitRefusesWhatCouldNotWork(t *testing.T) {
	t.Run("a directory with something in it", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.check(os.MkdirAll(m.data, 0o700))
		m.check(os.WriteFile(filepath.Join(m.data, "precious"), nil, 0o600))
		_, err := Init(t.Context(), InitOptions{ConfigPath: m.config, ClientConfig: m.client})
		if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "precious") {
			t.Errorf("not refused: %v", err)
		}
		if _, err := os.Stat(filepath.Join(m.data, "precious")); err != nil {
			t.Error("what was there is gone")
		}
	})
	t.Run("a name that does not resolve", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.check(config.Write(m.config, Config{Name: "c1", DataDir: m.data, Advertise: "no-such-host.invalid"}, 0o644))
		_, err := Init(t.Context(), InitOptions{ConfigPath: m.config, ClientConfig: m.client})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "no-such-host.invalid") || !strings.Contains(err.Error(), "--advertise") {
			t.Errorf("not refused: %v", err)
		}
		if _, err := os.Stat(m.data); err == nil {
			t.Error("a data directory was made")
		}
	})
	t.Run("a client configuration that cannot be written", func(t *testing.T) {
		m := newMachine(t, "c1")
		folder := filepath.Join(m.dir, "etc")
		m.check(os.MkdirAll(folder, 0o700))
		m.check(os.WriteFile(filepath.Join(folder, "client"), []byte("a file where the certificates' folder has to be"), 0o600))
		_, err := Init(t.Context(), InitOptions{ConfigPath: m.config, ClientConfig: filepath.Join(folder, "client.yaml")})
		if err == nil {
			t.Fatal("not refused")
		}
		if files := m.files(); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
		m.init() // and the next try works
	})
}

func TestRunRefusesWhatCouldNotWork(t *testing.T) {
	run := func(m *machine) error {
		return Run(t.Context(), m.load(), hclog.NewNullLogger())
	}
	t.Run("a machine that has not joined", func(t *testing.T) {
		m := newMachine(t, "c1")
		err := run(m)
		if !errors.Is(err, ErrNotInitialised) || !strings.Contains(err.Error(), "init") || !strings.Contains(err.Error(), "join") {
			t.Errorf("not refused: %v", err)
		}
	})
	t.Run("a member under another name", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.init()
		c := m.load()
		c.Name = "c2"
		if err := Run(t.Context(), c, hclog.NewNullLogger()); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), `"c1"`) {
			t.Errorf("not refused: %v", err)
		}
	})
	t.Run("a port in use", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.init()
		taken := newMachine(t, "other")
		taken.init()
		taken.run()
		taken.status("", led)
		for _, part := range []struct {
			says string
			use  func(mine, theirs *Listen)
		}{
			{"key listen.api", func(mine, theirs *Listen) { mine.API = theirs.API }},
			{"key listen.agent", func(mine, theirs *Listen) { mine.Agent = theirs.Agent }},
			{taken.load().Listen.Raft, func(mine, theirs *Listen) { mine.Raft = theirs.Raft }},
		} {
			c, theirs := m.load(), taken.load().Listen
			part.use(&c.Listen, &theirs)
			err := Run(t.Context(), c, hclog.NewNullLogger())
			if err == nil || !strings.Contains(err.Error(), part.says) || !strings.Contains(err.Error(), "in use") {
				t.Errorf("%s: %v", part.says, err)
			}
		}
	})
	t.Run("a certificate of somebody else", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.init()
		other := newMachine(t, "c2")
		other.init()
		for _, name := range []string{"peer.pem", "peer.key", "ca.pem", "ca.key"} {
			data, err := os.ReadFile(filepath.Join(other.data, "tls", name))
			m.check(err)
			m.check(os.WriteFile(filepath.Join(m.data, "tls", name), data, 0o600))
		}
		if err := run(m); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "peer.pem") {
			t.Errorf("not refused: %v", err)
		}
	})
	t.Run("a certificate that is not there", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.init()
		m.check(os.Remove(filepath.Join(m.data, "tls", "peer.pem")))
		if err := run(m); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "peer.pem") {
			t.Errorf("not refused: %v", err)
		}
	})
	t.Run("an identity cut short", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.init()
		m.check(os.WriteFile(filepath.Join(m.data, "cluster.json"), []byte(`{"cluster_id": "x"`), 0o600))
		if err := run(m); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "cluster.json") {
			t.Errorf("not refused: %v", err)
		}
	})
	t.Run("two at a time", func(t *testing.T) {
		m := newMachine(t, "c1")
		m.init()
		m.run()
		m.status("", led)
		c := m.load()
		c.Listen = Listen{API: freeAddress(t), Agent: freeAddress(t), Raft: freeAddress(t)}
		if err := Run(t.Context(), c, hclog.NewNullLogger()); !errors.Is(err, consensus.ErrInUse) {
			t.Errorf("a second coordinator on the same data: %v", err)
		}
	})
}

func TestCertificateOutOfDate(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	home := place{m.data}
	who, err := home.identity()
	m.check(err)
	authority, err := home.authority()
	m.check(err)
	certificate, _, err := issue(
		authority, pki.Identity{Role: pki.RolePeer, ID: who.ID, Name: who.Name, ClusterID: who.ClusterID}, nil, m.now(),
	)
	m.check(err)
	for name, at := range map[string]func() error{
		"too late":  func() error { return home.checkCertificate(who, m.now().Add(pki.CertificateLife*2)) },
		"too early": func() error { return home.checkCertificate(who, m.now().Add(-pki.CertificateLife)) },
	} {
		if err := at(); !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "berth coordinator delete c1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := home.checkCertificate(who, m.now()); err != nil {
		t.Errorf("today: %v", err)
	}
	m.check(os.WriteFile(home.tls().Certificate, certificate, 0o600))
	if err := home.checkCertificate(who, m.now()); !errors.Is(err, ErrDamaged) {
		t.Errorf("with a key of another certificate: %v", err)
	}
}

// Other accounts of the machine see what is on a command line, and a token for a coordinator gives its reader everything.
func TestACoordinatorJoinsByATokenThatIsOnNoCommandLine(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	m.run()
	m.status("", led)
	token := func(name string) string {
		return m.token(&berthv1.CreateTokenRequest{Purpose: pki.PurposeCoordinator, Name: name}) + "\n"
	}
	file := filepath.Join(m.dir, "token")
	m.check(os.WriteFile(file, []byte(token("c2")), 0o600))
	for name, given := range map[string]struct{ argument, input string }{"c2": {"@" + file, ""}, "c3": {"-", token("c3")}} {
		other := newMachine(t, name)
		out, err := other.verb(given.input, "join", m.load().Listen.API, given.argument, "--config", other.config)
		if err != nil {
			t.Fatalf("%s: %s: %v", name, out, err)
		}
		if who, err := (place{other.data}).identity(); err != nil || who.Name != name {
			t.Errorf("%s is %+v, %v", name, who, err)
		}
	}
}
