package main

var (
	inHistory = suite{pkg: "./coordinator/history"}
	inWebhook = suite{pkg: "./coordinator/webhook"}
)

// historyMutants break what is kept of the past.
var historyMutants = []mutant{
	{
		name: "a-full-page-ends-the-past", file: "coordinator/api/answer/older.go", suite: suite{pkg: "./coordinator/api/answer"},
		is: "return part, PastToken(before), nil", becomes: "return part, PastToken(history.Place{Index: before.Index - 1}), nil",
	},
	{
		name: "an-old-decision-is-not-found", file: "coordinator/api/answer/older.go", suite: inAPI.only("TestListsGoOn"),
		is: "return row.Decision != nil && row.Decision.ID == id", becomes: "return row.Decision != nil && row.Decision.ID != id",
	},
	{
		name: "events-since-long-ago-begin-in-between", file: "coordinator/cli/event/event.go", suite: suite{pkg: "./coordinator/cli/event"},
		is: "event.GetIndex() <= first &&", becomes: "event.GetIndex() < first &&",
	},
	{
		name: "a-gap-after-a-restart", file: "coordinator/history/store.go", suite: inHistory.only("TornWrite"), quick: true,
		is: "	return s.segments[len(s.segments)-1].through\n", becomes: "	return s.segments[len(s.segments)-1].through + 1\n",
	},
	{
		name: "the-past-is-pruned-too-early", file: "coordinator/history/store.go", suite: inHistory.only("OnlyWhatIsOld"), quick: true,
		is: "- int64(s.limits.Age)\n", becomes: "- int64(s.limits.Age)/2\n",
	},
	{
		name: "a-clock-set-ahead-drops-the-past", file: "coordinator/history/store.go", suite: inHistory.only("OnlyWhatIsOld"),
		is: "limit := min(now.UnixNano(), newest) -", becomes: "limit := max(now.UnixNano(), newest) -",
	},
	{
		name: "damage-of-the-past-is-not-found", file: "coordinator/history/block.go", suite: inHistory.only("DamageIsFound"),
		is: " || h.sum != sumOf(block) {", becomes: " {",
	},
	{
		name: "a-member-that-was-away-lacks-nothing", file: "coordinator/history/keeper.go", suite: inHistory.only("SameHistory"),
		is: "after := max(whole, x.HistoryFrom())", becomes: "after := whole",
	},
	{
		name: "a-webhook-keeps-no-order", file: "coordinator/webhook/queue.go", suite: inWebhook.only("InOrder|WithoutAGap"), quick: true,
		is: "if !d.over && !seen[d.subject] {", becomes: "if !d.over {",
	},
	{
		name: "a-webhook-is-further-than-what-was-taken", file: "coordinator/webhook/queue.go", suite: inWebhook.only("WithoutAGap"),
		is: "return q.open[0].Previous()", becomes: "return q.read",
	},
	{
		name: "a-webhook-follows-redirections", file: "coordinator/webhook/client.go", suite: inWebhook.only("Allowed|IsAllowed"),
		is: "return http.ErrUseLastResponse }", becomes: "return nil }",
	},
	{
		name: "a-webhook-reaches-metadata", file: "coordinator/webhook/client.go", suite: inWebhook.only("Metadata"), quick: true,
		is: "ip.IsLinkLocalUnicast() || ", becomes: "",
	},
	{
		name: "refused-calls-fill-the-log", file: "coordinator/api/gate/refused.go", quick: true,
		suite: suite{pkg: "./coordinator/api/gate"}.only("RefusedCalls"),
		is:    " || !pace.AllowN(now, 1) {", becomes: " {",
	},
}
