package evidence

import (
	"iter"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// ordered are the records of a site where some VMs are to start after others.
type ordered struct {
	cold
	vms      []model.VM
	starting string
}

func (o ordered) VMs() []model.VM { return o.vms }

func (o ordered) SharedVMs() iter.Seq[*model.VM] { return sharedOf(o.vms) }

func (o ordered) VMsMarked(mark model.Mark) []model.VM { return markedOf(o.vms, mark) }

// moment is one in which all nodes but the silent one show the VMs that they hold.
func (o ordered) moment(silent string) (Moment, func(*model.VM) bool) {
	facts := func(node string) model.NodeFacts {
		f := model.NodeFacts{Liveness: model.Up}
		if node == silent {
			return model.NodeFacts{Liveness: model.Unreachable}
		}
		for _, vm := range o.vms {
			if vm.Holder == node {
				f.Domains = append(f.Domains, model.Domain{UUID: vm.ID, State: model.DomainRunning})
			}
		}
		return f
	}
	return Moment{Records: o, Facts: facts}, Again(o)
}

func (o ordered) LiveOperationOf(vm string) (operation.Operation, bool) {
	return operation.Operation{Kind: operation.Start}, vm == o.starting
}

// A VM that is to start after others waits until they run, as far as they are to run, and not for ever.
func TestARestartWaitsForThoseBeforeIt(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	app := model.VM{
		ID: "a", Name: "app", Desired: model.Running, LastNode: "n1", RestartAfter: []string{"db", "dns"}, Labels: []string{"dns"},
		Condition: model.Condition{Kind: model.HostBooted, Text: "x"},
	}
	for name, c := range map[string]struct {
		change   func(db *model.VM)
		starting string
		silent   string
		waits    bool
	}{
		"the other is not there yet":    {waits: true},
		"the other runs":                {change: func(db *model.VM) { db.Holder = "n1" }},
		"the other is being started":    {change: func(db *model.VM) { db.Holder = "n1" }, starting: "d", waits: true},
		"its node has no power yet":     {change: func(db *model.VM) { db.Holder = "n1" }, silent: "n1", waits: true},
		"nothing starts the other":      {change: func(db *model.VM) { db.Condition.Kind = model.OutOfBand }},
		"the other is never started":    {change: func(db *model.VM) { db.Restart = model.RestartNever }},
		"the other is to be off":        {change: func(db *model.VM) { db.Desired = model.Stopped }},
		"the other has another label":   {change: func(db *model.VM) { db.Labels = []string{"web"} }},
		"the other is of another site":  {change: func(db *model.VM) { db.LastNode = "far" }},
		"one that cannot start is told": {change: func(db *model.VM) { db.Condition.Kind = model.RestartRefused }, waits: true},
	} {
		db := model.VM{ID: "d", Name: "db-1", Desired: model.Running, LastNode: "n1", Labels: []string{"db"}, Condition: app.Condition}
		if c.change != nil {
			c.change(&db)
		}
		site, restarter := ordered{vms: []model.VM{app, db}, starting: c.starting}, Restarter{}
		for after := time.Duration(0); after <= BehindPatience; after += 30 * time.Second {
			free, behind := restarter.Behind([]model.VM{app}, now.Add(after), Ahead(site.moment(c.silent)))
			waits := c.waits && after < BehindPatience
			if len(free) == 1 == waits || len(behind) == 1 != waits {
				t.Errorf("%s, after %s: free %d, behind %v", name, after, len(free), behind)
			}
			const says = "it is started again after db-1 (restart_after db, dns), for which it waits 10m0s at most"
			if text := behind["a"].Text; waits && !strings.HasPrefix(text, says) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// Two that wait for each other begin in the end, and what has waited and was started waits anew when it is lost again.
func TestARestartDoesNotWaitForEver(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	each := []model.VM{
		{ID: "a", Name: "a", Desired: model.Running, LastNode: "n1", Labels: []string{"a"}, RestartAfter: []string{"b"}, HA: true},
		{ID: "b", Name: "b", Desired: model.Running, LastNode: "n1", Labels: []string{"b"}, RestartAfter: []string{"a"}, HA: true},
	}
	site, restarter := ordered{vms: each}, Restarter{}
	looked := time.Duration(0)
	free := func(ready []model.VM, at time.Duration) (count int) {
		for ; looked <= at; looked += 10 * time.Second {
			all, _ := restarter.Behind(ready, now.Add(looked), Ahead(site.moment("")))
			count = len(all)
		}
		return count
	}
	for _, c := range []struct {
		ready []model.VM
		at    time.Duration
		want  int
	}{
		{each, 0, 0},
		{each, BehindPatience - 10*time.Second, 0},
		{each, BehindPatience, 2},
		{nil, BehindPatience + 10*time.Second, 0},
		{each, BehindPatience + 20*time.Second, 2}, // its storage was late
		{nil, BehindPatience + time.Hour, 0},
		{each, BehindPatience + time.Hour + 10*time.Second, 0},
	} {
		if got := free(c.ready, c.at); got != c.want {
			t.Errorf("after %s %d are free, want %d", c.at, got, c.want)
		}
	}
}
