package main

// fenceMutants are planted bugs in what fence devices say, and in what they are asked for.
var fenceMutants = []mutant{
	{
		name: "no-veto-of-nodes", file: "coordinator/control/fencing/veto.go", suite: inControl.only("Reaches"),
		is: "reached[i] = done.Reached", becomes: "_, reached[i] = done.Reached, \"\"",
	},
	{
		name: "no-veto-of-the-leader", file: "coordinator/control/fencing/veto.go", suite: inControl.only("Reaches"),
		is: "reached[len(peers)] = c.devices.Reach(limited, addresses)", becomes: "c.devices.Reach(limited, addresses)",
	},
	{
		name: "a-machine-reaches-itself", file: "shared/reach/reach.go", suite: suite{pkg: "./shared/reach"},
		is: "return here != there", becomes: "return here != \"\" || there != \"\"",
	},
	{
		name: "another-machines-device", file: "coordinator/evidence/silence.go", suite: inControl.only("AnotherMachine"),
		is: `case method == model.FenceCommand && s.Other != "":`, becomes: `case method == model.FenceCommand && s.Other != "" && s.Asking:`,
	},
	{
		name: "an-identity-lasts-for-ever", file: "coordinator/control/fencing/silence.go", suite: inControl.only("AnotherMachine"),
		is: "if c.checkAnew(ctx, node) {", becomes: "if len(c.IdentityOf(&node)) == 0 && c.checkAnew(ctx, node) {",
	},
	{
		name: "any-order-of-bytes", file: "coordinator/model/identity.go", suite: suite{pkg: "./coordinator/model"},
		is: "return slices.Equal(is, second)", becomes: "return len(is) == len(second)",
	},
	{
		name: "no-word-about-the-machine", file: "coordinator/model/identity.go", suite: suite{pkg: "./coordinator/model"},
		is: "is, what = n.Hardware, \"its firmware says\"", becomes: "what = n.Hardware",
	},
	{
		name: "fence-while-paused", file: "coordinator/evidence/armed.go", suite: inControl.only("HAIsPaused"),
		is: "return model.HAPauseOf(m.Meta(model.MetaHAPause), m.At)", becomes: "return model.HAPauseOf(m.Meta(\"?\"), m.At)",
	},
	{
		name: "armed-for-nobody", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("NothingNeeds"),
		is: "after.Watchdog = 0 // and then", becomes: "_ = after // and then",
	},
	{
		name: "an-old-word-of-an-armed-one", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("NothingNeeds"),
		is: "f.disarmed[node], f.fresh[node] = true, true", becomes: "f.disarmed[node], f.fresh[node] = false, true",
	},
	{
		name: "a-deaf-leader-leads-on", file: "coordinator/consensus/upkeep.go",
		suite: suite{pkg: "./coordinator/consensus", run: "HearsNoAgents"},
		is:    "report.Asking <= own.Hearing", becomes: "report.Asking >= own.Hearing",
	},
	{
		name: "a-veto-hides-a-strike", file: "coordinator/control/fencing/device.go", suite: inControl.only("StrikesAnother"),
		is:      "reached := c.askPeers(ctx, node)\n",
		becomes: "reached := c.askPeers(ctx, node)\n\tif reached != nil {\n\t\treturn reached\n\t}\n",
	},
	{
		name: "one-plug-of-two", file: "coordinator/fence/run.go", suite: suite{pkg: "./coordinator/fence", run: "TwoPlugs"},
		is: "all := devices.All()", becomes: "all := devices.All()[:1]",
	},
	{
		name: "one-plug-after-the-other", file: "coordinator/fence/run.go", suite: suite{pkg: "./coordinator/fence", run: "TwoPlugs"},
		is:      "if err := r.off(ctx, device); err != nil {",
		becomes: "if err := errors.Join(r.off(ctx, device), r.isOff(ctx, device)); err != nil {",
	},
	{
		name: "calls-of-one-device", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("TwoLeaders"),
		is: "limit += 2 * one.Within()", becomes: "limit = fenceHaste + 5*time.Second + 2*one.Within()",
	},
	{
		name: "the-second-one-unchecked", file: "coordinator/control/fencing/identity.go", suite: inControl.only("AnotherMachine"),
		is: "range node.Fence.All() {", becomes: "range node.Fence.All()[:1] {",
	},
	{
		name: "one-plug-twice", file: "coordinator/model/fence.go", suite: suite{pkg: "./coordinator/model"},
		is: "case slices.ContainsFunc(all[:i], one.sameTarget):", becomes: "case slices.ContainsFunc(all[:0*i], one.sameTarget):",
	},
	{
		name: "only-first-plugs-are-compared", file: "coordinator/model/fence.go", suite: suite{pkg: "./coordinator/model"},
		is: "slices.ContainsFunc(other.All(), one.sameTarget)", becomes: "slices.ContainsFunc(other.All()[:1], one.sameTarget)",
	},
	{
		name: "one-board-under-two-programs", file: "coordinator/model/fence.go", suite: suite{pkg: "./coordinator/model"},
		is: "(d.Program == other.Program || own[fenceAddress] != \"\")", becomes: "d.Program == other.Program",
	},
	{
		name: "the-held-one-has-a-veto", file: "coordinator/control/fencing/veto.go", suite: inControl.only("Reaches"),
		is: "node.ID != asked.ID && !node.Fenced()", becomes: "node.ID == asked.ID && !node.Fenced()",
	},
}
