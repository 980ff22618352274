package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/shared/buildinfo"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// lived is a state with something in it.
func lived(t *testing.T) *state.Store {
	t.Helper()
	store := state.NewStore()
	command := state.Command{Key: "k", Kind: "test", Caller: "test", At: time.Now().UTC(), Meta: map[string]string{state.MetaClusterID: "c1"}}
	data, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	store.FSM().Apply(&raft.Log{Index: 7, Type: raft.LogCommand, Data: data})
	return store
}

func sealsOfTest() (seal.Keys, error) { return seal.Keys{{1}}, nil }

func TestBackupsAreMadeOnTimeAndTheOldestGo(t *testing.T) {
	dir, store := t.TempDir(), lived(t)
	synctest.Test(t, func(t *testing.T) {
		settings := Backups{Directory: filepath.Join(dir, "backups"), Every: 15 * time.Minute, Keep: 3}
		b := newBackups(settings, sealsOfTest, store, time.Now, hclog.NewNullLogger())
		if b.health().Every != settings.Every || !b.health().At.IsZero() {
			t.Errorf("before the first one: %+v", b.health())
		}
		go b.run(t.Context())
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		files, err := listBackups(settings.Directory)
		if err != nil || len(files) != 3 {
			t.Fatalf("%+v, %v", files, err)
		}
		for i, file := range files {
			info, err := os.Stat(file.path)
			if err != nil || info.Mode().Perm() != 0o600 || file.index != 7 {
				t.Errorf("%s: %v, %v", file.path, info.Mode(), err)
			}
			if i > 0 && file.at.Sub(files[i-1].at) != settings.Every {
				t.Errorf("%s comes %v after the one before", file.path, file.at.Sub(files[i-1].at))
			}
		}
		if !b.health().At.Equal(files[2].at) || b.health().Problem != "" {
			t.Errorf("told is %+v", b.health())
		}
		again := newBackups(settings, sealsOfTest, store, time.Now, hclog.NewNullLogger())
		if !again.health().At.Equal(files[2].at) {
			t.Error("after a restart the last one is forgotten")
		}
	})
}

func TestABackupThatCannotBeWrittenIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := Backups{Directory: filepath.Join(dir, "taken"), Every: time.Minute, Keep: 1}
	b := newBackups(settings, sealsOfTest, lived(t), time.Now, hclog.NewNullLogger())
	if err := b.take(b.store.Snapshot()); err == nil || b.health().Problem == "" || !b.health().At.IsZero() {
		t.Errorf("%v, told is %+v", err, b.health())
	}
}

func TestABackupThatIsAnotherStateDoesNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.snapshot")
	x := lived(t).Snapshot()
	keys, _ := sealsOfTest()
	if err := saveBackup(path, x, keys); err != nil {
		t.Fatal(err)
	}
	if err := checkBackup(path, x, keys); err != nil {
		t.Error(err)
	}
	other := state.NewStore()
	if err := checkBackup(path, other.Snapshot(), keys); !errors.Is(err, errBackup) {
		t.Errorf("compared with another state: %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkBackup(path, x, keys); !errors.Is(err, errBackup) || !errors.Is(err, seal.ErrChanged) {
		t.Errorf("a flipped bit: %v", err)
	}
}

// verb runs one of the verbs that need no coordinator.
func (m *machine) verb(answer string, words ...string) (string, error) {
	m.t.Helper()
	for _, command := range append(Commands(), SnapshotCommands()...) {
		if command.Name() != words[0] || words[0] == "verify" && strings.Contains(command.Use, "FILE") == strings.HasPrefix(words[1], "-") {
			continue
		}
		var out bytes.Buffer
		command.SetIn(strings.NewReader(answer))
		command.SetOut(&out)
		command.SetErr(&out)
		command.SetArgs(words[1:])
		err := command.ExecuteContext(m.t.Context())
		return out.String(), err
	}
	m.t.Fatalf("there is no verb %s", words[0])
	return "", nil
}

func TestAStoppedCoordinatorIsVerifiedCompactedAndRecovered(t *testing.T) {
	m := newMachine(t, "c1")
	made := m.init()
	m.run()
	m.status("", func(s *berthv1.StatusResponse) bool {
		return len(s.GetMembers()) == 1 && s.GetMembers()[0].BackupAt != nil
	})
	files, err := listBackups(filepath.Join(m.data, "backups"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%+v, %v", files, err)
	}
	if out, err := m.verb("", "verify", "--config", m.config); err == nil {
		t.Errorf("verified while it runs: %s", out)
	}
	m.halt()

	out, err := m.verb("", "verify", "--config", m.config)
	if err != nil || !strings.Contains(
		out, "the store of coordinator c1 of cluster "+made.ClusterID+" is whole",
	) || !strings.Contains(out, "  hash ") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.verb("", "compact", "--config", m.config); err != nil || !strings.Contains(out, "the log of coordinator c1 takes") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.verb("", "list", "--config", m.config); err != nil || !strings.Contains(out, files[0].path) {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.verb("c2\n", "recover", "--config", m.config); !errors.Is(err, ErrDeclined) {
		t.Errorf("the wrong name: %s, %v", out, err)
	}
	if out, err := m.verb("c1\n", "recover", "--config", m.config); err != nil || !strings.Contains(
		out, "is the only one of cluster "+made.ClusterID+" now",
	) {
		t.Errorf("%s, %v", out, err)
	}

	// The store is lost, the backup is not.
	m.check(os.WriteFile(filepath.Join(m.data, "raft", "log.db"), []byte("lost"), 0o600))
	if out, err := m.verb("", "verify", "--config", m.config); err == nil || !strings.Contains(err.Error(), "recover --from FILE") {
		t.Errorf("a damaged store was verified: %s, %v", out, err)
	}
	plain, changed := filepath.Join(m.dir, "plain"), filepath.Join(m.dir, "changed")
	out, err = m.verb("", "verify", files[0].path, "--config", m.config, "--plain", plain)
	if err != nil || !strings.Contains(out, "seal       good") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.verb("", "verify", plain, "--config", m.config); err != nil || !strings.Contains(out, "seal       none") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.verb("", "verify", files[0].path, "--config", filepath.Join(m.dir, "none.yaml")); err != nil ||
		!strings.Contains(out, "seal       not proved") {
		t.Errorf("%s, %v", out, err)
	}
	data, err := os.ReadFile(files[0].path)
	m.check(err)
	data[len(data)-1] ^= 1
	m.check(os.WriteFile(changed, data, 0o600))
	for _, words := range [][]string{
		{"verify", changed, "--config", m.config}, {"recover", "--config", m.config, "--unproved", "--from", changed},
	} {
		if out, err := m.verb("c1\n", words...); !errors.Is(err, seal.ErrChanged) {
			t.Errorf("%v: %s, %v", words, out, err)
		}
	}
	if out, err := m.verb("c1\n", "recover", "--config", m.config, "--from", plain); !errors.Is(err, seal.ErrUnsealed) {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := m.verb("c1\n", "recover", "--config", m.config, "--unproved", "--from", plain); err != nil ||
		!strings.Contains(out, "warning") {
		t.Errorf("a backup of an earlier release: %s, %v", out, err)
	}
	aside, err := filepath.Glob(filepath.Join(m.data, "raft.before-*")) // a second one within a second would have the same name
	m.check(err)
	for _, old := range aside {
		m.check(os.RemoveAll(old))
	}
	out, err = m.verb("c1\n", "recover", "--config", m.config, "--from", files[0].path)
	if err != nil || !strings.Contains(
		out, "the old store is in "+filepath.Join(m.data, "raft.before-"),
	) || !strings.Contains(out, "is the only one of cluster "+made.ClusterID+" now") {
		t.Fatalf("%s, %v", out, err)
	}

	// As if an earlier release had run here.
	m.check(os.WriteFile(filepath.Join(m.data, "release"), []byte("0.1"), 0o600))
	m.run()
	m.admitRoot() // the first backup of a cluster may be of before there are records
	m.status("", led)
	if last, err := os.ReadFile(filepath.Join(m.data, "release")); err != nil || string(last) != buildinfo.Version() {
		t.Errorf("the release that ran is noted as %q, %v", last, err)
	}
	files, err = listBackups(filepath.Join(m.data, "backups"))
	if err != nil || len(files) < 2 || !files[1].before {
		t.Errorf("no backup before the upgrade: %+v, %v", files, err)
	}
	m.halt()
}

// The authority may be replaced, and backups of before are still proved, as long as the folder remembers.
func TestBackupsOfBeforeTheAuthorityWasReplacedAreProved(t *testing.T) {
	home := place{t.TempDir()}
	replace := func() {
		t.Helper()
		authority, err := pki.NewAuthority("c1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		key, err := authority.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		if err := home.saveKeys(nil, nil, authority.CertificatePEM(), key); err != nil {
			t.Fatal(err)
		}
	}
	replace()
	before, err := home.keepSealKeys()
	if err != nil || len(before) != 1 {
		t.Fatalf("%v, %v", before, err)
	}
	if same, err := home.sealKeys(); err != nil || !slices.Equal(same, before) {
		t.Errorf("another key the next time: %v", err)
	}
	replace()
	after, err := home.keepSealKeys()
	if err != nil || len(after) != 2 || after[0] != before[0] || after[1] == before[0] {
		t.Fatalf("%d keys, %v", len(after), err)
	}
	info, err := os.Stat(home.sealFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(home.sealFile(), []byte("rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := home.sealKeys(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file that holds no keys: %v", err)
	}
}
