package group_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestGoldenGroups(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for name, line := range map[string]string{
		"group-list":           "group list",
		"group-list-wide":      "group list -o wide",
		"group-list-broken":    "group list --broken -o name",
		"group-show":           "group show web",
		"group-show-wide":      "group show rack-7 -o wide",
		"group-show-json":      "group show web -o json",
		"group-create":         "group add web --vm web1,web2 --vm web3 --vms-rule negative --vms-enforcing",
		"group-create-dry-run": "group add web --vm web1 --vms-rule positive --dry-run",
		"group-create-quiet":   "group add web --vm web1 --node node1 --nodes-rule negative -q",
		"group-create-json":    "group add web --vm web1 -o json",
		"group-edit":           "group set web --add-vm web2",
		"group-edit-dry-run":   "group set web --add-vm web2 --dry-run",
		"group-edit-same":      "group set rack-7 --priority 2.5",
		"group-delete":         "group delete web --yes",
		"group-check":          "group check",
		"group-check-clean":    "group check --cluster prod",
	} {
		t.Run(name, func(t *testing.T) {
			said := w.Run(strings.Fields(line)...)
			if said.Exit != term.Done {
				t.Errorf("exit %d", said.Exit)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// Contradictions of hard rules are an error for scripts; all of them are shown.
func TestGroupCheckFailsOnErrors(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	said := w.Run("group", "check", "--cluster", "bad")
	if said.Exit != term.Failed {
		t.Errorf("exit %d", said.Exit)
	}
	clitest.Golden(t, "group-check-errors.golden", said.Out+clitest.ErrSection(said.ErrOut))
}

// A group that contradicts another one is refused with both names and what to do.
func TestARefusedGroup(t *testing.T) {
	f := clitest.Steady()
	f.OnCreateGroup = func(*berthv1.CreateGroupRequest) (*berthv1.CreateGroupResponse, error) {
		conflict := clitest.CannedConflicts()[0]
		return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
			Code: rpc.Conflict, Subject: "group/app", Problems: []*berthv1.Problem{{
				Subject: "group/app", Message: conflict.GetText(), NextStep: conflict.GetNextStep(),
			}},
		}, "%s", conflict.GetText())
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("group", "add", "app", "--vm", "web1,web2", "--vms-rule", "positive", "--vms-enforcing")
	if said.Exit != term.Failed || said.Out != "" {
		t.Errorf("exit %d, %q", said.Exit, said.Out)
	}
	clitest.Golden(t, "error-group-refused.golden", said.ErrOut)
	if said := w.Run("group", "show", "none"); said.Exit != term.NotFound || !strings.Contains(
		said.ErrOut, "next step: see 'berth group list'",
	) {
		t.Errorf("exit %d, %s", said.Exit, said.ErrOut)
	}
}

// What stands on the line is what the coordinator is asked. What is not said stays unset, so that it stays as it is.
func TestGroupVerbsSendWhatWasDescribed(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	yes, no := proto.Bool(true), proto.Bool(false)
	for _, c := range []struct {
		line string
		want proto.Message
	}{
		{
			"group add web --cluster prod --vm a,b --vm c --node hv1 --vm-label x --node-label y " +
				"--vms-rule negative --vms-enforcing --nodes-rule positive --priority 2 --unbalanced",
			&berthv1.CreateGroupRequest{Group: &berthv1.Group{
				Name: "web", Cluster: "prod", Vms: []string{"a", "b", "c"}, Hosts: []string{"hv1"}, VmLabels: []string{"x"}, HostLabels: []string{"y"},
				VmsRule: &berthv1.AffinityRule{
					Positive: no, Enforcing: yes, Enabled: yes,
				}, HostsRule: &berthv1.AffinityRule{Positive: yes, Enabled: yes},
				Priority: proto.Float64(2), Unbalanced: true,
			}},
		},
		{
			"group add web --vms-rule disabled --dry-run",
			&berthv1.CreateGroupRequest{DryRun: true, Group: &berthv1.Group{Name: "web", VmsRule: &berthv1.AffinityRule{Enabled: no}}},
		},
		{"group add web", &berthv1.CreateGroupRequest{Group: &berthv1.Group{Name: "web"}}},
		{
			"group set web --add-vm a,b --remove-node hv2 --unset vm-label --name front",
			&berthv1.ChangeGroupRequest{
				Group: "web", AddVms: []string{"a", "b"}, RemoveHosts: []string{"hv2"}, VmLabels: &berthv1.Names{}, Name: proto.String("front"),
			},
		},
		{
			"group set web --vm a --unbalanced=false --priority 0.5 --nodes-rule disabled",
			&berthv1.ChangeGroupRequest{
				Group: "web", Vms: &berthv1.Names{Names: []string{"a"}}, Unbalanced: no, Priority: proto.Float64(0.5),
				HostsRule: &berthv1.AffinityRule{Enabled: no},
			},
		},
		{ // hardening a disabled rule does not enable it
			"group set rack-7 --vms-enforcing --nodes-enforcing=false",
			&berthv1.ChangeGroupRequest{
				Group: "rack-7", VmsRule: &berthv1.AffinityRule{Enforcing: yes, Enabled: no},
				HostsRule: &berthv1.AffinityRule{Enforcing: no, Enabled: yes},
			},
		},
		{"group delete web --yes", &berthv1.DeleteGroupRequest{Group: "web"}},
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
