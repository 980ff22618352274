package main

// readinessMutants break what is told of high availability before it is needed.
var readinessMutants = []mutant{
	{
		name: "a-device-that-fails-is-no-news", file: "coordinator/evidence/silence.go", suite: inControl.only("NothingWouldProve"),
		is: "case method == model.FenceCommand && s.Useless != \"\":", becomes: "case method == model.FenceNone && s.Useless != \"\":",
	},
	{
		name: "a-failed-supply-is-another-machine", file: "coordinator/control/fencing/trial.go", suite: inControl.only("NothingWouldProve"),
		is: "case len(all) == 1 && !on && heard", becomes: "case !on && heard",
	},
	{
		name: "one-failure-is-no-chance", file: "coordinator/control/fencing/powers.go", suite: inControl.only("NothingWouldProve"),
		is: "last.times > 1", becomes: "last.times > 0",
	},
	{
		name: "a-fencing-waits-for-a-trial", file: "coordinator/control/fencing/device.go", suite: inControl.only("MakesWay"),
		is: "		c.endTrial()\n", becomes: "",
	},
	{
		name: "room-for-what-runs", file: "coordinator/view/headroom.go", suite: suite{pkg: "./coordinator/view"},
		is: "max(one.Memory, one.Next)", becomes: "one.Memory",
	},
	{
		name: "its-own-node-takes-it", file: "coordinator/control/lifecycle/elsewhere.go", suite: inControl.only("WhereAVMWould"),
		is: "r.Restart, r.Excluded = true, append(r.Excluded, vm.Holder)", becomes: "r.Restart = true",
	},
}
