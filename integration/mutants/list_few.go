package main

// fewMutants are bugs in which nodes are asked before a start, of all there are, and how those are found.
var fewMutants = []mutant{
	{
		name: "a-start-asks-no-keeper", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("Verdict"),
		is: "vm.Holder, vm.LastNode, vm.Kept)", becomes: "vm.Holder, vm.LastNode)",
	},
	{
		name: "a-start-believes-few-nodes", file: "coordinator/evidence/elsewhere.go", suite: inEvidence.only("Verdict"),
		is: "s.MayShow == nil || out.asks", becomes: "s.MayShow == nil",
	},
	{
		name: "a-disk-that-changed-is-not-found", file: "coordinator/inventory/showing.go", suite: inInventory.only("ALaterView"),
		is: "if !slices.Equal(before[0].Sources, now[0].Sources)", becomes: "if len(before[0].Sources) != len(now[0].Sources)",
	},
	{
		name: "a-disk-of-a-second-domain-is-forgotten", file: "coordinator/inventory/showing.go", suite: inInventory.only("ALaterView"),
		is: "i < len(all) && len(gone) > 0", becomes: "i < len(all) && len(gone) > 1",
	},
	{
		name: "only-the-first-disk-is-looked-for", file: "coordinator/evidence/disk_use.go", suite: inEvidence.only("ADiskInUse"),
		is: "for i := range disks {", becomes: "for i := range disks[:1] {",
	},
	{
		name: "a-shared-part-is-written-in-place", file: "coordinator/view/column/column.go", suite: inView.only("AListOfNodes|LaterColumns"),
		is: "s.column.parts[part] = slices.Clone(s.column.parts[part])", becomes: "_ = s",
	},
	{
		name: "columns-outlast-new-nodes", file: "coordinator/view/later.go", suite: inView.only("LaterColumns"),
		is: "delete(next.gathered.stale, cluster)", becomes: "_ = cluster",
	},
	{
		name: "a-customer-is-not-found-where-it-came", file: "coordinator/view/later.go", suite: inInventory.only("ALaterView"),
		is: "reword(next, id, old, is)", becomes: "_ = old",
	},
	{
		name: "a-node-that-is-gone-stays", file: "coordinator/view/nodes.go", suite: inView.only("AListOfNodes"),
		is: "!slices.Contains(gone, node.Node.ID)", becomes: "true",
	},
	{
		name: "each-piece-is-swept-as-the-first", file: "coordinator/placement/constraint/constraint.go", suite: inPlacement.only("FastForms"),
		is: "room := in.Columns.Room.From(first)", becomes: "room := in.Columns.Room.From(0)",
	},
	{
		name: "a-piece-of-keys-is-added-twice", file: "coordinator/placement/weigher/system_keys.go", suite: inPlacement.only("FastForms"),
		is: "columns[2].From(first), columns[3].From(first)", becomes: "columns[2].From(first), columns[3].From(0)",
	},
	{
		name: "columns-forget-what-differed-before", file: "coordinator/view/later.go", suite: inInventory.only("ALaterView"),
		is: "&touched{ids: ids, before: s.touched, count", becomes: "&touched{ids: ids, count",
	},
	{
		name: "facts-outlast-silence", file: "coordinator/inventory/facts.go", suite: inInventory.only("ALaterView"),
		is: " || !now.Before(last.until) {", becomes: " {",
	},
	{
		name: "facts-outlast-a-report", file: "coordinator/inventory/store.go", suite: inInventory.only("ALaterView"),
		is: "n.told.Store(nil)", becomes: "_ = n",
	},
	{
		name: "a-copy-is-listed-for-good", file: "coordinator/inventory/copies.go", suite: inInventory.only("ALaterView"),
		is: "if len(held.nodes) < 2 {", becomes: "if len(held.nodes) < 1 {",
	},
	{
		name: "a-vm-with-two-copies-is-plain", file: "coordinator/evidence/survey.go", suite: inEvidence.only("ALookAtWhatIsOdd"),
		is: "id != vm.Holder && (one == nil || one.facts.Inventory)", becomes: "id != vm.Holder && one == nil",
	},
	{
		name: "a-paused-vm-is-plain", file: "coordinator/evidence/survey.go", suite: inEvidence.only("ALookAtWhatIsOdd"),
		is: "domain.State != model.DomainRunning || !domain.Managed", becomes: "!domain.Managed",
	},
	{
		name: "a-node-that-closes-turns-late", file: "coordinator/inventory/session.go", suite: inInventory.only("TimeTurns"),
		is: "s.turning.sooner(x.node, s.turns(n, now))", becomes: "_ = n",
	},
	{
		name: "a-new-node-is-not-waited-for", file: "coordinator/inventory/turning.go", suite: inInventory.only("TimeTurns"),
		is: "case is && !in:", becomes: "case is && in:",
	},
	{
		name: "what-time-has-turned-is-not-in-the-view", file: "coordinator/inventory/turning.go", suite: inInventory.only("ALaterView"),
		is: "s.changes.note(id)", becomes: "_ = n",
	},
	{
		name: "a-late-view-is-kept", file: "coordinator/inventory/view.go", suite: inInventory.only("AViewOfAnEarlierMoment"),
		is: "if v.isLate(now) {", becomes: "if v.isLate(now) && false {",
	},
	{
		name: "nobody-looks-at-all-nodes-once-a-minute", file: "coordinator/inventory/turning.go", suite: inInventory.only("IsNotNoted"),
		is: "if now.Sub(t.audited) >= auditEvery {", becomes: "if false && now.Sub(t.audited) >= auditEvery {",
	},
}
