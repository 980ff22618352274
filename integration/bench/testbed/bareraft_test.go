package testbed

import "testing"

// A twin that did not replicate would make every comparison look bad, one that did not sync would make it look worse.
func TestTheBareTwinCommitsOnAllMembers(t *testing.T) {
	for _, secure := range []bool{false, true} {
		b, err := RaiseBare(t.TempDir(), BareEntry, secure)
		if err != nil {
			t.Fatalf("secure %v: %v", secure, err)
		}
		for range 5 {
			if took, err := b.Propose(); err != nil || took <= 0 {
				t.Errorf("secure %v: took %v, %v", secure, took, err)
			}
		}
		if err := b.leader.Barrier(0).Error(); err != nil {
			t.Error(err)
		}
		last := b.leader.AppliedIndex()
		stored := 0
		for _, store := range b.stores {
			if index, err := store.LastIndex(); err == nil && index+1 >= last {
				stored++
			}
		}
		if stored < 2 {
			t.Errorf("secure %v: %d members have stored index %d", secure, stored, last)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
