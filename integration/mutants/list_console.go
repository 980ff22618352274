package main

// consoleMutants are planted bugs in who is let in by a browser, and in what may be done there.
var consoleMutants = []mutant{
	{
		name: "who-missed-an-edition-gets-a-patch", file: "coordinator/console/live.go", suite: suite{pkg: "./coordinator/console"},
		is: "	case e.version - 1:", becomes: "	case e.version - 1, e.version - 2:",
	},
	{
		name: "an-added-node-stands-as-its-like", file: "coordinator/view/grown.go", suite: suite{pkg: "./coordinator/view"},
		is: "	facts.Liveness, facts.LivenessReason, facts.Ailing = model.Up, \"\", \"\"", becomes: "",
	},
	{
		name: "a-read-only-session-changes-things", file: "coordinator/api/sessions/desk.go",
		suite: suite{pkg: "./coordinator/api"}.only("AReadOnlySession"),
		is:    "if one.Role != session.Operate {", becomes: "if one.Role == \"\" {",
	},
	{
		name: "a-link-is-good-twice", file: "coordinator/api/sessions/calls.go",
		suite: suite{pkg: "./coordinator/api"}.only("ALinkOpensOneSession"),
		is:    "!known || offered.Open() || !live(", becomes: "!known || !live(",
	},
	{
		name: "sessions-outlive-their-operator", file: "coordinator/api/sessions/desk.go",
		suite: suite{pkg: "./coordinator/api"}.only("SessionsEnd"),
		is:    "identities.Judge(x, bearer, now) != identities.Recorded", becomes: "identities.Judge(x, bearer, now) == identities.Expired",
	},
	{
		name: "other-sites-drive-the-console", file: "coordinator/console/console.go",
		suite: suite{pkg: "./coordinator/console"}.only("AChangeComesFrom"),
		is:    "http.NewCrossOriginProtection().Handler(mux)", becomes: "mux",
	},
	{
		name: "a-feed-for-each-console", file: "coordinator/console/live.go",
		suite: suite{pkg: "./coordinator/console"}.only("ManyConsoles"),
		is:    "f := c.feeds.open[key]", becomes: "f := c.feeds.open[\"\"]",
	},
	{
		name: "feeds-outlive-their-session", file: "coordinator/console/live.go",
		suite:   suite{pkg: "./coordinator/console"}.only("FeedEndsWithItsSession"),
		is:      "case <-watch.C:\n					if _, known := c.visitor(r); !known {",
		becomes: "case <-watch.C:\n					if _, known := c.visitor(r); !known && version < 0 {",
	},
	{
		name: "who-may-only-look-shares-the-feed", file: "coordinator/console/live.go",
		suite: suite{pkg: "./coordinator/console"}.only("FeedOfWhoMayLook"),
		is:    "fmt.Sprint(of.ReadOnly, \" \", strings", becomes: "fmt.Sprint(strings",
	},
	{
		name: "the-console-escapes-nothing", file: "coordinator/console/page.go", suite: suite{pkg: "./coordinator/console"}.only("HostileNames"),
		is: "	\"html/template\"\n", becomes: "	\"text/template\"\n",
	},
}
