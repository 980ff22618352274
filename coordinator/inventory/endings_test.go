package inventory

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// gone is a domain that is not there any more, and how it ended.
func gone(uuid string, ended, watched float64, whole bool) *berthv1.Domain {
	return &berthv1.Domain{
		Uuid: uuid, State: berthv1.DomainState_DOMAIN_STATE_ABSENT, EndedHere: true,
		Ending: &berthv1.Ending{EndedSeconds: ended, WatchedSeconds: watched, Whole: whole, Cause: berthv1.EndingCause_ENDING_CAUSE_PANICKED},
	}
}

// What an agent has seen of a guest's end is kept until it says otherwise: with an inventory, with a change, or in another life.
func TestHowGuestsEndedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		known := func() map[string]model.Ending { return store.Facts("n1", time.Now()).Endings }
		a.inventory(running("u1"), gone("u2", 5, 60, true))
		is := model.Ending{At: time.Now().Add(-5 * time.Second), RanSince: time.Now().Add(-time.Minute), Whole: true, Cause: model.CausePanicked}
		if facts := store.Facts("n1", time.Now()); len(facts.Endings) != 1 || facts.Endings["u2"] != is || len(facts.Domains) != 1 {
			t.Errorf("listed %+v", facts)
		}
		before := known()
		time.Sleep(time.Second)
		a.change("stopped", gone("u1", 0, 30, false))
		if one := known()["u1"]; len(known()) != 2 || !one.At.Equal(time.Now()) || one.Whole || time.Since(one.RanSince) != 30*time.Second {
			t.Errorf("after a change: %+v", known())
		}
		if len(before) != 1 {
			t.Errorf("what was lent has changed: %+v", before)
		}
		a.change("started", running("u1"))
		if _, still := known()["u1"]; still {
			t.Errorf("of one that runs again: %+v", known())
		}
		a.change("stopped", inState("u1", berthv1.DomainState_DOMAIN_STATE_ABSENT))
		if _, told := known()["u1"]; told {
			t.Errorf("of one whose end nobody saw: %+v", known())
		}
		a.inventory(running("u1"))
		if len(known()) != 0 {
			t.Errorf("what an inventory does not tell any more is known: %+v", known())
		}
	})
}

func TestAnEndingThatCannotBeIsNone(t *testing.T) {
	for name, one := range map[string]*berthv1.Domain{
		"it runs":                {Uuid: "u", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Ending: &berthv1.Ending{WatchedSeconds: 9}},
		"it ended before it ran": gone("u", 10, 5, true),
		"no number":              gone("u", math.NaN(), 5, true),
		"in times to come":       gone("u", -1, 5, true),
		"for ever":               gone("u", 1, math.Inf(1), true),
		"nothing is said":        inState("u", berthv1.DomainState_DOMAIN_STATE_ABSENT),
	} {
		if ending, ended := endingOf(one, time.Now()); ended {
			t.Errorf("%s: %+v", name, ending)
		}
	}
}

// A digest stands for an inventory with its endings, and nothing of them is lost with it.
func TestADigestKeepsTheEndings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30}, Digest: []byte("d1"), Domains: []*berthv1.Domain{gone("u2", 5, 60, true)},
		}}})
		was := store.Facts("n1", time.Now()).Endings["u2"]
		time.Sleep(time.Minute)
		a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_InventoryDigest{
			InventoryDigest: &berthv1.InventoryDigest{Digest: []byte("d1")},
		}})
		if is := store.Facts("n1", time.Now()).Endings["u2"]; is != was || is.At.IsZero() {
			t.Errorf("it was %+v, and is %+v", was, is)
		}
	})
}

// What a node showed last under another boot is kept: it tells whether it was seen without a VM before it booted.
func TestWhatANodeShowedBeforeItBootedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		a.boot = "boot-1/1"
		a.reconnect()
		a.inventory(running("u1"), running("u2"))
		a.change("stopped", inState("u2", berthv1.DomainState_DOMAIN_STATE_ABSENT))
		a.boot = "boot-1/2" // the agent alone has begun anew
		a.reconnect()
		a.inventory(running("u1"))
		if before := store.Facts("n1", time.Now()).Before; before.Boot != "" {
			t.Errorf("in the same boot: %+v", before)
		}
		a.boot = "boot-2/1"
		a.reconnect()
		a.inventory()
		facts := store.Facts("n1", time.Now())
		if facts.Before.Boot != "boot-1" || facts.Before.Domain("u1") == nil || facts.Before.Domain("u2") != nil || len(facts.Domains) != 0 {
			t.Errorf("after a boot: %+v", facts)
		}
		a.boot = "boot-3/1" // it could not list its domains in between
		a.reconnect()
		a.boot = "boot-4/1"
		a.reconnect()
		if before := store.Facts("n1", time.Now()).Before; before.Boot == "boot-3" {
			t.Errorf("what nobody has seen: %+v", before)
		}
	})
}
