package model

import "testing"

// The texts are those of records that were written up to feature level 2. Both columns stay as they are for ever.
func TestAConditionOfAnEarlierReleaseHasTheKindThatItsTextMeant(t *testing.T) {
	for text, want := range map[string]ConditionKind{
		"": NoCondition,
		"out of band: it stopped on alpha, and not by Berth: 'berth vm start web' starts it": OutOfBand,
		"runs twice: on alpha (epoch 3, its holder) and beta (epoch 2)":                      RunsTwice,
		"it cannot be restarted: no node fits":                                               RestartRefused,
		"it was restarted 3 times within minutes, and is gone again":                         RestartRests,
		"parked: both nodes run it":                                                          Parked,
		"lost during a migration: neither node shows it any more":                            LostMoving,
		"on beta, where it was, the volume berth-r7.qcow2 of pool fast may be left":          VolumesLeft,
		"its node alpha is proven to be off (fenced by fence_ipmilan)":                       HolderOff,
		"it ran when the backup was made, and no node shows it now":                          NowhereSeen,
		"a volume may be left":                 OtherCondition,
		"said of it: out of band: it is there": OtherCondition,
	} {
		if got := (Condition{Text: text}).What(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestTheTextOfAConditionThatHasAKindSaysNothing(t *testing.T) {
	c := Condition{Kind: Parked, About: "o1", Text: "runs twice: and is called otherwise"}
	if !c.Is(OutOfBand, Parked) || c.Is(RunsTwice) || c.Is() || c.Is(NoCondition) {
		t.Errorf("%+v is %q", c, c.What())
	}
	if !(Condition{}).Is(NoCondition) {
		t.Error("no condition is one")
	}
}

// What is kept as text alone while a member of an earlier release is there is still the same: else it would be written and told
// again at every look.
func TestAConditionIsTheSameWithoutItsKind(t *testing.T) {
	now := Condition{Kind: OutOfBand, About: "n1", Text: "out of band: it is paused"}
	if kept := now.TextOnly(); !kept.Same(now) || !now.Same(kept) || kept.Kind != "" || kept.About != "" {
		t.Errorf("%+v is not %+v", kept, now)
	}
	for _, other := range []Condition{{}, {Kind: RunsTwice, Text: now.Text}, {Kind: OutOfBand, Text: "out of band: it is gone"}} {
		if now.Same(other) {
			t.Errorf("%+v is the same as %+v", other, now)
		}
	}
}
