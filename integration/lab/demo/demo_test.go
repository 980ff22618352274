package main

import (
	"errors"
	"strings"
	"testing"

	"berth/integration/lab"
)

// Who has seen the demo is told where to look next: at the lab that is up, or how to have one that stays. One that failed is not praised.
func TestItEndsBySayingWhereToLook(t *testing.T) {
	for name, c := range map[string]struct {
		keep   bool
		failed error
		says   []string
		never  string
	}{
		"kept":        {true, nil, []string{"berth console --print", "berth-lab down demo", "demo: 6 VMs started"}, "KEEP=1"},
		"taken down":  {false, nil, []string{"KEEP=1 make demo", "demo: 6 VMs started"}, "berth console"},
		"kept broken": {true, errors.New("no"), []string{"berth console --print", "berth-lab down demo"}, "VMs started"},
	} {
		var out strings.Builder
		d := &demo{
			out: &out, keep: c.keep, started: 6,
			lab: &lab.Lab{Name: labName, Coordinators: []*lab.Coordinator{{}}},
		}
		d.farewell(c.failed)
		for _, text := range c.says {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: it does not say %q:\n%s", name, text, &out)
			}
		}
		if strings.Contains(out.String(), c.never) {
			t.Errorf("%s: it says %q:\n%s", name, c.never, &out)
		}
	}
}
