package consensus

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"berth/coordinator/seal"
	"berth/coordinator/state"
)

func TestAStoppedStoreIsInspectedAsAWhole(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	if _, err := Inspect(p.cfg.DataDir, p.cfg.Logger); !errors.Is(err, ErrNoStore) {
		t.Fatalf("a store that is not there: %v", err)
	}
	p.bootstrap()
	leader := team{p}.leader()
	for i := range 5 {
		leader.mustPropose(enrol(fmt.Sprint("n", i)))
	}
	if err := leader.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	leader.mustPropose(enrol("after"))
	if _, err := Inspect(p.cfg.DataDir, p.cfg.Logger); !errors.Is(err, ErrInUse) {
		t.Errorf("a store that is in use: %v", err)
	}
	eventually(t, "the level is raised", func() bool { return p.store.Snapshot().FeatureLevel() == state.FeatureLevel })
	want := p.store.Snapshot()
	p.kill()

	found, err := Inspect(p.cfg.DataDir, p.cfg.Logger)
	if err != nil {
		t.Fatal(err)
	}
	if found.State.Hash() != want.Hash() || found.State.Index() != want.Index() || found.Term == 0 || len(found.Snapshots) != 1 ||
		len(found.Members) != 1 || !found.Members[0].Voter || found.Commands < 6 || found.Last < want.Index() || found.LogSize == 0 {
		t.Errorf("found %+v at index %d, want index %d", found, found.State.Index(), want.Index())
	}

	files, err := filepath.Glob(filepath.Join(p.cfg.DataDir, "snapshots", "*", "state.bin"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	flip(t, files[0])
	if _, err := Inspect(p.cfg.DataDir, p.cfg.Logger); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged snapshot: %v", err)
	}
}

// flip changes a bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACompactedLogIsTheSameAndSmaller(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	leader := team{p}.leader()
	large := enrol("large")
	random, filler := rand.New(rand.NewPCG(1, 2)), make([]byte, 1_000_000)
	for i := range filler {
		filler[i] = byte(random.Uint32())
	}
	large.Meta = map[string]string{"filler": hex.EncodeToString(filler)} // of which packing leaves half
	index := leader.mustPropose(large).Index
	if _, _, err := Compact(p.cfg.DataDir); !errors.Is(err, ErrInUse) {
		t.Errorf("a log in use: %v", err)
	}
	p.kill()
	logs, err := openBolt(p.cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	last, err := logs.LastIndex()
	if err == nil {
		err = errors.Join(logs.DeleteRange(index, last), logs.Close()) // its room is kept
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := Inspect(p.cfg.DataDir, p.cfg.Logger)
	if err != nil {
		t.Fatal(err)
	}
	before, after, err := Compact(p.cfg.DataDir)
	if err != nil || after >= before {
		t.Fatalf("from %v to %v, %v", before, after, err)
	}
	got, err := Inspect(p.cfg.DataDir, p.cfg.Logger)
	if err != nil || got.State.Hash() != want.State.Hash() || got.Last != want.Last || got.First != want.First || got.Term != want.Term {
		t.Errorf("compacted: %+v, %v; before: %+v", got, err, want)
	}
	info, err := os.Stat(filepath.Join(p.cfg.DataDir, storeFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	p.start()
	team{p}.leader().mustPropose(enrol("later"))
}

func TestOneOfThreeGoesOnAloneAndTheStateIsQuarantined(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	leader.mustPropose(enrol("kept"))
	all.agree()
	last := all.others(leader)[0]
	if err := Recover(last.cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("recovered while it runs: %v", err)
	}
	for _, p := range all {
		p.kill()
	}
	foreign := last.cfg
	foreign.ClusterID = "c2"
	if err := Recover(foreign); !errors.Is(err, ErrForeign) {
		t.Errorf("recovered as another cluster: %v", err)
	}
	if err := Recover(last.cfg); err != nil {
		t.Fatal(err)
	}
	last.start()
	team{last}.leader().mustPropose(enrol("later"))
	x := last.store.Snapshot()
	if _, kept := x.Node("kept"); !kept || x.Meta(state.MetaQuarantine) == "" {
		t.Errorf("kept %v, quarantine %q", kept, x.Meta(state.MetaQuarantine))
	}
	if servers := last.Configuration(); len(servers) != 1 || servers[0].ID != last.cfg.MemberID || !servers[0].Voter {
		t.Errorf("the members are %+v", servers)
	}
	// And over a restart.
	last.kill()
	found, err := Inspect(last.cfg.DataDir, last.cfg.Logger)
	if err != nil {
		t.Fatal(err)
	}
	if _, later := found.State.Node("later"); !later {
		t.Error("what was written afterwards is gone")
	}
}

func TestADamagedStoreIsNotRecovered(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	leader := team{p}.leader()
	leader.mustPropose(enrol("n1"))
	eventually(t, "the cluster's ID", func() bool { return p.store.Snapshot().Meta(state.MetaClusterID) != "" })
	if err := leader.raft.Load().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	p.kill()
	files, err := filepath.Glob(filepath.Join(p.cfg.DataDir, "snapshots", "*", "state.bin"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	flip(t, files[0])
	if err := Recover(p.cfg); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestAMemberWhoseStoreIsLostGoesOnFromABackup(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	leader := team{p}.leader()
	leader.mustPropose(enrol("kept"))
	eventually(t, "the cluster's ID", func() bool { return p.store.Snapshot().Meta(state.MetaClusterID) != "" })
	var backup bytes.Buffer
	if err := leader.SaveSnapshot(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	leader.mustPropose(enrol("since"))
	if _, err := Rebuild(p.cfg, bytes.NewReader(backup.Bytes()), false); !errors.Is(err, ErrInUse) {
		t.Errorf("rebuilt while it runs: %v", err)
	}
	term := p.Term()
	p.kill()
	foreign := p.cfg
	foreign.ClusterID = "c2"
	if _, err := Rebuild(foreign, bytes.NewReader(backup.Bytes()), false); !errors.Is(err, ErrForeign) {
		t.Errorf("rebuilt as another cluster: %v", err)
	}
	if _, err := Rebuild(p.cfg, bytes.NewReader(backup.Bytes()[:backup.Len()/2]), true); !errors.Is(err, seal.ErrChanged) {
		t.Errorf("rebuilt from half a backup: %v", err)
	}
	if found, err := Inspect(p.cfg.DataDir, p.cfg.Logger); err != nil || found.Term != term {
		t.Fatalf("a refusal has changed the store: %+v, %v", found, err)
	}

	if err := os.WriteFile(filepath.Join(p.cfg.DataDir, storeFile), []byte("lost"), 0o600); err != nil {
		t.Fatal(err)
	}
	aside, err := Rebuild(p.cfg, &backup, false)
	if err != nil || filepath.Dir(aside) != filepath.Dir(p.cfg.DataDir) {
		t.Fatalf("%q, %v", aside, err)
	}
	if lost, err := os.ReadFile(filepath.Join(aside, storeFile)); err != nil || string(lost) != "lost" {
		t.Errorf("the old store is %q, %v", lost, err)
	}
	p.start()
	team{p}.leader().mustPropose(enrol("later"))
	x := p.store.Snapshot()
	_, kept := x.Node("kept")
	_, since := x.Node("since")
	if !kept || since || x.Meta(state.MetaQuarantine) == "" || p.Term() < term+termJump {
		t.Errorf("kept %t, since %t, quarantine %q, term %d after %d", kept, since, x.Meta(state.MetaQuarantine), p.Term(), term)
	}
	p.kill()
	found, err := Inspect(p.cfg.DataDir, p.cfg.Logger)
	if err != nil {
		t.Fatal(err)
	}
	if _, later := found.State.Node("later"); !later || len(found.Members) != 1 {
		t.Errorf("after a restart: %+v", found)
	}
}
