package suggestions

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"berth/coordinator/admission"
	"berth/coordinator/model"
	"berth/shared/domxml/guard"
)

// What help shows as an example is what people try first, on a new site: that permits images in the image folders, declared pools and
// networks of libvirt, and nothing else.
func TestANewSitePermitsWhatExamplesShow(t *testing.T) {
	permitted := guard.Permitted{Folders: strings.Split(model.DefaultImageFolders, ",")}
	checked := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			spec := shown(strings.Fields(line))
			checked += len(spec.Disks) + len(spec.Networks)
			found, err := admission.Spec(&spec, permitted)
			if err != nil || len(found) > 0 {
				t.Errorf("%s: a new site refuses %q: %v, %v", cmd.CommandPath(), strings.TrimSpace(line), found, err)
			}
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(programs["berth"]())
	if checked < 15 {
		t.Errorf("only %d paths and networks are shown: this test looks at the wrong place", checked)
	}
	bridge := shown(strings.Fields("berth vm add x --network bridge:br0 --iso /srv/iso/a.iso"))
	if found, _ := admission.Spec(&bridge, permitted); len(found) != 2 {
		t.Errorf("of a bridge and a path elsewhere it finds %v", found)
	}
}

// shown are the files of hosts and the networks that a line names.
func shown(words []string) (spec model.VMSpec) {
	for i, word := range words {
		flag, value, given := strings.Cut(word, "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		value, _, _ = strings.Cut(value, ",")
		switch flag {
		case "--network", "--source":
			spec.Networks = append(spec.Networks, value)
		case "--disk", "--iso", "--image", "--kernel", "--initrd", "--path":
			if strings.HasPrefix(value, "/") {
				spec.Disks = append(spec.Disks, model.Disk{Path: value})
			}
		}
	}
	return spec
}
