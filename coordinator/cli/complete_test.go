package cli_test

import (
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/shared/pki"
)

func TestCompletionAsksTheCluster(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for line, want := range map[string]string{
		"vm show ":                    "db1\nweb1\nweb2\n",
		"node show ":                  "node1\nnode2\nnode3\n",
		"vm migrate web1 --to ":       "node1\nnode2\nnode3\n",
		"vm migrate web1 ":            "db1\nweb2\n",
		"node maintenance node1 ":     "on\noff\n",
		"coordinator delete ":         "coord1\ncoord2\ncoord3\n",
		"decision show ":              "last\n3nqk7d2m0d9zz\tstart big\n3nqk7d2m0d1ab\tstart web1\n",
		"context use ":                "lab\n",
		"cluster show ":               "default\nprod\n",
		"vdc add v1 --cluster ":       "default\nprod\n",
		"cluster set prod --storage ": "shared\nlocal\n",
		"cluster set prod --unset ": "policy\npod\nstorage\nram-ratio\ncpu-ratio\noverhead\ninitial-msav\nfinal-msav\nmsav-steps\n" +
			"customer-key-scope\nphysical-ledger\nenforcement\nbalancing\nbalance-window\ncooldown\n" +
			"parallel-moves\nparallel-starts\nspare-nodes\npromise-vcpus\nupgrade-mode\n" +
			"fence-after\nfence-sick-after\nrestart\ncpu-model\n" +
			"permit\nimage-folders\ncapacity-threshold\n",
		"vm add web9 --vdc ":      "acme-prod\nacme-test\n",
		"vm start web9 --attach ": "web-1-root\ndb-1-root\n",
		"vm why-not web1 --node ": "node1\nnode2\nnode3\n",
		"key compiled ":           "db1\nweb1\nweb2\n",
		"key set ": "cluster/default\ncluster/prod\nbilling-entity/reseller\ncustomer/acme\nvdc/acme-prod\n" +
			"vdc/acme-test\ndisk/web-1-root\ndisk/db-1-root\nimage/debian\nvm/db1\nvm/web1\nvm/web2\n",
		"key list n": "cluster/default\ncluster/prod\nbilling-entity/reseller\ncustomer/acme\nvdc/acme-prod\n" +
			"vdc/acme-test\ndisk/web-1-root\ndisk/db-1-root\nimage/debian\nvm/db1\nvm/web1\nvm/web2\nnode/node1\n" +
			"node/node2\nnode/node3\n",
		"key set vm/web1 A=1 --class ": "system\nbilling-entity\ncustomer\n",
		"decision replay ":             "last\n3nqk7d2m0d9zz\tstart big\n3nqk7d2m0d1ab\tstart web1\n",
		"vm start web1 ":               "db1\nweb2\n",
		"vm set web1 --migration ":     "automatic\nmanual\nnever\n",
		"group set ":                   "web\nrack-7\n",
		"group add g --vms-rule ":      "positive\nnegative\ndisabled\n",
		"group set web --add-node ":    "node1\nnode2\nnode3\n",
		"plan show ": "last\n3nqk7d2m0p1ab\trunning drain of node/node1\n" +
			"3nqk7d2m0p2ab\tproposed balance of cluster/default\n3nqk7d2m0p1ab\tdone drain of node/node1\n",
		"policy copy ":                "vm-evenly-distributed\nmine\ndrawn\n",
		"cluster set prod --policy ":  "vm-evenly-distributed\nmine\ndrawn\n",
		"policy set mine --selector ": "rank\npercentage-fixed\npercentage-dynamic\nsum\n",
		"node drain ":                 "node1\nnode2\nnode3\n",
		"token revoke ":               "0a1b2c3d\n9f8e7d6c\n",
		"identity revoke ":            "coordinator/coord1\nnode/node3\noperator/alice\n",
		"token add --for ":            "agent\ncoordinator\noperator\n",
		"vm list --output ":           "table\nwide\njson\nyaml\nname\n",
	} {
		said := w.Run(append([]string{"__complete"}, strings.Split(line, " ")...)...)
		got, _, _ := strings.Cut(said.Out, ":")
		if got != want {
			t.Errorf("berth %s: got %q, want %q", line, got, want)
		}
	}
	nobody, _ := clitest.NewSite(t)
	nobody.Context("lab", pki.RoleOperator, clitest.ClosedAddress(t))
	if said := nobody.Run("__complete", "vm", "show", ""); !strings.HasPrefix(said.Out, ":4") {
		t.Errorf("without a cluster: %q", said.Out)
	}
}
