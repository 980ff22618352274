package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command of a release that does not exist yet: the level is the only thing in it that can be read.
func TestACommandOfALaterReleaseNamesTheLevelThatItNeeds(t *testing.T) {
	future, err := os.ReadFile(filepath.Join("testdata", "future-command"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeCommand(bytes.TrimSpace(future))
	if !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), "it needs level 1000, this release goes up to 2") {
		t.Errorf("got %v", err)
	}
	if _, err := DecodeCommand([]byte("\x01" + `{"key":"k","quota":{}}`)); !errors.Is(err, ErrDecode) {
		t.Errorf("an unknown field without a level: %v", err)
	}
}

func TestTheFeatureLevelIsOneUntilItIsRaised(t *testing.T) {
	m := newMember(t)
	if got := m.store.Snapshot().FeatureLevel(); got != 1 {
		t.Errorf("a new state has level %d", got)
	}
	m.stored(RaiseLevel(FeatureLevel))
	if got := m.store.Snapshot().FeatureLevel(); got != FeatureLevel {
		t.Errorf("raised to %d, it is %d", FeatureLevel, got)
	}
}

func TestAStateOfALaterReleaseIsNotRestored(t *testing.T) {
	m := newMember(t)
	later := RaiseLevel(FeatureLevel + 1)
	later.Level = 0 // as that release would apply it
	m.stored(later)
	_, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if !errors.Is(err, ErrSnapshot) || !errors.Is(err, ErrLevel) {
		t.Errorf("got %v", err)
	}
}
