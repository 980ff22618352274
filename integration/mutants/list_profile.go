package main

// profileMutants are bugs in what a week of samples comes to, and in which nodes tell of it.
var profileMutants = []mutant{
	{
		name: "a-minute-is-a-sum", file: "agent/profile/recent.go", suite: suite{pkg: "./agent/profile"},
		is: "float64(measured.sums[f]) / float64(count)", becomes: "float64(measured.sums[f])",
	},
	{
		name: "a-percentile-is-the-median", file: "agent/profile/bins.go", suite: suite{pkg: "./agent/profile"}.only("PercentilesAre"),
		is: "(total*percentile+99)/100", becomes: "(total*50+99)/100",
	},
	{
		name: "an-hour-of-few-samples-is-known", file: "agent/profile/profile.go", suite: suite{pkg: "./agent/profile"}.only("FewSamples"),
		is: "bits.OnesCount64(s.running.minutes[f]) >= enough", becomes: "bits.OnesCount64(s.running.minutes[f]) >= 1",
	},
	{
		name: "an-old-hour-is-told-for-ever", file: "agent/profile/profile.go", suite: suite{pkg: "./agent/profile"}.only("ALaterWeek"),
		is: " || age > tooOld*week.Hours*time.Hour", becomes: "",
	},
	{
		name: "guests-that-left-are-kept-without-bounds", file: "agent/profile/profile.go",
		suite: suite{pkg: "./agent/profile"}.only("MemoryIsBounded"), is: "gone[min(len(gone), mostGone):]", becomes: "gone[len(gone):]",
	},
	{
		name: "another-nodes-profiles-are-taken", file: "agent/profile/file.go", suite: suite{pkg: "./agent/profile"}.only("OtherFiles"),
		is: "kept.Of != node", becomes: "kept.Of == \"\"",
	},
	{
		name: "profiles-end-with-the-agent", file: "agent/profile/recorder/recorder.go",
		suite: suite{pkg: "./agent/profile/recorder"}.only("OutliveTheAgent"),
		is:    "		case <-ctx.Done():\n			r.save()\n", becomes: "		case <-ctx.Done():\n",
	},
	{
		name: "an-earlier-week-counts", file: "coordinator/profile/profile.go", suite: suite{pkg: "./coordinator/profile"}.only("TheNewest"),
		is: "!known || order > 0", becomes: "!known || order < 0",
	},
	{
		name: "nodes-that-a-vm-left-are-not-asked", file: "coordinator/api/profiles/profiles.go",
		suite: suite{pkg: "./coordinator/api"}.only("AProfileIsAsked"),
		is:    "[]string{op.Target, op.Source}", becomes: "[]string{vm.Holder}",
	},
}
