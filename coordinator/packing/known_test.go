package packing

import (
	"bytes"
	"testing"
)

func TestAnEntryIsKnownByItsMemoryAndOnce(t *testing.T) {
	var known Known[string]
	entry := []byte("an entry")
	if _, found := known.Take(entry); found {
		t.Error("an entry is known that nobody has kept")
	}
	forget := known.Keep(entry, "what it holds")
	if _, found := known.Take(bytes.Clone(entry)); found {
		t.Error("the same bytes elsewhere are taken for it")
	}
	if holds, found := known.Take(entry); !found || holds != "what it holds" {
		t.Errorf("it holds %q, %v", holds, found)
	}
	if _, found := known.Take(entry); found {
		t.Error("it is given twice")
	}
	forget()
	known.Keep(entry, "again")()
	if _, found := known.Take(entry); found || len(known.entries) > 0 {
		t.Error("it is not forgotten")
	}
}
