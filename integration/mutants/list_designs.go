package main

var inConformance = suite{pkg: "./integration/conformance"}

// designMutants are bugs in what was decided on the designs after an audit.
var designMutants = []mutant{
	{
		name: "upgrade-mode-balances", file: "coordinator/balance/pass.go", suite: inBalance.only("Upgrade|NotRepaired"),
		is: "if fleet.Settings.UpgradeMode {", becomes: "if false {",
	},
	{
		name: "groups-hold-since-ever", file: "coordinator/moving/pass.go", suite: inControl.only("ABrokenRuleIsTold"),
		is: "group.HeldSince = time.Time{}, at", becomes: "group.HeldSince = time.Time{}, time.Time{}",
	},
	{
		name: "two-repairs-every-pass", file: "coordinator/moving/pass.go", suite: inControl.only("TwoRulesAsk"),
		is: "if broken[both.Nodes.Group] || broken[both.VMs.Group] {", becomes: "if len(told) < 1<<20 {",
	},
	{
		name: "ranks-without-the-silent", file: "coordinator/placement/ranks.go", suite: inConformance.only("TestConformance/dec8"),
		is: "Silent: s < 0, Cells:", becomes: "Silent: false, Cells:",
	},
	{
		name: "keys-drop-special-keys", file: "coordinator/document/document.go", suite: inConformance.only("TestConformance/dec4"),
		is: "if form.Kind == model.KindCluster {", becomes: "if form.Kind == model.KindCluster && fields[\"keys\"] == nil {",
	},
	{
		name: "combined-is-half", file: "coordinator/view/usage.go", suite: inConformance.only("TestConformance/dec5"),
		is: "cpuWeight*u.CPUShare() + (1-cpuWeight)*u.MemoryShare()", becomes: "(u.CPUShare() + u.MemoryShare()) / 2",
	},
	{
		name: "hosts-rule-unknown", file: "coordinator/document/designs.go", suite: inConformance.only("TestConformance/dec9"),
		is: "\"hosts_rule\": model.SettingNodesRule, ", becomes: "",
	},
	{
		name: "exports-only-our-names", file: "coordinator/estate/diff.go", suite: inConformance.only("TestConformance/dec9"),
		is: "	record.Spelled = nilIfEmpty(one.Spelled)\n", becomes: "",
	},
	{
		name: "a-spelling-that-is-no-longer-so", file: "coordinator/document/designs.go",
		suite: suite{pkg: "./coordinator/estate"}.only("Since|OlderName"),
		is:    " && canonical == value {", becomes: " && canonical != value+\"?\" {",
	},
	{
		name: "planner-of-the-policy", file: "coordinator/estate/search.go", suite: inConformance.only("TestConformance/dec9"),
		is: "if own := zone.Settings[model.SettingPlanner]; own != \"\" {", becomes: "if own := \"\"; own != \"\" {",
	},
	{
		name: "two-repairs-untold", file: "coordinator/affinity/both.go", suite: suite{pkg: "./coordinator/affinity"}.only("InBoth"),
		is: "len(first) == 2 {", becomes: "len(first) == 3 {",
	},
}
