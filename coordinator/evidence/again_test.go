package evidence

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// cold are the records of a site whose power is back.
type cold struct {
	Records
	restart string
	off     bool
}

func (c cold) Clusters() []model.Resource {
	set := map[string]string{model.SettingRestart: c.restart}
	return []model.Resource{{Kind: model.KindCluster, Name: model.DefaultCluster, Settings: set}}
}

func (c cold) Node(id string) (model.Node, bool) {
	node := model.Node{ID: id}
	if id == "far" {
		node.Cluster = "far"
	}
	if c.off {
		node.Fencing.Phase = model.FencingProven
	}
	return node, id == "n1"
}

// FAULTS.md, W13. What ran when its host lost its power runs again, with HA and without; what ended for another reason does not.
func TestWhatRanRunsAgain(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		site   cold
		change func(*model.VM)
		ready  bool
	}{
		"its host booted anew":             {ready: true},
		"and the cluster wants those only": {site: cold{restart: "ha"}},
		"with HA they are":                 {site: cold{restart: "ha"}, change: func(vm *model.VM) { vm.HA = true }, ready: true},
		"it wants that itself": {
			site: cold{restart: "ha"}, change: func(vm *model.VM) { vm.Restart = model.RestartAlways }, ready: true,
		},
		"it does not want it":       {change: func(vm *model.VM) { vm.Restart = model.RestartHA }},
		"never, although it has HA": {change: func(vm *model.VM) { vm.HA, vm.Restart = true, model.RestartNever }},
		"its host was proven off":   {change: func(vm *model.VM) { vm.Condition.Kind = model.HolderOff }, ready: true},
		"its host is off still":     {site: cold{off: true}, change: func(vm *model.VM) { vm.Condition.Kind = model.HolderOff }},
		"it ended by itself":        {change: func(vm *model.VM) { vm.Condition.Kind = model.OutOfBand }},
		"nothing is wrong with it":  {change: func(vm *model.VM) { vm.Condition = model.Condition{} }},
		"its host is no member":     {change: func(vm *model.VM) { vm.LastNode = "n2" }},
		"somebody wants it off":     {change: func(vm *model.VM) { vm.Desired = model.Stopped }},
		"its storage is late":       {change: func(vm *model.VM) { vm.Condition.Kind = model.StorageLate }, ready: true},
		"it was tried a moment ago": {change: func(vm *model.VM) {
			vm.Condition.Kind, vm.RestartedAt = model.StorageLate, now.Add(time.Second-storageRest)
		}},
	} {
		vm := model.VM{ID: "v", Desired: model.Running, LastNode: "n1", Condition: model.Condition{Kind: model.HostBooted, Text: "x"}}
		if c.change != nil {
			c.change(&vm)
		}
		if ready, _ := Restartable([]model.VM{vm}, now, Again(c.site)); len(ready) == 1 != c.ready {
			t.Errorf("%s: %t", name, len(ready) == 1)
		}
	}
}
