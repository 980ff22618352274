package control

import (
	"cmp"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/operation"
)

func TestTheAddressOfAMigrationFollowsFromTheRecord(t *testing.T) {
	for _, c := range []struct{ uri, data, wantHost, wantData string }{
		{"qemu+ext:///system?command=/tmp/evil", "10.9.0.2", "", "10.9.0.2"},
		{"qemu+tcp://somewhere/system", "127.0.0.1", "", ""},
		{"qemu+tls://10.0.0.7:17000/system", "", "10.0.0.7:17000", ""},
		{"qemu+tls://10.0.0.8/system", "", "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			vm := w.running("web1")
			to := other(vm.Holder)
			w.facts.mu.Lock()
			facts := w.facts.nodes[to]
			facts.MigrationURI, facts.MigrationHost, facts.CalledFrom = c.uri, c.data, "10.0.0.7"
			w.facts.nodes[to] = facts
			w.facts.mu.Unlock()
			moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: to, RequestID: "m", Caller: "operator/test"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			want := "qemu+tls://" + cmp.Or(c.wantHost, moved.Operation.TargetName) + "/system"
			orders := w.agents.ordered(operation.ActMigrate)
			if len(orders) != 1 || orders[0].TargetURI != want || orders[0].TargetHost != c.wantData {
				t.Errorf("%s says %q, %q: ordered %+v, want %q, %q", to, c.uri, c.data, orders, want, c.wantData)
			}
		})
	}
}
