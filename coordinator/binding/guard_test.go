package binding

import (
	"strings"
	"testing"

	"berth/coordinator/model"
)

type records []model.Resource

func (r records) Resource(string) (model.Resource, bool) { return model.Resource{}, false }

func (r records) Resources(kind model.Kind) (found []model.Resource) {
	for _, one := range r {
		if one.Kind == kind {
			found = append(found, one)
		}
	}
	return found
}

// A domain that was adopted with what is not permitted stays on its node, until somebody lets it through or its cluster permits that.
func TestWhatIsNotPermittedBindsAVM(t *testing.T) {
	vm := &model.VM{ID: "v", Name: "web", Holder: "n1", Epoch: 1, Needs: "host-devices,host-paths"}
	node := &model.NodeFacts{Domains: []model.Domain{{UUID: "v", State: model.DomainRunning, Managed: true, Epoch: 1}}}
	permits := func(list string) records {
		return records{{Kind: model.KindCluster, ID: "c", Name: model.DefaultCluster, Settings: map[string]string{model.SettingPermit: list}}}
	}
	for list, lacks := range map[string]string{
		"none": "host-devices,host-paths", "host-paths": "host-devices", "host-devices,host-paths": "", "all": "",
		"unconfined": "host-devices,host-paths",
	} {
		found := Of(permits(list), vm, model.DefaultCluster, node)
		if lacks == "" && len(found) > 0 || lacks != "" && (len(found) != 1 || found[0].What != lacks) {
			t.Errorf("%s: %v, want %q", list, found, lacks)
		}
	}
	found := Of(records{}, vm, model.DefaultCluster, node)
	texts := Texts(vm.Name, found)
	if len(texts) != 1 || !strings.Contains(texts[0], "berth vm accept web") || !strings.Contains(texts[0], "host-paths") {
		t.Errorf("says %q", texts)
	}
	vm.Needs = ""
	if found := Of(records{}, vm, model.DefaultCluster, node); len(found) > 0 {
		t.Errorf("what was let through: %v", found)
	}
}
