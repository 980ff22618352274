package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/coordinator/model"
)

// What the last release of feature level 2 has written: its log and snapshot are read by the test of all golden files.
func TestTheConditionsOfFeatureLevel2KeepTheirMeaning(t *testing.T) {
	for _, file := range []string{"snapshot", "backup"} {
		written, err := os.ReadFile(filepath.Join("testdata", "golden", "level-2", file))
		if err != nil {
			t.Fatal(err)
		}
		store, err := Load(bytes.NewReader(written))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, want := range map[string]model.ConditionKind{
			"c0": model.OutOfBand, "c1": model.RunsTwice, "c2": model.RestartRefused, "c3": model.RestartRests, "c4": model.Parked,
			"c5": model.LostMoving, "c6": model.VolumesLeft, "c7": model.HolderOff, "c8": model.NowhereSeen, "c9": model.OtherCondition,
			"c10": model.NoCondition,
		} {
			vm, known := store.Snapshot().VM(name)
			if !known || !vm.Condition.Is(want) || (vm.Condition.Text == "") != (want == model.NoCondition) {
				t.Errorf("%s: %s is %q: %q", file, name, vm.Condition.What(), vm.Condition.Text)
			}
		}
	}
}

func TestTheKindOfAConditionWaitsForItsFeatureLevel(t *testing.T) {
	odd := vm("v1", "web", 1)
	odd.Condition = model.Condition{Kind: model.Parked, About: "o1", Text: "parked: both nodes run it"}
	command := putVM(0, odd)
	encoded := func(level uint32) string {
		readable, err := command.For(level)
		if err != nil {
			t.Fatal(err)
		}
		data, err := readable.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before, after := encoded(ConditionLevel-1), encoded(ConditionLevel)
	if !strings.Contains(before, `"condition":"parked: both nodes run it"`) || strings.Contains(before, "condition_") ||
		strings.Contains(before, `"level"`) {
		t.Errorf("a member of the level before could not read %s", before)
	}
	if !strings.Contains(after, `"condition_kind":"parked","condition_about":"o1"`) || !strings.Contains(after, `"level":3`) {
		t.Errorf("at its level it is %s", after)
	}
	if command.VMs[0].Condition != odd.Condition || command.Level != 0 {
		t.Error("the command itself was changed")
	}
}

func TestACommandKeepsTheLevelThatItNames(t *testing.T) {
	command := RaiseLevel(FeatureLevel + 1)
	readable, err := command.For(1)
	if err != nil {
		t.Fatal(err)
	}
	data, err := readable.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeCommand(data); !errors.Is(err, ErrLevel) {
		t.Errorf("got %v", err)
	}
}
