package main

var (
	inExposition = suite{pkg: "./shared/exposition"}
	inScrape     = suite{pkg: "./shared/scrape"}
	inMetrics    = suite{pkg: "./coordinator/metrics"}
)

// figureMutants are planted bugs in the figures that leave Berth, and in who may read them.
var figureMutants = []mutant{
	{
		name: "figures-are-for-everybody", file: "shared/scrape/config.go", suite: inScrape,
		is: "c.open() && !loopback(host)", becomes: "!c.open() && !loopback(host)",
	},
	{
		name: "figures-for-any-token", file: "shared/scrape/config.go", suite: inScrape,
		is:      "bears && subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1",
		becomes: "bears && (shown != \"\" || subtle.ConstantTimeCompare([]byte(shown), []byte(token)) == 1)",
	},
	{
		name: "any-number-reads-figures", file: "shared/scrape/server.go", suite: inScrape.only("OnlyAFew"),
		is: "s.working.Add(1) > atOnce", becomes: "s.working.Add(1) > 100*atOnce",
	},
	{
		name: "old-figures-are-new", file: "coordinator/metrics/node.go", suite: inMetrics,
		is: "n.Facts.Telemetry && n.Facts.Liveness != model.Unreachable", becomes: "n.Facts.Telemetry",
	},
	{
		name: "figures-are-read-where-a-node-says", file: "coordinator/wire/figures.go", suite: suite{pkg: "./coordinator/wire"},
		is:      "reached(destination.Host(node.Node.Name, node.Facts.MigrationURI, node.Facts.CalledFrom), ",
		becomes: "reached(destination.Host(inventory.GetHostName(), node.Facts.MigrationURI, node.Facts.CalledFrom), ",
	},
	{
		name: "a-node-runs-templates", file: "coordinator/cli/inventory/ansible.go", suite: suite{pkg: "./coordinator/cli/inventory"},
		is: `strings.ReplaceAll(text, "{", "(")`, becomes: "text",
	},
	{
		name: "a-failed-list-takes-names", file: "agent/metrics/metrics.go", suite: suite{pkg: "./agent/metrics"},
		is: "	if report.GetDomainsUnknown() {\n		return report\n	}\n", becomes: "",
	},
	{
		name: "a-way-is-one-of-its-nodes", file: "coordinator/state/schema.go", suite: inState.only("MeasuredMigrations"),
		is: "text(\"way\") + text(op.Source) + text(op.Target) + ended", becomes: "text(\"way\") + text(op.Source) + ended",
	},
	{
		name: "predicted-by-what-ends-later", file: "coordinator/state/history.go", suite: inState.only("MeasuredMigrations"),
		is: "byMoved, key, moment(at.Add(1))", becomes: "byMoved, key, moment(at.Add(2))",
	},
	{
		name: "trials-count-as-decisions", file: "coordinator/metrics/totals.go", suite: inMetrics,
		is: "d.DryRun || d.At.Before(t.since)", becomes: "d.At.Before(t.since)",
	},
	{
		name: "a-restart-counts-the-log-again", file: "coordinator/metrics/totals.go", suite: inMetrics,
		is: "if op.EndedAt.Before(t.since) {", becomes: "if op.EndedAt.IsZero() {",
	},
	{
		name: "a-name-writes-figures", file: "shared/exposition/exposition.go", suite: inExposition,
		is: "case r == '\\n':\n			_, _ = p.to.WriteString(`\\n`)", becomes: "case r == '\\n':\n			_, _ = p.to.WriteRune(r)",
	},
	{
		name: "any-certificate-reads-figures", file: "shared/scrape/config.go",
		suite: suite{pkg: "./shared/scrape"}.only("ReadersShowCertificates"),
		is:    "if certified && refused == nil && fault == nil {", becomes: "if certified && fault == nil {",
	},
	{
		name: "certificates-of-servers-read-figures", file: "shared/scrape/secure.go",
		suite: suite{pkg: "./shared/scrape"}.only("ReadersShowCertificates"),
		is:    "x509.ExtKeyUsageClientAuth}", becomes: "x509.ExtKeyUsageAny}",
	},
	{
		name: "a-cancelled-plan-is-told-twice", file: "coordinator/tracing/plans.go",
		suite: suite{pkg: "./coordinator/tracing"}.only("APlanBecomes"),
		is:    "plan != nil && moving.Unfinished(plan)", becomes: "plan != nil && plan.State.Live()",
	},
	{
		name: "moves-without-links", file: "coordinator/tracing/follower.go", suite: suite{pkg: "./integration/traces"}.only("ADrain"),
		is: "Linked: op.Plan,", becomes: "Linked: \"\",",
	},
	{
		name: "those-who-follow-send-spans", file: "coordinator/tracing/run.go",
		suite: suite{pkg: "./coordinator/tracing"}.only("TheLeaderAlone"),
		is:    "if l.leads() {", becomes: "if l.leads != nil {",
	},
}
