package resource

import (
	"fmt"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// samples are names and values for examples.
var (
	samples = map[model.Kind]string{
		model.KindCluster: "prod", model.KindBillingEntity: "reseller", model.KindOffer: "small", model.KindCustomer: "acme",
		model.KindVDC: "acme-prod", model.KindImage: "debian", model.KindNetwork: "lan", model.KindDisk: "web-1-root",
		model.KindNIC: "web-1-nic", model.KindPolicy: "spread", model.KindZone: "fra", model.KindPod: "fra-1", model.KindPool: "fast",
	}
	sampleSettings = map[string]string{
		model.SettingRAMRatio: "1.5", schema.SettingMaster: "true", schema.SettingFor: "vm", schema.SettingFormat: "qcow2",
		model.SettingHeuristicsTo: "pod", model.SettingOverProvisioning: "2",
		schema.SettingBalancer: "even-vm-count", schema.SettingPath: "/srv/images/web-1.qcow2", schema.SettingSource: "default",
	}
)

// sampleItems are members of lists for examples.
var sampleItems = map[string]string{schema.ListWeighers: "vm-count=3,node-affinity=20", schema.ListParameters: "HighVMCount=20"}

// addExamples are of kinds of which not everything can be set together.
var addExamples = map[model.Kind][]string{
	model.KindZone:  {"fra", "fra --planner user-dispersing --apply-planner-heuristics-to pod"},
	model.KindOffer: {"small --for vm", "spread --for vm --planner user-dispersing"},
	model.KindVDC: {
		"acme-prod --customer acme", "acme-prod --customer acme --zone fra", "acme-prod --customer acme --cluster prod --offer small",
	},
	model.KindPool: {"fast --cluster prod --scope local", "shared --cluster prod --scope shared --source vms --over-provisioning 2"},
	model.KindDisk: {
		"web-1-root --image debian --size 20G", "web-1-data --size 200G --pool fast --keep true --bus scsi",
		"web-1-old --path /srv/images/web-1.qcow2 --format qcow2",
	},
}

func addExample(form schema.Form) string {
	if lines := addExamples[form.Kind]; lines != nil {
		start := fmt.Sprintf("  berth %s %s ", form.Kind, verbAdd)
		return start + strings.Join(lines, "\n"+start)
	}
	bare := fmt.Sprintf("  berth %s %s %s", form.Kind, verbAdd, samples[form.Kind])
	full := bare
	for _, link := range form.Links {
		flag := " --" + flagName(link.Name) + " " + samples[link.To]
		full += flag
		if link.Required {
			bare += flag
		}
	}
	for _, setting := range form.Settings {
		value, known := sampleSettings[setting.Name]
		if !known {
			continue
		}
		flag := " --" + flagName(setting.Name) + " " + value
		full += flag
		if setting.Required {
			bare += flag
		}
	}
	for _, list := range form.Lists {
		if item, known := sampleItems[list.Name]; known {
			full += " --" + singular(list.Name) + " " + item
		}
	}
	if full == bare {
		return bare
	}
	return bare + "\n" + full
}

func setExample(form schema.Form) string {
	start := fmt.Sprintf("  berth %s %s %s", form.Kind, verbSet, samples[form.Kind])
	var lines []string
	for _, link := range form.Links {
		if link.Fixed {
			continue
		}
		lines = append(lines, start+" --"+flagName(link.Name)+" "+samples[link.To])
	}
	for _, setting := range form.Settings {
		if value, known := sampleSettings[setting.Name]; known && !setting.Fixed {
			lines = append(lines, start+" --"+flagName(setting.Name)+" "+value)
		}
	}
	lines = lines[:min(len(lines), 2)]
	for _, list := range form.Lists {
		if item, known := sampleItems[list.Name]; known {
			lines = append(lines, start+" --add-"+singular(list.Name)+" "+item)
		}
	}
	if names := removable(form); len(names) > 0 {
		lines = append(lines, start+" --unset "+names[0])
	}
	return strings.Join(lines, "\n")
}
