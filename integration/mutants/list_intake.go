package main

// intakeMutants open doors to those who only connect, and end coordinators by what makes them panic.
var intakeMutants = []mutant{
	{
		name: "the-newest-connection-gives-way", file: "coordinator/doorkeeper/doorkeeper.go", suite: suite{pkg: "./coordinator/doorkeeper"},
		is: "out = line.Front().Value.(*guest)", becomes: "out = g",
	},
	{
		name: "members-count-among-strangers", file: "coordinator/doorkeeper/doorkeeper.go", suite: suite{pkg: "./coordinator/doorkeeper"},
		is: "strange: !member && !k.familiar[address]}", becomes: "strange: true}",
	},
	{
		name: "a-request-is-a-proof", file: "coordinator/doorkeeper/doorkeeper.go", suite: suite{pkg: "./coordinator/doorkeeper"},
		is: "	default: // the handshake is over, and a request has begun", becomes: "	default:\n		k.Left(conn)",
	},
	{
		name: "a-node-has-any-number-of-connections", file: "coordinator/doorkeeper/doorkeeper.go", suite: suite{pkg: "./coordinator/doorkeeper"},
		is: "over = k.holders[holder] > most || k.known > k.limits.Known", becomes: "over = k.known > k.limits.Known",
	},
	{
		name: "a-session-has-any-number-of-connections", file: "coordinator/doorkeeper/doorkeeper.go",
		suite: suite{pkg: "./coordinator/doorkeeper"},
		is:    "\"session/\"+session, k.limits.Holder)", becomes: "\"session/\"+session, k.limits.Known)",
	},
	{
		name: "handshakes-have-no-bound", file: "coordinator/consensus/listener.go", suite: inConsensus.only("ConnectionsThatSayNothing"),
		is: "var handshakes = doorkeeper.Limits{Address: 16, All: 256}", becomes: "var handshakes = doorkeeper.Limits{Address: 0, All: 0}",
	},
	{
		name: "a-member-sends-texts-of-any-length", file: "coordinator/consensus/sieve/sieve.go",
		suite: suite{pkg: "./coordinator/consensus/sieve"},
		is:    "case bytes > s.limits.Text:", becomes: "case bytes > s.limits.Text && s.answers:",
	},
	{
		name: "a-member-sends-any-number-of-values", file: "coordinator/consensus/sieve/sieve.go",
		suite: suite{pkg: "./coordinator/consensus/sieve"},
		is:    "case s.values > s.limits.Values:", becomes: "case s.values > s.limits.Values && s.answers:",
	},
	{
		name: "large-messages-of-a-member-side-by-side", file: "coordinator/consensus/sieve/conn.go",
		suite: suite{pkg: "./coordinator/consensus/sieve"},
		is:    "if c.turn != nil && c.scan.large && !c.holds() {", becomes: "if c.turn == nil && c.scan.large && !c.holds() {",
	},
	{
		name: "a-member-speaks-for-another", file: "coordinator/consensus/sieve/sieve.go",
		suite: suite{pkg: "./coordinator/consensus/sieve"},
		is:    "if string(s.kept) != s.limits.Who {", becomes: "if len(s.kept) != len(s.limits.Who) {",
	},
	{
		name: "extensions-without-bytes-are-let-through", file: "coordinator/consensus/sieve/sieve.go",
		suite: suite{pkg: "./coordinator/consensus/sieve"},
		is:    "if isExtension(first) && time == 0 {", becomes: "if isExtension(first) && time == 0 && length != 0 {",
	},
	{
		name: "a-term-has-two-leaders", file: "coordinator/consensus/claims/claims.go",
		suite: suite{pkg: "./coordinator/consensus/claims"},
		is:    "	if claimed == b.term {\n", becomes: "	if claimed == b.term && b.leader == \"\" {\n",
	},
	{
		name: "who-does-not-lead-calls-elections", file: "coordinator/consensus/claims/claims.go",
		suite: suite{pkg: "./coordinator/consensus/claims"},
		is:    "if from != b.leader || b.term != term {", becomes: "if b.leader == \"\" || b.term != term {",
	},
	{
		name: "the-last-term-is-believed", file: "coordinator/consensus/claims/claims.go",
		suite: suite{pkg: "./coordinator/consensus/claims"},
		is:    "if brought > term && brought-term > Farthest {", becomes: "if brought > term && brought-term == Farthest {",
	},
	{
		name: "a-member-brings-any-number-of-terms", file: "coordinator/consensus/claims/claims.go",
		suite: suite{pkg: "./coordinator/consensus/claims"},
		is:    "	has.left--\n", becomes: "",
	},
	{
		name: "answers-bring-any-term", file: "coordinator/consensus/claims/claims.go",
		suite: suite{pkg: "./coordinator/consensus/claims"},
		is:    "	if answered <= asked {\n", becomes: "	if answered != 0 {\n",
	},
	{
		name: "a-member-has-any-number-of-connections", file: "coordinator/consensus/listener.go", suite: inConsensus.only("NewestConnections"),
		is: "if others < connections {", becomes: "if others >= 0 {",
	},
	{
		name: "an-answer-behind-a-refusal-waits", file: "coordinator/consensus/pipeline.go", suite: inConsensus.only("BehindARefusal"),
		is: "listens = answer.Response().Success", becomes: "listens = answer.Response() != nil",
	},
	{
		name: "a-panic-beside-a-loop-ends-the-leader", file: "coordinator/control/lead/keep.go", suite: suite{pkg: "./coordinator/control/lead"},
		is: "if cause := recover(); cause != nil {", becomes: "if cause := any(nil); cause != nil {",
	},
	{
		name: "a-fencing-that-panics-stays-open", file: "coordinator/control/fencing/device.go", suite: inControl.only("AFencingThatPanics"),
		is:      "c.with(func(f *Fencer) { f.Answered(&node, err == nil, c.Now()) })",
		becomes: "if errors.Is(err, lead.ErrPanicked) {\n\t\t\treturn\n\t\t}",
	},
	{
		name: "a-node-that-never-lists-is-waited-for", file: "coordinator/evidence/word.go", suite: inEvidence.only("ANodeThatNeverLists"),
		is:      "return facts.MetAt.IsZero() || at.Before(facts.MetAt.Add(listsWithin))",
		becomes: "return facts.MetAt.IsZero() || !at.Before(facts.MetAt)",
	},
	{
		name: "a-document-s-vm-is-never-given", file: "coordinator/evidence/word.go", suite: inEvidence.only("ANodeThatNeverLists"),
		is:      "vm.LastNode == \"\" && vm.Spec.XML == \"\" && vm.Whereabouts",
		becomes: "vm.LastNode == \"\" && vm.Whereabouts",
	},
}
