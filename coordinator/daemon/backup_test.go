package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/state"
	"berth/shared/buildinfo"
	berthv1 "berth/shared/gen/berth/v1"
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

func TestBackupsAreMadeOnTimeAndTheOldestGo(t *testing.T) {
	dir, store := t.TempDir(), lived(t)
	synctest.Test(t, func(t *testing.T) {
		settings := Backups{Directory: filepath.Join(dir, "backups"), Every: 15 * time.Minute, Keep: 3}
		b := newBackups(settings, store, time.Now, hclog.NewNullLogger())
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
		again := newBackups(settings, store, time.Now, hclog.NewNullLogger())
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
	b := newBackups(Backups{Directory: filepath.Join(dir, "taken"), Every: time.Minute, Keep: 1}, lived(t), time.Now, hclog.NewNullLogger())
	if err := b.take(b.store.Snapshot()); err == nil || b.health().Problem == "" || !b.health().At.IsZero() {
		t.Errorf("%v, told is %+v", err, b.health())
	}
}

func TestABackupThatIsAnotherStateDoesNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.snapshot")
	x := lived(t).Snapshot()
	if err := saveBackup(path, x); err != nil {
		t.Fatal(err)
	}
	if err := checkBackup(path, x); err != nil {
		t.Error(err)
	}
	other := state.NewStore()
	if err := checkBackup(path, other.Snapshot()); !errors.Is(err, errBackup) {
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
	if err := checkBackup(path, x); !errors.Is(err, errBackup) || !errors.Is(err, state.ErrSnapshot) {
		t.Errorf("a flipped bit: %v", err)
	}
}

// verb runs one of the verbs that need no coordinator.
func (m *machine) verb(answer string, words ...string) (string, error) {
	m.t.Helper()
	for _, command := range append(Commands(), SnapshotCommands()...) { // verify is the first one's
		if command.Name() != words[0] {
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
	out, err = m.verb("c1\n", "recover", "--config", m.config, "--from", files[0].path)
	if err != nil || !strings.Contains(
		out, "the old store is in "+filepath.Join(m.data, "raft.before-"),
	) || !strings.Contains(out, "is the only one of cluster "+made.ClusterID+" now") {
		t.Fatalf("%s, %v", out, err)
	}

	// As if an earlier release had run here.
	m.check(os.WriteFile(filepath.Join(m.data, "release"), []byte("0.1"), 0o600))
	m.run()
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
