package command

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"berth/agent/hypervisor"
)

// A libvirtd that has just been installed looks at its QEMUs before it answers anybody. That is waited for, and what it answers is
// not asked again.
func TestAJoinWaitsForTheFirstAnswerOfLibvirtd(t *testing.T) {
	silent := fmt.Errorf("read the node's properties: %w: no answer in time", hypervisor.ErrUnavailable)
	refuses := errors.New("libvirtd has no host UUID")
	for name, tc := range map[string]struct {
		after time.Duration // its answer, counted from the first question
		with  error
		want  error
	}{
		"at once":       {},
		"after a while": {after: 40 * time.Second},
		"never":         {after: time.Hour, want: hypervisor.ErrUnavailable},
		"an error":      {after: 3 * time.Second, with: refuses, want: refuses},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				uuid, err := untilAnswered(t.Context(), firstAnswer, func(context.Context) (string, error) {
					if time.Since(begun) < tc.after {
						time.Sleep(5 * time.Second) // the agent's limit for a question
						return "", silent
					}
					return "u1", tc.with
				})
				if !errors.Is(err, tc.want) || tc.want == nil && (err != nil || uuid != "u1") {
					t.Errorf("%q, %v after %v", uuid, err, time.Since(begun))
				}
				if took := time.Since(begun); took > firstAnswer+10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
