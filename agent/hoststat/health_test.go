package hoststat

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What hangs, and what fails, is told with since when. When it goes on, that is over.
func TestAHostThatAilsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(t.TempDir())
		hang, fails := make(chan struct{}), errors.New("input/output error")
		h.tries = map[string]*try{
			"a": {do: func() error { <-hang; return nil }}, "b": {do: func() error { return fails }}, "c": {do: func() error { return nil }},
		}
		began := time.Now()
		h.look()
		synctest.Wait()
		if reasons, since := h.Ailing(); len(reasons) != 1 || reasons[0] != "b: input/output error" || !since.Equal(began) {
			t.Errorf("ails %q since %s", reasons, since)
		}
		time.Sleep(probeLimit + time.Second)
		fails = nil
		h.look()
		synctest.Wait()
		if reasons, since := h.Ailing(); len(reasons) != 1 || reasons[0] != "a: no answer within 15s" || !since.Equal(began) {
			t.Errorf("ails %q since %s", reasons, since)
		}
		close(hang)
		synctest.Wait()
		if reasons, since := h.Ailing(); len(reasons) != 0 || !since.IsZero() {
			t.Errorf("ails %q since %s", reasons, since)
		}
	})
}

func TestTheDiskAndThePoolsAreTried(t *testing.T) {
	h := NewHealth(t.TempDir())
	h.Pools(map[string]string{"here": t.TempDir(), "gone": "/does/not/exist"})
	if len(h.tries) != 3 {
		t.Errorf("%d things are tried", len(h.tries))
	}
	for what, one := range h.tries {
		if err := one.do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	h.Pools(nil)
	if len(h.tries) != 1 {
		t.Errorf("%d things are tried", len(h.tries))
	}
	gone := NewHealth("/does/not/exist")
	for _, one := range gone.tries {
		if err := one.do(); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("a directory that is not there: %v", err)
		}
	}
}
