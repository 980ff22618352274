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
	first := o.Take("a", backup(), at)
	if len(first) != 1 || !first[0].Since.Equal(at.Truncate(time.Second)) || !o.Tell("a") || o.Tell("a") {
		t.Errorf("first seen: %+v", first)
	}
	at = at.Add(time.Hour)
	if again := o.Take("a", backup(), at); again[0] != first[0] || o.Tell("a") {
		t.Errorf("an hour later: %+v", again)
	}
	if o.Take("a", []domxml.Binding{{Kind: domxml.BlockJobBinding, What: "copy", Name: "vda"}}, at); !o.Tell("a") {
		t.Error("another job is news")
	}
	if o.Take("a", nil, at.Add(-time.Second)); len(o.known) != 1 || o.Tell("a") {
		t.Error("an answer from before the job makes it forgotten")
	}
	if o.Heard("c", at); len(o.Due(at)) != 2 || len(o.Due(at.Add(time.Minute))) != 1 {
		t.Errorf("%v are looked at", o.Due(at))
	}
	// Whoever lists the domains takes it in first. It is news to those that hear events all the same.
	if o.Take("a", nil, at); len(o.known) != 0 || len(o.Due(at)) != 1 || !o.Tell("a") || o.Tell("a") || len(o.Due(at)) != 0 {
		t.Errorf("no job: %v kept, %v told", o.known, o.Due(at))
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

// The figures of a migration are kept for an hour, and for one that begins anew they are not those of the last one.
func TestFiguresOfMigrations(t *testing.T) {
	var c Completed
	at := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	c.Put("a", hypervisor.Job{DataTotal: 1}, at)
	c.Put("b", hypervisor.Job{DataTotal: 2}, at.Add(2*keepFinished))
	if _, found := c.Get("a"); found {
		t.Error("they are kept for ever")
	}
	if job, found := c.Get("b"); !found || job.DataTotal != 2 {
		t.Errorf("%t: %+v", found, job)
	}
	c.Drop("b")
	if _, found := c.Get("b"); found {
		t.Error("they are of the move before")
	}
}
