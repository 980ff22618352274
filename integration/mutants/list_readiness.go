package main

// readinessMutants break what is told of high availability before it is needed.
var readinessMutants = []mutant{
	{
		name: "a-device-that-fails-is-no-news", file: "coordinator/evidence/silence.go", suite: inControl.only("NothingWouldProve"),
		is: "case method == model.FenceCommand && s.Useless != \"\":", becomes: "case method == model.FenceNone && s.Useless != \"\":",
	},
	{
		name: "a-failed-supply-is-another-machine", file: "coordinator/control/fencing/identity.go", suite: inControl.only("NothingWouldProve"),
		is: "case alone && !on && heard", becomes: "case !on && heard",
	},
	{
		name: "its-own-node-takes-it", file: "coordinator/control/lifecycle/elsewhere.go", suite: inControl.only("WhereAVMWould"),
		is: "r.Restart, r.Excluded = true, append(r.Excluded, vm.Holder)", becomes: "r.Restart = true",
	},
}
