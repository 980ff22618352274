package api

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// A cluster that is left alone for an upgrade is easily forgotten, so the status names it with the way out.
func TestUpgradeModeIsTold(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	told := func() bool {
		status, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(status.Msg.GetProblems(), func(line string) bool {
			return strings.HasPrefix(line, "cluster default is in upgrade mode: ") && strings.HasSuffix(line,
				"'berth cluster set default --upgrade-mode false' ends it")
		})
	}
	set := func(value string) {
		changed, err := client.ChangeResource(t.Context(), connect.NewRequest(&berthv1.ChangeResourceRequest{
			Kind: "cluster", Name: model.DefaultCluster, Settings: map[string]string{model.SettingUpgradeMode: value},
		}))
		if err != nil || changed.Msg.GetResource().GetSettings()[model.SettingUpgradeMode] != value {
			t.Fatalf("%v, %v", changed, err)
		}
	}
	if told() {
		t.Error("it is told of before")
	}
	if set("true"); !told() {
		t.Error("it is not told")
	}
	if set("false"); told() {
		t.Error("it is told of afterwards")
	}
}
