package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// FAULTS.md, W5. One node locks a file in a shared pool and another one looks, and what they find stands behind every restart there.
func TestLocksOfASharedPoolAreTried(t *testing.T) {
	for name, tc := range map[string]struct {
		look, hold error
		locked     bool
		verdict    evidence.LockVerdict
		why        string
		released   bool
	}{
		"they reach": {locked: true, verdict: evidence.LocksReach, released: true},
		"they stay":  {verdict: evidence.LocksStay, why: "did not see that", released: true},
		"it is not shared": {
			look: &lead.TaskError{Code: operation.NoVolume}, verdict: evidence.NotShared, why: "did not see a file", released: true,
		},
		"nobody may look":    {look: errors.New("it may not read it"), why: "it may not read it", released: true},
		"there is no room":   {hold: &lead.TaskError{Code: operation.NoSpace, Message: "no room"}, why: "no room"},
		"an agent is behind": {hold: &lead.TaskError{Code: operation.Unsupported, Message: "upgrade it"}, why: "upgrade it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer func() { w.lose() }()
				pool := model.Resource{
					Kind: model.KindPool, ID: "p1", Name: "nfs", Settings: map[string]string{model.SettingScope: string(model.PoolShared)},
				}
				nodes := w.Store.Snapshot().Nodes()
				held := map[string]bool{}
				w.agents.mu.Lock()
				w.agents.lock = func(node string, order *lead.TryLock) (bool, error) {
					if order.Pool != "nfs" || !strings.HasPrefix(order.Volume, "berth-lock-") {
						t.Errorf("tried is %+v", order)
					}
					switch order.Step {
					case lead.HoldLock:
						held[order.Volume] = tc.hold == nil
						return false, tc.hold
					case lead.ReleaseLock:
						delete(held, order.Volume)
						return false, nil
					default:
						if !held[order.Volume] || strings.HasSuffix(order.Volume, node) {
							t.Errorf("%s looks at %s: %v", node, order.Volume, held)
						}
						return tc.locked, tc.look
					}
				}
				w.agents.mu.Unlock()
				w.put(pool)
				for _, node := range nodes {
					w.facts.change(node.ID, func(f *model.NodeFacts) { f.Pools = []model.PoolFacts{{Name: "nfs", Active: true}} })
				}
				time.Sleep(time.Duration(len(nodes)+1) * 10 * time.Second)
				snapshot := w.Store.Snapshot()
				locks := w.PoolLocks(snapshot, &pool)
				if locks.Verdict != tc.verdict || !strings.Contains(locks.Why, tc.why) || locks.Tried != len(nodes) || locks.Nodes != len(nodes) {
					t.Errorf("found is %+v", locks)
				}
				if tc.released && len(held) > 0 {
					t.Errorf("held are %v", held)
				}
			})
		})
	}
}
