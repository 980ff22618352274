package admission

import (
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/shared/domxml/guard"
)

func TestAnIdentityHasWhatItsRecordSays(t *testing.T) {
	operator := model.Identity{Kind: model.IdentityOperator, Name: "alice"}
	said := operator
	said.Permit = "host-paths"
	for name, c := range map[string]struct {
		of   model.Identity
		want string
	}{
		"written before there was anything to say": {operator, guard.All},
		"said":          {said, "host-paths"},
		"revoked":       {said.Revoke(time.Unix(1, 0), "operator/bob", "left"), guard.None},
		"a node":        {model.Identity{Kind: model.IdentityNode}, guard.None},
		"a coordinator": {model.Identity{Kind: model.IdentityCoordinator, Permit: guard.All}, guard.None},
		"nobody":        {model.Identity{}, guard.None},
	} {
		if got := Held(&c.of); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	all := []model.Identity{operator, said, operator.Revoke(time.Unix(1, 0), "x", ""), {Kind: model.IdentityNode, Name: "hv1"}}
	if names := Undecided(all); !slices.Equal(names, []string{"alice"}) {
		t.Errorf("nobody has decided about %v", names)
	}
}

// A wider cluster lets go what is bound in it, and folders for images let everybody use what is in them: it is given by whoever has it.
func TestAClusterGivesWhatItDidNotPermitBefore(t *testing.T) {
	cluster := func(settings ...string) *model.Resource {
		r := &model.Resource{Kind: model.KindCluster, Settings: map[string]string{}}
		for i := 0; i < len(settings); i += 2 {
			r.Settings[settings[i]] = settings[i+1]
		}
		return r
	}
	paths := []guard.Permission{guard.HostPaths}
	for name, c := range map[string]struct {
		guarded       string
		before, after *model.Resource
		want          []guard.Permission
	}{
		"nothing":           {"yes", cluster(), cluster("overhead", "1"), nil},
		"a new cluster":     {"yes", nil, cluster(), nil},
		"a new one, wider":  {"yes", nil, cluster("permit", "host-paths"), paths},
		"of an old site":    {"", nil, cluster("permit", "all"), nil},
		"more":              {"yes", cluster("permit", "unconfined"), cluster("permit", "host-paths,unconfined"), paths},
		"less":              {"yes", cluster("permit", "all"), cluster("permit", "none"), nil},
		"unset, old site":   {"", cluster("permit", "none"), cluster(), guard.Permissions()},
		"a folder":          {"yes", cluster(), cluster("image_folders", model.DefaultImageFolders+",/etc/berth"), paths},
		"a folder less":     {"yes", cluster(), cluster("image_folders", "/srv/images"), nil},
		"folders as before": {"yes", cluster("image_folders", "none"), cluster("image_folders", "none", "permit", "none"), nil},
		"folders unset":     {"yes", cluster("image_folders", "none"), cluster(), paths},
	} {
		if got := Gives(clusters(c.guarded), c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhoAcceptsLetsThroughWhatWasNotGiven(t *testing.T) {
	vm := &model.VM{Needs: "host-devices,host-paths", Drift: &model.Drift{Edits: []model.DeviceEdit{
		{Key: "vda", Needs: "host-paths"}, {Key: "vdb", Needs: "unconfined"}, {Key: "vdc", Needs: "firmware", By: "operator/alice"},
	}}}
	if got := guard.Join(Asked(vm)); got != "host-devices,host-paths,unconfined" {
		t.Errorf("it asks for %s", got)
	}
	if got := Asked(&model.VM{}); len(got) > 0 {
		t.Errorf("of a VM as it was made: %v", got)
	}
}
