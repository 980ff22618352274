package domainjobs

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

func TestQuiet(t *testing.T) {
	var q Quiet
	if q.Is("a") {
		t.Error("nobody has been asked")
	}
	q.Set("a", true)
	q.Set("b", true)
	q.Set("b", false)
	if !q.Is("a") || q.Is("b") {
		t.Errorf("got %v", q.known)
	}
	q.Reset()
	if q.Is("a") {
		t.Error("after a reconnect anything may run")
	}
}

// A job keeps the time when it was first seen, and what has changed is told once.
func TestJobsOfOthers(t *testing.T) {
	var o Others
	at := time.Date(2026, 11, 22, 15, 0, 0, 500, time.UTC)
	backup := func() []domxml.Binding { return []domxml.Binding{{Kind: domxml.JobBinding, What: "backup"}} }
	first, changed := o.Take("a", backup(), at)
	if !changed || len(first) != 1 || !first[0].Since.Equal(at.Truncate(time.Second)) {
		t.Errorf("first seen: %+v, changed %t", first, changed)
	}
	again, changed := o.Take("a", backup(), at.Add(time.Hour))
	if changed || again[0] != first[0] {
		t.Errorf("an hour later: %+v, changed %t", again, changed)
	}
	if _, changed := o.Take("a", []domxml.Binding{{Kind: domxml.BlockJobBinding, What: "copy", Name: "vda"}}, at); !changed {
		t.Error("another job is news")
	}
	if _, changed := o.Take("a", nil, at); !changed || len(o.known) != 0 {
		t.Errorf("no job: changed %t, %v kept", changed, o.known)
	}
	o.Take("a", backup(), at)
	o.Take("b", backup(), at)
	if o.Keep([]hypervisor.Domain{{UUID: "b"}}); len(o.known) != 1 {
		t.Errorf("%v is kept of domains that are gone", o.known)
	}
	end := o.Migrating("a")
	if !o.Migrates("a") || o.Migrates("b") {
		t.Error("the agent moves a")
	}
	if end(); o.Migrates("a") {
		t.Error("the move has ended")
	}
}

// A job may begin while its domain is asked, and nothing tells of it later.
func TestADomainIsNotQuietForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Quiet
		q.Set("a", true)
		time.Sleep(quietLasts - time.Second)
		if !q.Is("a") {
			t.Error("it is asked with every listing")
		}
		time.Sleep(time.Second)
		if q.Is("a") {
			t.Error("it is never asked again")
		}
	})
}
