package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/coordinator/estate"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// What stands on the line is what the coordinator is asked, with a request ID on every write.
func TestEstateVerbsSendWhatWasDescribed(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
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
		{"billing-entity add mbe --master true", &berthv1.AddResourceRequest{Kind: "billing-entity", Name: "mbe", Settings: map[string]string{"master": "true"}}},
		{
			"customer add acme --billing-entity reseller --offer gold",
			&berthv1.AddResourceRequest{Kind: "customer", Name: "acme", Links: map[string]string{"billing_entity": "reseller", "offer": "gold"}},
		},
		{"nic add n1 --network lan", &berthv1.AddResourceRequest{Kind: "nic", Name: "n1", Links: map[string]string{"network": "lan"}}},
		{
			"cluster set prod --ram-ratio 2 --unset storage,cpu-ratio",
			&berthv1.ChangeResourceRequest{Kind: "cluster", Name: "prod", Settings: map[string]string{"ram_ratio": "2"}, Unset: []string{"storage", "cpu_ratio"}},
		},
		{
			"customer set acme --unset billing-entity",
			&berthv1.ChangeResourceRequest{Kind: "customer", Name: "acme", Unset: []string{"billing_entity"}},
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
			&berthv1.SetNodeRequest{Node: "node1", Settings: &berthv1.NodeSettings{}, Keys: map[string]float64{"Premium": 1, "DS": 2.5}, UnsetKeys: []string{"_ssd"}},
		},
		{"node set node1 --cluster prod", &berthv1.SetNodeRequest{Node: "node1", Settings: &berthv1.NodeSettings{}, Cluster: "prod"}},
		{
			"vm add web9 --memory 1G --vdc v --offer o --from i --attach d1 --attach d2 --nic n --key Group1=1@-100 --node node2",
			&berthv1.AddVMRequest{
				Name: "web9", Spec: &berthv1.VMSpec{MemoryBytes: gib, Vcpus: 1}, Vdc: "v", Offer: "o", Image: "i", Disks: []string{"d1", "d2"},
				Nics: []string{"n"}, Node: "node2", Keys: []*berthv1.Key{{Class: "customer", Name: "Group1", Value: 1, Weight: -100}},
			},
		},
		{
			"vm start web9 --memory 1G --disk /a.raw --vdc v --offer o --from i --attach d1 --nic n --key _ssd=1@1e2 --no-wait",
			&berthv1.StartVMRequest{
				Name: "web9", Spec: &berthv1.VMSpec{MemoryBytes: gib, Vcpus: 1, Disks: []*berthv1.Disk{{Path: "/a.raw", Format: "raw", Bus: "virtio"}}},
				Vdc: "v", Offer: "o", Image: "i", Disks: []string{"d1"}, Nics: []string{"n"},
				Keys: []*berthv1.Key{{Class: "customer", Name: "_ssd", Value: 1, Weight: 100}},
			},
		},
		{
			"vm set web1 --vdc v --attach d1 --memory 4G --vcpus 2 --unset nic,offer",
			&berthv1.ChangeVMRequest{
				Vm: "web1", Vdc: proto.String("v"), Offer: proto.String(""), Disks: &berthv1.Names{Names: []string{"d1"}}, Nics: &berthv1.Names{},
				MemoryBytes: proto.Int64(4 * gib), Vcpus: proto.Int32(2),
			},
		},
		{"vm migrate web1 --best --if-better 7.5 --no-wait", &berthv1.MigrateVMRequest{Vm: "web1", IfBetter: 7.5}},
	} {
		said := w.run(strings.Fields(c.line)...)
		if said.exit != Done {
			t.Errorf("%s: exit %d, %s", c.line, said.exit, said.errOut)
			continue
		}
		sent := f.last(c.want)
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
	f := steady()
	w, _ := newWorld(t, f)
	for _, c := range []struct {
		line string
		want proto.Message
	}{
		{"vdc list", &berthv1.ListResourcesRequest{Kind: "vdc"}},
		{"vdc show acme-prod", &berthv1.GetResourceRequest{Kind: "vdc", Name: "acme-prod"}},
		{"key list vm/web1", &berthv1.ListKeysRequest{Kind: "vm", Name: "web1"}},
		{"key list node/node1", &berthv1.ListKeysRequest{Kind: "node", Name: "node1"}},
		{"key compiled vm/web1", &berthv1.CompiledKeysRequest{Vm: "web1"}},
		{"decision replay 3nqk", &berthv1.ReplayDecisionRequest{Id: "3nqk"}},
		{"vm why web1", &berthv1.WhyVMRequest{Vm: "web1"}},
		{"vm why-not web1 --node node3 --decision 3nqk", &berthv1.WhyNotRequest{Vm: "web1", Node: "node3", DecisionId: "3nqk"}},
		{
			"capacity --memory 4G --vcpus 2 --cluster prod --vdc v --most 10",
			&berthv1.CapacityRequest{MemoryBytes: 4 * gib, Vcpus: 2, Cluster: "prod", Vdc: "v", Most: 10},
		},
		{"export --scenario --seed 7", &berthv1.ExportEstateRequest{Scenario: true, Seed: 7}},
	} {
		if said := w.run(strings.Fields(c.line)...); said.exit != Done {
			t.Errorf("%s: exit %d, %s", c.line, said.exit, said.errOut)
			continue
		}
		if diff := cmp.Diff(c.want, f.last(c.want), protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

// last is the last recorded request of the same kind as like.
func (f *fake) last(like proto.Message) proto.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.calls) - 1; i >= 0; i-- {
		if m, ok := f.calls[i].(proto.Message); ok && m.ProtoReflect().Descriptor() == like.ProtoReflect().Descriptor() {
			return m
		}
	}
	return like.ProtoReflect().New().Interface()
}

// Every kind of the table is a noun with the same verbs, and every link and setting a flag that the table explains.
func TestEveryKindIsANoun(t *testing.T) {
	root := New(Options{})
	for _, form := range estate.Forms() {
		if samples[form.Kind] == "" || about[form.Kind] == "" {
			t.Errorf("%s: no sample name, or nothing about it", form.Kind)
		}
		for _, verb := range []string{"add", "list", "show", "delete"} {
			if found, _, err := root.Find([]string{string(form.Kind), verb}); err != nil || found.Name() != verb {
				t.Errorf("berth %s %s is missing", form.Kind, verb)
			}
		}
		add, _, _ := root.Find([]string{string(form.Kind), "add"})
		for _, name := range allFlags(form) {
			if flag := add.Flags().Lookup(name); flag == nil || flag.Usage == "" {
				t.Errorf("berth %s add: --%s is missing, or not explained", form.Kind, name)
			}
		}
		set, _, _ := root.Find([]string{string(form.Kind), "set"})
		for _, setting := range form.Settings {
			if setting.Fixed && set.Flags().Lookup(flagName(setting.Name)) != nil {
				t.Errorf("berth %s set: --%s cannot change", form.Kind, flagName(setting.Name))
			}
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
			root := New(Options{})
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
	walk(New(Options{}))
}

func TestAResourceInUseSaysByWhat(t *testing.T) {
	w, _ := newWorld(t, steady())
	said := w.run("vdc", "delete", "acme-prod", "--yes")
	if said.exit != Failed || said.out != "" {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
	golden(t, "error-in-use.golden", said.errOut)
	if said := w.run("vdc", "show", "nobody"); said.exit != NotFound || !strings.Contains(said.errOut, "next step: see 'berth vdc list'") {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
}

func TestApply(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	writeFile(t, path, []byte("format: berth/estate/v1\n"))
	for name, args := range map[string][]string{
		"apply": {"apply", "-f", path}, "apply-dry-run": {"apply", "-f", path, "--dry-run", "--prune"}, "apply-name": {"apply", "-f", path, "-o", "name"},
		"apply-json": {"apply", "-f", path, "-o", "json"},
	} {
		said := w.run(args...)
		if said.exit != Done || said.errOut != "" {
			t.Errorf("%s: exit %d, %s", name, said.exit, said.errOut)
		}
		golden(t, name+".golden", said.out)
	}
	w.in = strings.NewReader("format: berth/estate/v1 # stdin\n")
	if said := w.run("apply", "-f", "-"); said.exit != Done {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	sent := f.last(&berthv1.ApplyEstateRequest{}).(*berthv1.ApplyEstateRequest)
	if sent.GetFile() != "<stdin>" || string(sent.GetDocument()) != "format: berth/estate/v1 # stdin\n" || sent.GetDryRun() || sent.GetPrune() || len(sent.GetRequestId()) < 16 {
		t.Errorf("sent %v", sent)
	}
	f.applyEstate = func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return &berthv1.ApplyEstateResponse{SchemaVersion: "1"}, nil
	}
	if said := w.run("apply", "-f", path, "--prune"); said.exit != Done || said.out != "nothing to change\n" {
		t.Errorf("exit %d, %q, %s", said.exit, said.out, said.errOut)
	}
}

// What a document leaves out is deleted only by somebody who was told what that is, or said --yes.
func TestPruneAsks(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	path := filepath.Join(t.TempDir(), "estate.yaml")
	writeFile(t, path, []byte("format: berth/estate/v1\n"))
	said := w.run("apply", "-f", path, "--prune")
	if said.exit != WrongUsage || !strings.Contains(said.errOut, "repeat it with --yes") {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	for _, request := range asked[berthv1.ApplyEstateRequest](f) {
		if !request.GetDryRun() {
			t.Error("something was applied without an answer")
		}
	}
	if said := w.run("apply", "-f", path, "--prune", "--yes"); said.exit != Done {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	if sent := f.last(&berthv1.ApplyEstateRequest{}).(*berthv1.ApplyEstateRequest); sent.GetDryRun() || !sent.GetPrune() {
		t.Errorf("sent %v", sent)
	}
}

// Every problem of a document is shown with its place, and nothing was changed.
func TestProblemsHavePlaces(t *testing.T) {
	f := steady()
	f.applyEstate = func(r *berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
			Code: rpc.Invalid, NextStep: "correct the document; nothing was changed",
			Problems: []*berthv1.Problem{
				{File: r.GetFile(), Line: 12, Subject: "customer/acme", Message: `unknown field "biling_entity"`, NextStep: "use name, billing_entity, offer, keys"},
				{File: r.GetFile(), Line: 31, Message: "an alias to an anchor that it stands in"},
				{File: r.GetFile(), Subject: "disk/d1", Message: "is used by vm/a and vm/b"},
			},
		}, "3 problems in %s", r.GetFile())
	}
	w, _ := newWorld(t, f)
	w.in = strings.NewReader("x")
	said := w.run("apply", "-f", "-")
	if said.exit != Failed || said.out != "" {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
	golden(t, "error-problems.golden", said.errOut)

	f.changeResource = func(*berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error) {
		return nil, rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
			Code: rpc.Invalid, NextStep: "correct it and try again",
			Problems: []*berthv1.Problem{{Subject: "vdc/acme-prod", Message: `the customer "nobody" does not exist`, NextStep: "add it first"}},
		}, "the message says the same")
	}
	want := "berth: vdc/acme-prod: the customer \"nobody\" does not exist: add it first\nnext step: correct it and try again\n"
	if said := w.run("vdc", "set", "acme-prod", "--customer", "nobody"); said.exit != Failed || said.errOut != want {
		t.Errorf("exit %d, %q", said.exit, said.errOut)
	}
}

func TestApplyRefusesABadFile(t *testing.T) {
	w, _ := newWorld(t, steady())
	folder := t.TempDir()
	huge := filepath.Join(folder, "huge.yaml")
	writeFile(t, huge, make([]byte, int(maxDocument)+1))
	for path, say := range map[string]string{
		filepath.Join(folder, "none.yaml"): "no such file", huge: "is longer than 4 MiB", "-": "is empty", folder: "is a directory",
	} {
		w.in = strings.NewReader(" \n")
		if said := w.run("apply", "-f", path); said.exit != Failed || !strings.Contains(said.errOut, say) || !strings.Contains(said.errOut, "next step: ") {
			t.Errorf("%s: exit %d, %s", path, said.exit, said.errOut)
		}
	}
}

func TestExportWritesAWholeFile(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	folder := t.TempDir()
	path := filepath.Join(folder, "estate.yaml")
	if said := w.run("export", "--to", path); said.exit != Done || said.out != "" || said.errOut != "written to "+path+"\n" {
		t.Errorf("exit %d, %q, %q", said.exit, said.out, said.errOut)
	}
	if data, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(data), "format: berth/estate/v1\n") {
		t.Errorf("%v: %q", err, data)
	}
	f.exportEstate = func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error) {
		return nil, connect.NewError(connect.CodeUnavailable, errors.New("no leader"))
	}
	w.patience = 0
	if said := w.run("export", "--to", filepath.Join(folder, "second.yaml"), "-q"); said.exit == Done {
		t.Error("an export without an answer is done")
	}
	if said := w.run("export", "--to", filepath.Join(folder, "none", "x.yaml"), "-q"); said.exit == Done {
		t.Error("an export into no folder is done")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestReplayThatDiffers(t *testing.T) {
	f := steady()
	f.replay = func(*berthv1.ReplayDecisionRequest) (*berthv1.ReplayDecisionResponse, error) {
		return &berthv1.ReplayDecisionResponse{
			SchemaVersion: "1", Decision: cannedDecision(), Differences: []string{"winner: node2, again node1", "round: 1, again 2"},
		}, nil
	}
	w, _ := newWorld(t, f)
	said := w.run("decision", "replay", "last")
	if said.exit != Failed {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "decision-replay-differs.golden", said.out+errSection(said.errOut))
}

// A refusal by system keys shows what the nodes scored, beside what else refused them.
func TestNoNodeIsGoodEnough(t *testing.T) {
	f := steady()
	f.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.NoNodeFits, Subject: "vm/web1", Decision: cannedBandRefusal(), NextStep: "see 'berth decision show 3nqk7d2m0d1ab'",
		}, "%s", cannedBandRefusal().GetReason())
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "start", "web1")
	if said.exit != NoNodeFits {
		t.Errorf("exit %d", said.exit)
	}
	golden(t, "error-no-node-good-enough.golden", said.errOut)
}

func TestCapacityInWords(t *testing.T) {
	f := steady()
	w, _ := newWorld(t, f)
	var many []*berthv1.CapacityNode
	for i := range 40 {
		many = append(many, &berthv1.CapacityNode{Node: "hv" + position(int32(i+1)), More: int32(i % 2)})
	}
	for _, c := range []struct {
		answer *berthv1.CapacityResponse
		want   string
	}{
		{&berthv1.CapacityResponse{}, "none fits\n"},
		{
			&berthv1.CapacityResponse{RunsOutOf: "pin", RunsOutFirst: "no node fits", Nodes: []*berthv1.CapacityNode{{Node: "hv1"}}},
			"none fits: hv1 0\npin runs out first: no node fits\n",
		},
		{&berthv1.CapacityResponse{More: 10, AtLeast: true, Nodes: []*berthv1.CapacityNode{{Node: "hv1", More: 10}}}, "at least 10 more fit: hv1 10\n"},
		{&berthv1.CapacityResponse{More: 20, Nodes: many}, "20 more fit on 20 of 40 nodes\n"},
	} {
		f.roomFor = func(*berthv1.CapacityRequest) (*berthv1.CapacityResponse, error) { return c.answer, nil }
		if said := w.run("capacity", "--memory", "1G"); said.exit != Done || said.out != c.want {
			t.Errorf("exit %d, %q, want %q", said.exit, said.out, c.want)
		}
	}
}

// In a cluster with local storage a VM is placed when it is declared: the answer says where its disk belongs.
func TestAddPlacesWhereStorageIsLocal(t *testing.T) {
	f := steady()
	f.addVM = func(r *berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
		decision := cannedDecision()
		decision.Purpose, decision.DryRun = "create", r.GetDryRun()
		return &berthv1.AddVMResponse{SchemaVersion: "1", Vm: &berthv1.VM{Name: "web1", Home: "node2"}, Decision: decision}, nil
	}
	w, _ := newWorld(t, f)
	said := w.run("vm", "add", "web1", "--memory", "1G")
	if want := "vm/web1 added, its disk belongs on node2 (decision 3nqk7d2m0d1ab; 2 of 3 nodes fit, round 1, next best node1 by 100)\n"; said.out != want {
		t.Errorf("said %q, want %q", said.out, want)
	}
	if said := w.run("vm", "add", "web1", "--memory", "1G", "--dry-run"); !strings.HasPrefix(said.out, "dry run 3nqk7d2m0d1ab: nothing was changed\n") {
		t.Errorf("said %q", said.out)
	}
	f.addVM = func(*berthv1.AddVMRequest) (*berthv1.AddVMResponse, error) {
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.NoNodeFits, Decision: cannedRefusal()}, "no node fits")
	}
	if said := w.run("vm", "add", "web1", "--memory", "1G", "--dry-run"); said.exit != NoNodeFits || !strings.Contains(said.out, "memory-promised") {
		t.Errorf("exit %d, %q", said.exit, said.out)
	}
}

// Terms say what is unusual, where anything is.
func TestTermsHaveNotes(t *testing.T) {
	f := steady()
	f.getDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		d := cannedDecision()
		d.GetNodes()[0].GetTerms()[0].Note = "the node's load is not known"
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: d}, nil
	}
	w, _ := newWorld(t, f)
	if said := w.run("decision", "show", "last", "--full"); !strings.Contains(said.out, "CONTRIBUTION  NOTE\n") || !strings.Contains(said.out, "  the node's load is not known\n") {
		t.Errorf("said %s", said.out)
	}
}

// Where the VM's disk says which node it is, nothing is scored, and no score is shown.
func TestWithoutKeysThereIsNoScore(t *testing.T) {
	f := steady()
	f.getDecision = func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error) {
		d := cannedDecision()
		d.Round, d.Request.HomeNode, d.Counterfactual, d.Margin = 0, "node2", "", 0
		d.Reason = "node2 has the VM's disk: with local storage it starts there, and no keys are looked at"
		d.Nodes = []*berthv1.DecisionNode{{Node: "node2", Admitted: true, Rank: 1}}
		return &berthv1.GetDecisionResponse{SchemaVersion: "1", Decision: d}, nil
	}
	w, _ := newWorld(t, f)
	golden(t, "decision-show-home.golden", w.run("decision", "show", "last").out)
}
