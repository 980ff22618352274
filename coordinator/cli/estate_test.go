package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/coordinator/cli"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// What stands on the line is what the coordinator is asked, with a request ID on every write.
func TestEstateVerbsSendWhatWasDescribed(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	system := func(name string, value, weight float64) *berthv1.Key {
		return &berthv1.Key{Class: "system", Name: name, Value: value, Weight: weight}
	}
	for _, c := range []struct {
		line string
		want proto.Message
	}{
		{"cluster add c1", &berthv1.AddResourceRequest{Kind: "cluster", Name: "c1"}},
		{
			"cluster add c1 --storage local --ram-ratio 1.50 --overhead 2G --msav-steps 5",
			&berthv1.AddResourceRequest{Kind: "cluster", Name: "c1", Settings: map[string]string{
				"storage": "local", "ram_ratio": "1.5", "overhead": "2147483648", "msav_steps": "5",
			}},
		},
		{
			"billing-entity add mbe --master true",
			&berthv1.AddResourceRequest{Kind: "billing-entity", Name: "mbe", Settings: map[string]string{"master": "true"}},
		},
		{
			"customer add acme --billing-entity reseller --offer gold",
			&berthv1.AddResourceRequest{Kind: "customer", Name: "acme", Links: map[string]string{"billing_entity": "reseller", "offer": "gold"}},
		},
		{"nic add n1 --network lan", &berthv1.AddResourceRequest{Kind: "nic", Name: "n1", Links: map[string]string{"network": "lan"}}},
		{
			"cluster set prod --ram-ratio 2 --unset storage,cpu-ratio",
			&berthv1.ChangeResourceRequest{
				Kind: "cluster", Name: "prod", Settings: map[string]string{"ram_ratio": "2"}, Unset: []string{"storage", "cpu_ratio"},
			},
		},
		{
			"customer set acme --unset billing-entity",
			&berthv1.ChangeResourceRequest{Kind: "customer", Name: "acme", Unset: []string{"billing_entity"}},
		},
		{
			"policy add spread --gate off --selector sum --balancer even-vm-count " +
				"--drain-ignores-vm-rules false --weigher customer-keys=2.50,system-keys=1 --parameter HighVMCount=8 --constraint running",
			&berthv1.AddResourceRequest{
				Kind: "policy", Name: "spread",
				Settings: map[string]string{"gate": "off", "selector": "sum", "balancer": "even-vm-count", "drain_ignores_vm_rules": "false"},
				Lists: map[string]*berthv1.Names{
					"weighers": {Names: []string{"customer-keys=2.5", "system-keys=1"}}, "parameters": {Names: []string{"HighVMCount=8"}},
					"constraints": {Names: []string{"running"}},
				},
			},
		},
		{"policy add spread", &berthv1.AddResourceRequest{Kind: "policy", Name: "spread"}},
		{ // what is by default is left to the default
			"policy copy vm-evenly-distributed own --parameter MigrationThreshold=4",
			&berthv1.AddResourceRequest{
				Kind: "policy", Name: "own", Settings: map[string]string{"gate": "off", "balancer": "even-vm-count"},
				Lists: map[string]*berthv1.Names{
					"weighers": {Names: []string{"customer-keys=1", "rack-heat=0.5"}}, "parameters": {Names: []string{"MigrationThreshold=4"}},
				},
			},
		},
		{
			"policy set mine --balancer none --unset parameter --weigher customer-keys=1",
			&berthv1.ChangeResourceRequest{
				Kind: "policy", Name: "mine", Settings: map[string]string{"balancer": "none"}, Unset: []string{"parameters"},
				Lists: map[string]*berthv1.Names{"weighers": {Names: []string{"customer-keys=1"}}},
			},
		},
		{
			"policy set mine --add-weigher system-keys=3 --add-parameter HighCPU=70 --remove-parameter HighVMCount --remove-constraint pin",
			&berthv1.ChangeResourceRequest{Kind: "policy", Name: "mine", Lists: map[string]*berthv1.Names{
				"weighers": {Names: []string{"customer-keys=1", "system-keys=3"}}, "parameters": {
					Names: []string{"HighCPU=70", "MigrationThreshold=3"},
				},
				"constraints": {Names: []string{"fresh", "memory-physical", "memory-promised", "node-affinity", "running"}},
			}},
		},
		{
			"cluster set prod --policy mine --balancing automatic --cooldown 1h",
			&berthv1.ChangeResourceRequest{
				Kind: "cluster", Name: "prod", Links: map[string]string{"policy": "mine"}, Settings: map[string]string{
					"balancing": "automatic", "cooldown": "1h",
				},
			},
		},
		{"customer delete acme --yes", &berthv1.DeleteResourceRequest{Kind: "customer", Name: "acme"}},
		{
			"cluster node-key declare prod DS --sticky --weight 30",
			&berthv1.DeclareNodeKeyRequest{Cluster: "prod", Key: &berthv1.NodeKey{Name: "DS", Sticky: true, Weight: 30}},
		},
		{"cluster node-key drop prod DS --yes", &berthv1.DropNodeKeyRequest{Cluster: "prod", Key: "DS"}},
		{"key set cluster/prod #RAM=0 --weight 60", &berthv1.SetKeyRequest{Kind: "cluster", Name: "prod", Key: system("#RAM", 0, 60)}},
		{"key set vm/web1 A=-1.5 --weight -2e3", &berthv1.SetKeyRequest{Kind: "vm", Name: "web1", Key: system("A", -1.5, -2000)}},
		{
			"key set customer/acme _ssd=1 --weight 5 --class billing-entity",
			&berthv1.SetKeyRequest{Kind: "customer", Name: "acme", Key: &berthv1.Key{Class: "billing-entity", Name: "_ssd", Value: 1, Weight: 5}},
		},
		{"key unset vm/web1 A --class customer", &berthv1.UnsetKeyRequest{Kind: "vm", Name: "web1", Class: "customer", Key: "A"}},
		{
			"node set node1 --key Premium=1 --key DS=2.5 --unset-key _ssd",
			&berthv1.SetNodeRequest{
				Node: "node1", Settings: &berthv1.NodeSettings{}, Keys: map[string]float64{"Premium": 1, "DS": 2.5},
				UnsetKeys: []string{"_ssd"},
			},
		},
		{"node set node1 --cluster prod", &berthv1.SetNodeRequest{Node: "node1", Settings: &berthv1.NodeSettings{}, Cluster: "prod"}},
		{
			"vm add web9 --memory 1G --vdc v --offer o --from i --attach d1 --attach d2 --nic n --key Group1=1@-100 --node node2",
			&berthv1.AddVMRequest{
				Name: "web9", Node: "node2",
				Vm: &berthv1.NewVM{
					Spec: &berthv1.VMSpec{MemoryBytes: clitest.Gib, Vcpus: 1}, Vdc: "v", Offer: "o", Image: "i",
					Disks: []string{"d1", "d2"}, Nics: []string{"n"}, Keys: []*berthv1.Key{
						{Class: "customer", Name: "Group1", Value: 1, Weight: -100},
					},
				},
			},
		},
		{
			"vm start web9 --memory 1G --disk /a.raw --vdc v --offer o --from i --attach d1 --nic n --key _ssd=1@1e2 --no-wait",
			&berthv1.StartVMRequest{
				Name: "web9",
				Vm: &berthv1.NewVM{
					Spec: &berthv1.VMSpec{
						MemoryBytes: clitest.Gib, Vcpus: 1, Disks: []*berthv1.Disk{{Path: "/a.raw", Format: "raw", Bus: "virtio"}},
					}, Vdc: "v", Offer: "o", Image: "i",
					Disks: []string{"d1"}, Nics: []string{"n"}, Keys: []*berthv1.Key{{Class: "customer", Name: "_ssd", Value: 1, Weight: 100}},
				},
			},
		},
		{
			"vm set web1 --vdc v --attach d1 --memory 4G --vcpus 2 --unset nic,offer",
			&berthv1.ChangeVMRequest{
				Vm: "web1",
				Change: &berthv1.VMChange{
					Vdc: proto.String("v"), Offer: proto.String(""),
					Disks: &berthv1.Names{Names: []string{"d1"}}, Nics: &berthv1.Names{}, MemoryBytes: proto.Int64(4 * clitest.Gib), Vcpus: proto.Int32(2),
				},
			},
		},
		{
			"vm set web1 --label a,b --migration never --unset prefer",
			&berthv1.ChangeVMRequest{
				Vm: "web1",
				Change: &berthv1.VMChange{
					Labels: &berthv1.Names{Names: []string{"a", "b"}}, Migration: proto.String("never"), Preferred: &berthv1.Names{},
				},
			},
		},
		{
			"vm set web1 --unset label,migration,description,restart,restart-priority,restart-after",
			&berthv1.ChangeVMRequest{Vm: "web1", Change: &berthv1.VMChange{
				Labels: &berthv1.Names{}, Migration: proto.String("automatic"), Description: proto.String(""),
				RestartPriority: proto.String("normal"), Restart: proto.String("cluster"), RestartAfter: &berthv1.Names{},
			}},
		},
		{
			"vm add web9 --memory 1G --label a --prefer hv1,hv2 --migration manual --description shop " +
				"--ha --restart ha --restart-priority low --restart-after db",
			&berthv1.AddVMRequest{
				Name: "web9",
				Vm: &berthv1.NewVM{
					Spec: &berthv1.VMSpec{MemoryBytes: clitest.Gib, Vcpus: 1}, Labels: []string{"a"}, Preferred: []string{"hv1", "hv2"},
					Migration: "manual", Description: "shop", Ha: true, RestartPriority: "low", Restart: "ha", RestartAfter: []string{"db"},
				},
			},
		},
		{
			"vm start web9 --memory 1G --label a --prefer hv1 --no-wait",
			&berthv1.StartVMRequest{
				Name: "web9",
				Vm: &berthv1.NewVM{
					Spec: &berthv1.VMSpec{MemoryBytes: clitest.Gib, Vcpus: 1}, Labels: []string{"a"}, Preferred: []string{"hv1"},
				},
			},
		},
		{"vm start a b c --node hv1 --no-wait", &berthv1.StartVMsRequest{Vms: []string{"a", "b", "c"}, Node: "hv1"}},
		{
			"node set node1 --label rack-7 --management=false --reset unbalanced,ram-ratio",
			&berthv1.SetNodeRequest{
				Node: "node1", Settings: &berthv1.NodeSettings{}, Labels: &berthv1.Names{Names: []string{"rack-7"}}, Management: proto.Bool(false),
				Unbalanced: proto.Bool(false), Reset_: []string{"ram_ratio"},
			},
		},
		{"vm migrate web1 --best --if-better 7.5 --no-wait", &berthv1.MigrateVMRequest{Vm: "web1", IfBetter: 7.5}},
	} {
		said := w.Run(strings.Fields(c.line)...)
		if said.Exit != term.Done {
			t.Errorf("%s: exit %d, %s", c.line, said.Exit, said.ErrOut)
			continue
		}
		sent := f.Last(c.want)
		field := sent.ProtoReflect().Descriptor().Fields().ByName("request_id")
		if len(sent.ProtoReflect().Get(field).String()) < 16 {
			t.Errorf("%s: request ID %q", c.line, sent.ProtoReflect().Get(field))
		}
		sent.ProtoReflect().Clear(field)
		if diff := cmp.Diff(c.want, sent, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

// Reads send no request ID, and what was asked.
func TestQuestionsSendWhatWasAsked(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	for _, c := range []struct {
		line string
		want proto.Message
	}{
		{"vdc list", &berthv1.ListResourcesRequest{Kind: "vdc", Limit: 500}},
		{"vdc show acme-prod", &berthv1.GetResourceRequest{Kind: "vdc", Name: "acme-prod"}},
		{"key list vm/web1", &berthv1.ListKeysRequest{Kind: "vm", Name: "web1"}},
		{"key list node/node1", &berthv1.ListKeysRequest{Kind: "node", Name: "node1"}},
		{"key compiled vm/web1", &berthv1.CompiledKeysRequest{Vm: "web1"}},
		{"decision replay 3nqk", &berthv1.ReplayDecisionRequest{Id: "3nqk"}},
		{"vm why web1", &berthv1.WhyVMRequest{Vm: "web1"}},
		{"vm history web1", &berthv1.VMHistoryRequest{Vm: "web1"}},
		{"vm why-not-started web1", &berthv1.WhyNotStartedRequest{Vm: "web1"}},
		{"vm why-not web1 --node node3 --decision 3nqk", &berthv1.WhyNotRequest{Vm: "web1", Node: "node3", DecisionId: "3nqk"}},
		{
			"capacity --memory 4G --vcpus 2 --cluster prod --vdc v --most 10",
			&berthv1.CapacityRequest{MemoryBytes: 4 * clitest.Gib, Vcpus: 2, Cluster: "prod", Vdc: "v", Most: 10},
		},
		{
			"capacity --memory 4G --add-nodes 2:hv1 --add-memory 512G",
			&berthv1.CapacityRequest{
				MemoryBytes: 4 * clitest.Gib, Vcpus: 1, AddNodes: 2, AddLike: "hv1", AddMemoryBytes: 512 * clitest.Gib,
			},
		},
		{"export --scenario --seed 7", &berthv1.ExportEstateRequest{Scenario: true, Seed: 7}},
	} {
		if said := w.Run(strings.Fields(c.line)...); said.Exit != term.Done {
			t.Errorf("%s: exit %d, %s", c.line, said.Exit, said.ErrOut)
			continue
		}
		if diff := cmp.Diff(c.want, f.Last(c.want), protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

// Every example is a line that the command understands: its flags exist, their values parse, and the arguments are right.
func TestExamplesAreMeant(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.Example, "\n") {
			line, _, _ = strings.Cut(line, " < ")
			line, isOurs := strings.CutPrefix(strings.TrimSpace(line), "berth ")
			if !isOurs || strings.ContainsAny(line, `"$|`) {
				continue
			}
			root := cli.New(cli.Options{})
			args := strings.Fields(strings.ReplaceAll(line, "'", ""))
			found, rest, err := root.Find(args)
			if err != nil || found.CommandPath() != cmd.CommandPath() {
				t.Errorf("%q is an example of %s", line, cmd.CommandPath())
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := found.Args(found, found.Flags().Args()); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(cli.New(cli.Options{}))
}
