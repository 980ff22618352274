package vm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/keyform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// linkFlags name what a VM links to in the estate, and its own keys. Files have flags of other names: see specFlags.
type linkFlags struct {
	vdc, offer, from string
	attach, nics     []string
	keyTexts         []string
}

var linkFlagNames = []string{"vdc", "offer", "from", "attach", "nic"}

func (f *linkFlags) flags(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.vdc, "vdc", "", "`VDC` that it belongs to: it gives it cluster, customer and their keys")
	flags.StringVar(&f.offer, "offer", "", "product `OFFER` whose keys it takes over")
	flags.StringVar(&f.from, "from", "", "declared `IMAGE` that it is made from (a file is --image)")
	flags.StringArrayVar(&f.attach, "attach", nil, "declared `DISK` (a file is --disk); repeat for more, the first one's keys count")
	flags.StringArrayVar(&f.nics, "nic", nil, "declared `NIC` (a plain network is --network); repeat for more, the first one's keys count")
	for flag, kind := range map[string]model.Kind{
		"vdc": model.KindVDC, "offer": model.KindOffer, "from": model.KindImage, "attach": model.KindDisk, "nic": model.KindNIC,
	} {
		term.Complete(cmd, flag, a.ResourceNames(kind))
	}
}

func (f *linkFlags) keyFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.keyTexts, "key", nil, "customer key of its own: `NAME=VALUE@WEIGHT`; repeat for more")
	term.Complete(cmd, "key", cobra.NoFileCompletions)
}

// keys reads --key NAME=VALUE@WEIGHT.
func (f *linkFlags) keys(cmd *cobra.Command) ([]*berthv1.Key, error) {
	var keys []*berthv1.Key
	for _, text := range f.keyTexts {
		at := strings.LastIndex(text, "@")
		if at < 0 {
			return nil, term.Usagef(cmd, "--key %s: want NAME=VALUE@WEIGHT, for instance Group1=1@-100", text)
		}
		key, err := keyform.Parse(string(model.KindVM), text[:at], text[at+1:], model.CustomerKey)
		if err != nil {
			return nil, term.Usage(cmd, fmt.Errorf("--key %s: %w", text, err))
		}
		if slices.ContainsFunc(keys, func(other *berthv1.Key) bool { return other.GetName() == key.GetName() }) {
			return nil, term.Usagef(cmd, "--key %s: %s is there twice", text, key.GetName())
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// change puts the links that stand on the line into a change, and empties those that are to go.
func (f *linkFlags) change(cmd *cobra.Command, into *berthv1.VMChange, unset []string) error {
	gone := map[string]bool{}
	for _, flag := range unset {
		gone[flag] = true
	}
	for _, link := range []struct {
		flag  string
		value *string
		field **string
	}{{"vdc", &f.vdc, &into.Vdc}, {"offer", &f.offer, &into.Offer}, {"from", &f.from, &into.Image}} {
		given := cmd.Flags().Changed(link.flag)
		if given && *link.value == "" {
			return term.Usagef(cmd, "--%s: a name is missing; --unset %s takes the link away", link.flag, link.flag)
		}
		if given || gone[link.flag] {
			*link.field = link.value // empty where it is to go
		}
	}
	if gone["attach"] || len(f.attach) > 0 {
		into.Disks = &berthv1.Names{Names: f.attach}
	}
	if gone["nic"] || len(f.nics) > 0 {
		into.Nics = &berthv1.Names{Names: f.nics}
	}
	return nil
}

// estateRows are what a VM links to, and what it gets by that.
func estateRows(vm *berthv1.VM) [][2]string {
	return [][2]string{
		{"cluster", vm.GetCluster()},
		{"within", vm.GetWithin()},
		{"VDC", vm.GetVdc()},
		{"customer", vm.GetCustomer()},
		{"billing entity", vm.GetBillingEntity()},
		{"offer", vm.GetOffer()},
		{"from image", vm.GetImage()},
		{"attached", strings.Join(vm.GetDisks(), ", ")},
		{"NICs", strings.Join(vm.GetNics(), ", ")},
	}
}
