package main

// hostMutants are planted bugs in what is known of hosts that sleep, and of machines that are not the one they say they are.
var hostMutants = []mutant{
	// Hosts that sleep.
	{
		name: "sleep-is-no-time", file: "agent/watchdog/watchdog.go", suite: suite{pkg: "./agent/watchdog"},
		is: "return w.until.Add(w.slept - w.Slept())", becomes: "return w.until",
	},
	{
		name: "guests-run-after-the-sleep", file: "agent/watchdog/watchdog.go", suite: suite{pkg: "./agent/watchdog"},
		is: "		w.Guests.Pause(ctx)", becomes: "		_ = ctx",
	},
	{
		name: "virtual-watchdog", file: "agent/watchdog/asleep.go", suite: suite{pkg: "./agent/watchdog"},
		is: "case host.Virtual:", becomes: "case host.Virtual && host.Driver == \"\":",
	},
	{
		name: "sleep-before-the-lease", file: "agent/session/lease.go", suite: suite{pkg: "./agent/session"},
		is: "at = at.Add(asleep - c.Watchdog.Asleep())", becomes: "_ = asleep",
	},
	// Guests whose memory is kept.
	{
		name: "kept-memory-is-gone", file: "coordinator/evidence/word.go", suite: suite{pkg: "./coordinator/evidence"},
		is: "case domain != nil && (Copy{Domain: *domain}).KeepsMemory():", becomes: "case domain != nil && vm.ID == \"\":",
	},
	{
		name: "kept-memory-ends-with-the-power", file: "coordinator/evidence/word.go", suite: suite{pkg: "./coordinator/evidence"},
		is: "if ends, keeps := one.keepsMemory(vm); keeps {", becomes: "if ends, keeps := one.keepsMemory(vm); keeps && vm.ID == \"\" {",
	},
	{
		name: "nobody-hears-of-kept-memory", file: "coordinator/evidence/saved.go", suite: suite{pkg: "./coordinator/evidence"},
		is: "return c.KeepsMemory() && c.Node != but", becomes: "return false",
	},
	// Two machines that say they are one node.
	{
		name: "a-clone-is-the-node", file: "coordinator/model/machine.go", suite: suite{pkg: "./coordinator/model"},
		is: "m.Source == n.HardwareSource && m.Hardware != n.Hardware:", becomes: "m.Source == n.HardwareSource && m.Hardware == n.Boot:",
	},
	{
		name: "the-machine-is-not-told", file: "agent/hoststat/hoststat.go", suite: suite{pkg: "./agent/hoststat"},
		is: "is.Hardware, is.HardwareSource = r.hardware(is.MachineID)", becomes: "",
	},
	{
		name: "a-boot-comes-back", file: "coordinator/model/machine.go", suite: suite{pkg: "./coordinator/model"},
		is: "m.Boot != n.Boot && m.Boot == n.LastBoot:", becomes: "m.Boot != n.Boot && m.Boot == n.Boot:",
	},
	{
		name: "a-clones-list-is-believed", file: "coordinator/inventory/facts.go", suite: inInventory.only("Doubted"),
		is: `why != "" && facts.Liveness == model.Up {`, becomes: `why != "" && facts.Liveness == "" {`,
	},
	{
		name: "order-one-of-two-machines", file: "coordinator/agents/server.go", suite: inAgents.only("Held"),
		is: "known && (node.Fenced() || s.doubted(x, &node)) {", becomes: "known && node.Fenced() {",
	},
	{
		name: "fence-one-of-two-machines", file: "coordinator/evidence/silence.go", suite: inControl.only("TwoMachines"),
		is: "case s.Node.Held():", becomes: "case s.Node.Held() && s.Node.Maintenance:",
	},
	{
		name: "a-clones-boot-counts", file: "coordinator/control/fencing/fencer.go", suite: inControl.only("TwoMachines"),
		is: `if why := after.Doubt(machine); why != "" {`, becomes: `if why := after.Doubt(machine); why != "" && one.Asking {`,
	},
}
