// Package profiles asks nodes what they have measured of a week. Nothing of it is kept by coordinators: it is asked for when somebody
// wants to see it, and a new leader asks the same nodes.
package profiles

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"berth/coordinator/control/lead"
	"berth/coordinator/profile"
)

// Profiles is safe for concurrent use.
type Profiles struct{ *lead.Leader }

// New makes a Profiles.
func New(leader *lead.Leader) *Profiles { return &Profiles{Leader: leader} }

// Week is what nodes tell of the week and the last hour of a VM, or without one of themselves. Silent says of each node that did not tell
// why.
func (p *Profiles) Week(ctx context.Context, nodes []string, vm string) (told profile.Told, silent []string) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
	)
	snapshot := p.Store.Snapshot()
	for _, node := range nodes {
		asking.Go(func() {
			name := lead.NodeName(snapshot, node)
			var done lead.TaskDone
			err := lead.Survive(p.Logger, "asking node "+name+" for a weekly profile", func() (err error) {
				done, err = p.Agents.Perform(limited, node, lead.Task{Profile: &lead.ProfileOf{VM: vm}})
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, fmt.Sprintf("node %s does not tell what it has measured: %v", name, err))
				return
			}
			for _, hour := range done.Profile {
				hour.Node = name
				told.Hours = append(told.Hours, hour)
			}
			for _, minute := range done.Minutes {
				minute.Node = name
				told.Minutes = append(told.Minutes, minute)
			}
		})
	}
	asking.Wait()
	slices.Sort(silent)
	return profile.Told{Hours: profile.Join(told.Hours), Minutes: profile.JoinMinutes(told.Minutes)}, silent
}
