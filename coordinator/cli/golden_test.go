package cli_test

import (
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// goldenCommands are what is run, by the name of the file that has what it prints.
func goldenCommands() map[string][]string {
	return map[string][]string{
		"status":            {"status"},
		"status-json":       {"status", "-o", "json"},
		"inventory-ansible": {"inventory", "--ansible"}, "inventory-netbox": {"inventory", "--netbox"},
		"inventory-prometheus": {"inventory", "--prometheus"},
		"node-list":            {"node", "list"},
		"node-list-wide":       {"node", "list", "-o", "wide"},
		"top-nodes":            {"top", "nodes", "--watch"},
		"top-nodes-wide":       {"top", "nodes", "-o", "wide", "--sort", "name"},
		"top-vms":              {"top", "vms"},
		"top-vms-wide":         {"top", "vms", "-o", "wide", "--sort", "memory"},
		"node-list-bare":       {"node", "list", "--no-headers"},
		"node-list-name":       {"node", "list", "-o", "name"},
		"node-show":            {"node", "show", "node1"},
		"node-set-machine":     {"node", "set", "node1", "--machine", "4c4c4544-0042-3510-8052-b4c04f4d3732"},
		"node-show-wide":       {"node", "show", "node1", "-o", "wide"},
		"node-show-partial":    {"node", "show", "node2"},
		"node-show-silent":     {"node", "show", "node3"},
		"node-set":             {"node", "set", "node1", "--ram-ratio", "1.5"},
		"node-set-fence": {
			"node", "set", "node1", "--fence", "command", "--fence-program", "fence_ipmilan", "--fence-arg", "ip=10.0.0.9", "--fence-arg",
			"password=***",
		},
		"node-set-fences": {
			"node", "set", "node1", "--fence", "command", "--fence-program", "fence_apc", "--fence-arg", "ip=10.0.0.50", "--fence-arg", "plug=1",
			"--fence-program", "fence_apc", "--fence-arg", "ip=10.0.0.51", "--fence-arg", "plug=1", "--fence-timeout", "2m",
		},
		"node-fence-check-several": {"node", "fence", "node1", "--check"},
		"ha-pause":                 {"ha", "pause", "--reason", "new switches"},
		"ha-resume":                {"ha", "resume"},
		"node-fence":               {"node", "fence", "node3", "--confirmed-off", "--yes"},
		"node-fence-check":         {"node", "fence", "node3", "--check"},
		"node-maintenance":         {"node", "maintenance", "node1", "on", "--reason", "new memory"},
		"node-remove":              {"node", "delete", "node1", "--yes"},
		"vm-list":                  {"vm", "list"},
		"vm-list-wide":             {"vm", "list", "-o", "wide"},
		"vm-list-yaml":             {"vm", "list", "-o", "yaml"},
		"vm-show":                  {"vm", "show", "web1"},
		"disk-show-volume":         {"disk", "show", "db-1-root"},
		"disk-list":                {"disk", "list"},
		"image-list":               {"image", "list"},
		"image-show":               {"image", "show", "debian"},
		"zone-show":                {"zone", "show", "fra"},
		"zone-list":                {"zone", "list"},
		"vm-history":               {"vm", "history", "web1"},
		"vm-history-all":           {"vm", "history", "web1", "--all"},
		"vm-history-all-wide":      {"vm", "history", "web1", "--all", "-o", "wide"},
		"audit":                    {"audit"},
		"audit-wide":               {"audit", "--by", "ann", "-o", "wide"},
		"webhook-list-wide":        {"webhook", "list", "-o", "wide"},
		"webhook-show":             {"webhook", "show", "tickets"},
		"webhook-add":              {"webhook", "add", "tickets", "https://tickets.example.com/berth", "--kind", "node.*"},
		"webhook-test":             {"webhook", "test", "tickets"},
		"webhook-delete":           {"webhook", "delete", "tickets", "--yes"},
		"webhook-dead":             {"webhook", "dead", "tickets"},
		"webhook-retry":            {"webhook", "retry", "tickets"},
		"vm-why-not-started":       {"vm", "why-not-started", "db"},
		"vm-why-not-started-runs":  {"vm", "why-not-started", "web1", "-o", "wide"},
		"vm-profile":               {"vm", "profile", "web1"},
		"vm-profile-hour":          {"vm", "profile", "web1", "--last", "hour"},
		"vm-profile-hour-wide":     {"vm", "profile", "web1", "--last", "hour", "-o", "wide"},
		"node-profile-day":         {"node", "profile", "node1", "--last", "day"},
		"vm-profile-wide":          {"vm", "profile", "web1", "-o", "wide"},
		"node-profile":             {"node", "profile", "node1"},
		"node-profile-name":        {"node", "profile", "node1", "-o", "name"},
		"vm-history-wide":          {"vm", "history", "web1", "-o", "wide"},
		"vm-show-json":             {"vm", "show", "web1", "-o", "json"},
		"vm-start":                 {"vm", "start", "web1", "--memory", "512M"},
		"vm-start-name":            {"vm", "start", "web1", "-o", "name", "-q"},
		"vm-start-no-wait":         {"vm", "start", "web1", "--no-wait"},
		"vm-start-dry-run":         {"vm", "start", "web1", "--memory", "512M", "--dry-run"},
		"vm-delete":                {"vm", "delete", "web1", "--yes"},
		"operation-list":           {"operation", "list"},
		"operation-list-wide":      {"operation", "list", "-o", "wide"},
		"operation-show":           {"operation", "show", "3nqk7d2m0x1ab"},
		"operation-cancel":         {"operation", "cancel", "3nqk7d2m0x1ab"},
		"operation-show-silent":    {"operation", "show", "silent"},
		"operation-show-parked":    {"operation", "show", "parked"},
		"operation-show-restored":  {"operation", "show", "restored"},
		"operation-show-resolved":  {"operation", "show", "resolved"},
		"operation-resolve":        {"operation", "resolve", "migrate", "--keep", "target", "--no-wait"},
		"vm-adopt":                 {"vm", "adopt", "db", "web"},
		"vm-adopt-dry-run":         {"vm", "adopt", "--all", "--dry-run"},
		"vm-reboot":                {"vm", "reboot", "web1", "--no-wait"},
		"vm-pause":                 {"vm", "pause", "web1", "--no-wait"},
		"vm-pause-dry-run":         {"vm", "pause", "web1", "web2", "--dry-run"},
		"vm-resume":                {"vm", "resume", "web1", "--no-wait"},
		"vm-reset":                 {"vm", "reset", "web1", "web2", "--no-wait"},
		"vm-attach-disk":           {"vm", "attach", "disk", "web1", "--disk", "fast/data.qcow2", "--dry-run"},
		"vm-attach-new-disk":       {"vm", "attach", "disk", "web1", "web2", "--size", "20G", "--pool", "fast", "--dry-run"},
		"vm-attach-nic":            {"vm", "attach", "nic", "web1", "--network", "default", "--no-wait"},
		"vm-detach-disk":           {"vm", "detach", "disk", "web1", "--target", "vdb", "--dry-run"},
		"vm-detach-nic":            {"vm", "detach", "nic", "web1", "--mac", "52:54:00:12:34:56", "--no-wait"},
		"vm-media-insert":          {"vm", "media", "insert", "web1", "--iso", "/srv/iso/rescue.iso", "--dry-run"},
		"vm-xml":                   {"vm", "xml", "web1"},
		"vm-xml-next":              {"vm", "xml", "web1", "--next"},
		"vm-stop-several":          {"vm", "stop", "web1", "web2", "--dry-run"},
		"vm-reboot-several":        {"vm", "reboot", "web1", "web2", "--no-wait"},
		"vm-set-now":               {"vm", "set", "web1", "web2", "--memory", "2G", "--vcpus", "2", "--now", "--dry-run"},
		"vm-set-now-no-wait":       {"vm", "set", "web1", "--memory", "2G", "--now", "--no-wait"},
		"vm-media-eject":           {"vm", "media", "eject", "web1", "--no-wait"},
		"vm-release":               {"vm", "release", "web1", "--no-wait"},
		"decision-list":            {"decision", "list"},
		"decision-list-wide":       {"decision", "list", "-o", "wide"},
		"decision-show":            {"decision", "show", "last"},
		"decision-show-wide":       {"decision", "show", "last", "-o", "wide"},
		"decision-show-json":       {"decision", "show", "last", "-o", "json"},
		"decision-show-full":       {"decision", "show", "last", "--full"},
		"decision-show-full-wide":  {"decision", "show", "last", "--full", "-o", "wide"},
		"decision-show-old":        {"decision", "show", "old", "--full"},
		"decision-show-many":       {"decision", "show", "many"},
		"decision-show-bands":      {"decision", "show", "bands"},
		"decision-show-bands-full": {"decision", "show", "bands", "--full"},
		"decision-show-ranks":      {"decision", "show", "ranked", "--ranks"},
		"decision-show-no-ranks":   {"decision", "show", "last", "--ranks"},
		"vm-show-moves":            {"vm", "show", "db1"},
		"vm-show-found":            {"vm", "show", "mail1"},
		"vm-show-reverted":         {"vm", "show", "mail2"},
		"vm-accept":                {"vm", "accept", "mail1"},
		"vm-revert":                {"vm", "revert", "mail1", "--without-writes"},
		"vm-start-many-dry-run":    {"vm", "start", "web1", "db1", "--dry-run"},
		"vm-start-many-no-wait":    {"vm", "start", "web1", "db1", "--no-wait"},
		"vm-start-many":            {"vm", "start", "web1", "db1"},
		"node-set-labels":          {"node", "set", "node1", "--label", "rack-7", "--management", "--reset", "unbalanced"},
		"vm-why-full":              {"vm", "why", "web1", "--full"},
		"decision-refusal":         {"decision", "show", "big"},
		"decision-replay":          {"decision", "replay", "last"},
		"cluster-list":             {"cluster", "list"},
		"cluster-list-wide":        {"cluster", "list", "-o", "wide"},
		"cluster-list-name":        {"cluster", "list", "-o", "name"},
		"cluster-list-yaml":        {"cluster", "list", "-o", "yaml"},
		"cluster-show":             {"cluster", "show", "prod"},
		"cluster-show-wide":        {"cluster", "show", "prod", "-o", "wide"},
		"cluster-show-default":     {"cluster", "show", "default"},
		"cluster-set":              {"cluster", "set", "prod", "--ram-ratio", "1.5", "--unset", "cpu-ratio"},
		"cluster-node-key-declare": {"cluster", "node-key", "declare", "prod", "DS", "--default=-1", "--sticky", "--weight", "30"},
		"cluster-node-key-drop":    {"cluster", "node-key", "drop", "prod", "DS", "--yes"},
		"policy-list":              {"policy", "list"},
		"policy-list-wide":         {"policy", "list", "-o", "wide"},
		"policy-show":              {"policy", "show", "mine"},
		"policy-show-built-in":     {"policy", "show", "vm-evenly-distributed", "-o", "wide"},
		"policy-show-drawn":        {"policy", "show", "drawn"},
		"policy-create": {
			"policy", "add", "spread", "--balancer", "even-vm-count", "--weigher", "customer-keys=2", "--parameter", "HighVMCount=8",
		},
		"policy-edit":           {"policy", "set", "mine", "--add-weigher", "system-keys=3"},
		"policy-copy":           {"policy", "copy", "vm-evenly-distributed", "own"},
		"policy-delete":         {"policy", "delete", "mine", "--yes"},
		"customer-list":         {"customer", "list"},
		"customer-show":         {"customer", "show", "acme"},
		"vdc-list":              {"vdc", "list"},
		"vdc-show":              {"vdc", "show", "acme-test"},
		"vdc-add":               {"vdc", "add", "acme-dev", "--customer", "acme", "--cluster", "prod"},
		"offer-list":            {"offer", "list"},
		"disk-add":              {"disk", "add", "d1", "--path", "/srv/d1.raw", "--format", "raw", "-o", "json"},
		"disk-show":             {"disk", "show", "web-1-root"},
		"customer-delete":       {"customer", "delete", "acme", "--yes"},
		"key-set":               {"key", "set", "vm/web1", "Group1=1", "--weight", "-100", "--class", "customer"},
		"key-set-normal":        {"key", "set", "cluster/default", "#RAM=0"},
		"key-set-undeclared":    {"key", "set", "vm/web1", "Prem=1", "--weight", "5"},
		"key-unset":             {"key", "unset", "vm/web1", "Group1"},
		"key-list-vm":           {"key", "list", "vm/web1"},
		"key-list-node":         {"key", "list", "node/node1"},
		"key-list-cluster":      {"key", "list", "cluster/prod"},
		"key-list-none":         {"key", "list", "vdc/acme-test"},
		"key-compiled":          {"key", "compiled", "vm/web1"},
		"key-compiled-json":     {"key", "compiled", "web1", "-o", "json"},
		"vm-add":                {"vm", "add", "web9", "--memory", "1G", "--vdc", "acme-prod"},
		"vm-add-dry-run":        {"vm", "add", "web9", "--memory", "1G", "--dry-run"},
		"vm-set-no-room":        {"vm", "set", "db1", "--memory", "8G"},
		"vm-set-ha":             {"vm", "set", "web1", "--ha"},
		"vm-set":                {"vm", "set", "web1", "--memory", "4G", "--vdc", "acme-prod", "--unset", "nic"},
		"vm-why":                {"vm", "why", "web1"},
		"vm-why-not":            {"vm", "why-not", "web1", "--node", "node1"},
		"vm-stop-when-back":     {"vm", "stop", "web1", "--when-back"},
		"vm-why-not-decision":   {"vm", "why-not", "web1", "--node", "node1", "--decision", "3nqk7d2m0d1ab"},
		"vm-why-not-full":       {"vm", "why-not", "web1", "--node", "node1", "--full", "-o", "wide"},
		"vm-start-dry-run-full": {"vm", "start", "web1", "--memory", "512M", "--dry-run", "--full"},
		"node-set-keys":         {"node", "set", "node1", "--key", "Premium=1", "--unset-key", "DS", "--cluster", "default"},
		"capacity":              {"capacity", "--memory", "4G", "--vcpus", "2"},
		"capacity-added":        {"capacity", "--memory", "4G", "--add-nodes", "2:node1"},
		"capacity-added-wide":   {"capacity", "--memory", "4G", "--add-nodes", "2", "--add-memory", "512G", "-o", "wide"},
		"capacity-wide":         {"capacity", "--memory", "4G", "--vdc", "acme-prod", "-o", "wide"},
		"export":                {"export"},
		"coordinator-list":      {"coordinator", "list"},
		"coordinator-remove":    {"coordinator", "delete", "coord3", "--yes"},
		"token-create":          {"token", "add", "--for", "agent"},
		"token-list":            {"token", "list"},
		"identity-list":         {"identity", "list"},
		"identity-list-wide":    {"identity", "list", "--all", "-o", "wide"},
		"identity-show":         {"identity", "show", "operator/alice"},
		"console":               {"console"},
		"login-web":             {"login", "--web"},
		"session-list":          {"session", "list"},
		"session-list-wide":     {"session", "list", "-o", "wide"},
		"session-revoke":        {"session", "revoke", "4c9k"},
		"token-revoke":          {"token", "revoke", "0a1b2c3d"},
		"identity-revoke":       {"identity", "revoke", "operator/alice", "--reason", "laptop lost", "--yes"},
		"identity-set":          {"identity", "set", "operator/alice", "--permit", "host-devices,host-paths"},
		"identity-confirm":      {"identity", "confirm", "node/node3"},
		"events":                {"events"},
		"events-by-kind":        {"events", "--sort", "kind"},
		"events-wide":           {"events", "-o", "wide"},
		"events-json":           {"events", "-o", "json"},
		"events-yaml":           {"events", "-o", "yaml"},
	}
}

// What people read: standard output, then what went to the standard error.
func TestGoldenOutput(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for name, args := range goldenCommands() {
		t.Run(name, func(t *testing.T) {
			said := w.Run(args...)
			if said.Exit != term.Done {
				t.Errorf("exit %d", said.Exit)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// An empty list says so where people read, and is nothing where programs do.
func TestEmptyLists(t *testing.T) {
	f := clitest.Steady()
	f.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		return &berthv1.ListNodesResponse{SchemaVersion: "1"}, nil
	}
	f.OnListVMs = func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error) {
		return &berthv1.ListVMsResponse{SchemaVersion: "1"}, nil
	}
	w, _ := clitest.NewSite(t, f)
	for _, noun := range []string{"node", "vm"} {
		if said := w.Run(noun, "list"); said.Out != "" || !strings.HasPrefix(said.ErrOut, "no "+noun) &&
			!strings.HasPrefix(said.ErrOut, "no VMs") {
			t.Errorf("%s: %q, %q", noun, said.Out, said.ErrOut)
		}
		for _, args := range [][]string{{noun, "list", "-q"}, {noun, "list", "-o", "name"}, {noun, "list", "-o", "json"}} {
			if said := w.Run(args...); said.ErrOut != "" || said.Exit != term.Done {
				t.Errorf("%v: %q", args, said.ErrOut)
			}
		}
	}
}
