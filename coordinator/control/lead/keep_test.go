package lead

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestAPanicIsNotTheEndOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		l := New(Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &told})})
		tries, began := 0, time.Now()
		l.Keep(t.Context(), "looking", func(context.Context) {
			if tries++; tries < 8 {
				panic("poison")
			}
		})
		if took := time.Since(began); tries != 8 || took != (5+10+20+40+3*60)*time.Second {
			t.Errorf("%d tries in %s", tries, took)
		}
		if !strings.Contains(told.String(), "poison") || !strings.Contains(told.String(), "keep_test.go") {
			t.Errorf("it is told as %s", told.String())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Keep(ctx, "looking", func(context.Context) { panic("at the end") })
	})
}

// What a loop begins beside itself is as much a part of the leader as the loop.
func TestAPanicBesideALoopIsNotTheEndOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		l := New(Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &told}), Now: time.Now})
		var work sync.WaitGroup
		other := false
		l.Beside(&work, "asking a device", func() { panic("poison") })
		l.Beside(&work, "asking another one", func() { other = true })
		work.Wait()
		if !other || !strings.Contains(told.String(), "poison") || !strings.Contains(told.String(), `part="asking a device"`) {
			t.Errorf("the other one %t, told %s", other, told.String())
		}
		err := Survive(l.Logger, "asking", func() error { panic("poison") })
		if !errors.Is(err, ErrPanicked) || !strings.Contains(err.Error(), "asking has panicked") {
			t.Errorf("the error is %v", err)
		}
		own := errors.New("no answer")
		if err := Survive(l.Logger, "asking", func() error { return own }); !errors.Is(err, own) {
			t.Errorf("an error becomes %v", err)
		}
		began := time.Now()
		l.Rest() // nobody leads
		ctx, cancel := context.WithCancel(t.Context())
		l.Begin(ctx, 1)
		l.Rest()
		if took := time.Since(began); took != mostKeepPause {
			t.Errorf("it rests for %s", took)
		}
		cancel()
		l.Rest()
		if took := time.Since(began); took != mostKeepPause {
			t.Errorf("it rests for %s after the end of the leadership", took)
		}
	})
}
