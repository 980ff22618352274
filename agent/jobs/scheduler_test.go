package jobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitingEndsByWhatComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := realTime{}, time.Now()
		if delivered, err := s.Wait(t.Context(), nil, time.Minute); delivered || err != nil || time.Since(began) != time.Minute {
			t.Errorf("a minute: %t, %v after %s", delivered, err, time.Since(began))
		}
		ended := make(chan struct{})
		s.Go(func() {
			time.Sleep(time.Second)
			close(ended)
		})
		if delivered, err := s.Wait(t.Context(), ended, 0); !delivered || err != nil || time.Since(began) != 61*time.Second {
			t.Errorf("until it ended: %t, %v after %s", delivered, err, time.Since(began))
		}
		ctx, cancel := s.Limit(t.Context(), time.Hour)
		defer cancel()
		if delivered, err := s.Wait(ctx, nil, 0); delivered || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("past the limit: %t, %v", delivered, err)
		}
	})
}
