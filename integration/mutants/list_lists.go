package main

// listMutants are about lists: what a filter leaves out, what is believed of one, and how numbers are written.
var listMutants = []mutant{
	{
		name: "list-by-one-field-of-several", file: "coordinator/api/answer/filter.go", suite: inAPI.only("TestListsAreNarrowed"),
		is: "return f.Labelled(vm.Labels) && among(", becomes: "return f.Labelled(vm.Labels) || among(",
	},
	{
		name: "list-by-a-label-that-nobody-has", file: "coordinator/api/answer/filter.go", suite: inAPI.only("TestListsAreNarrowed"),
		is: "if !carried(list.Labels,", becomes: "if false && !carried(list.Labels,",
	},
	{
		name: "who-is-late-is-unreachable", file: "coordinator/cli/term/session.go",
		suite: suite{pkg: "./coordinator/cli/term", run: "TestACoordinatorThatIsLateIsBusy"},
		is:    "m.late = m.sent && outOfTime(err)", becomes: "m.late = m.sent && m.slow",
	},
	{
		name: "filter-that-was-not-used", file: "coordinator/cli/term/filter.go",
		suite: suite{pkg: "./coordinator/cli/term", run: "TestTheCoordinatorNarrowsLists"},
		is:    "if f.Filter() == nil || answer.GetFiltered() {", becomes: "if true || f.Filter() == nil || answer.GetFiltered() {",
	},
	{
		name: "list-of-what-is-too-late", file: "coordinator/api/answer/past.go", suite: inAPI.only("TestHistoryIsNarrowed"),
		is: "(f.past.until.IsZero() || at.Before(f.past.until))", becomes: "(true || at.Before(f.past.until))",
	},
	{
		name: "decisions-end-at-the-page", file: "coordinator/api/explain/decision.go", suite: inAPI.only("TestHistoryIsNarrowed"),
		is: "&& !filter.Before(decisions[page.Limit].At)", becomes: "&& filter.During(decisions[page.Limit].At)",
	},
	{
		name: "events-of-others-are-followed", file: "coordinator/api/event.go", suite: inAPI.only("TestAPartOfTheEventsIsFollowed"),
		is: "stream, s.asked(snapshot, filter, events)...)", becomes: "stream, events...)",
	},
	{
		name: "age-that-lies-ahead", file: "coordinator/cli/term/past.go",
		suite: suite{pkg: "./coordinator/cli/term", run: "TestHistoryIsAskedForByTime"},
		is:    "t.now().Add(-age)", becomes: "t.now().Add(age)",
	},
	{
		name: "stay-without-what-would-differ", file: "coordinator/placement/explain.go", suite: inPlacement.only("TestGolden"),
		is: "sentences := r.leaving()", becomes: "var sentences []string",
	},
	{
		name: "among-names-nobody", file: "coordinator/placement/engine.go", suite: inPlacement.only("TestGolden"),
		is: "in.AmongWho, in.AmongWhy = request.Purpose.ordering()", becomes: "in.AmongWho, in.AmongWhy = \"\", \"\"",
	},
	{
		name: "draw-that-the-vm-has-won", file: "coordinator/cli/explanation/explanation.go",
		suite: suite{pkg: "./coordinator/cli/decision", run: "TestADrawSaysAmongHowMany"},
		is:    "if winner.GetCurrent() {\n\t\treturn \"\"", becomes: "if winner == nil {\n\t\treturn \"\"",
	},
	{
		name: "ranks-as-they-come", file: "coordinator/cli/explanation/ranks.go",
		suite: suite{pkg: "./coordinator/cli/explanation", run: "TestRanksStandInTheOrderInWhichTheyDecide"},
		is:    "range byWhatDecides(d.GetRanks())", becomes: "range d.GetRanks()",
	},
	{
		name: "bad-number-in-the-words-of-a-library", file: "coordinator/cli/root.go",
		suite: suite{pkg: "./coordinator/cli/term", run: "TestABadNumberNamesItsFlagAndAnExample"},
		is:    "return term.FlagError(cmd, err)", becomes: "return term.Usage(cmd, err)",
	},
	{
		name: "libvirts-words-alone", file: "agent/hypervisor/processes/held.go",
		suite: suite{pkg: "./agent/hypervisor/libvirt", run: "TestNoUserReadsLibvirtsWordsAlone"},
		is:    "return hypervisor.Said(hypervisor.ErrFailed, words)", becomes: "return errors.New(words)",
	},
	{
		name: "libvirts-words-without-advice", file: "agent/hypervisor/said.go",
		suite: suite{pkg: "./agent/hypervisor/libvirt", run: "TestNoUserReadsLibvirtsWordsAlone"},
		is:    "step != \"\" {", becomes: "step != \"\" && cause == ErrFailed {",
	},
	{
		name: "events-as-they-come", file: "coordinator/cli/event/event.go",
		suite: suite{pkg: "./coordinator/cli", run: "TestGoldenOutput"},
		is:    "	sorting.Sort(events)\n", becomes: "",
	},
	{
		name: "network-of-no-node-is-attached", file: "coordinator/api/guests/amend.go",
		suite: inAPI.only("TestANetworkThatNoNodeHas"),
		is:    "len(nowhere) > 0", becomes: "len(nowhere) > 9",
	},
	{
		name: "attached-nic-goes-anywhere", file: "coordinator/connected/connected.go", suite: suite{pkg: "./coordinator/connected"},
		is: "edit.Is != \"\" && edit.Is != Nowhere", becomes: "edit.Is == Nowhere",
	},
	{
		name: "network-that-only-sleeps", file: "coordinator/api/answer/network.go", suite: inAPI.only("TestANetworkThatNoNodeHas"),
		is: "!slices.ContainsFunc(told, has)", becomes: "slices.ContainsFunc(told, has)",
	},
	{
		name: "help-wider-than-the-terminal", file: "coordinator/cli/term/help.go",
		suite: suite{pkg: "./coordinator/cli/term", run: "TestHelpFitsTheTerminal"},
		is:    "width := HelpWidth(out)", becomes: "width := 0 * HelpWidth(out)",
	},
	{
		name: "number-that-a-double-does-not-keep", file: "shared/rpc/numbers.go", suite: suite{pkg: "./shared/rpc", run: "TestWholeNumbers"},
		is: "const largestExact = 1<<53 - 1", becomes: "const largestExact = 1<<62 - 1",
	},
}
