package lead

import (
	"context"
	"strings"
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
