package main

var inPacking = suite{pkg: "./coordinator/packing"}

// packMutants break how little of a change is written into the log.
var packMutants = []mutant{
	{
		name: "older-members-get-packed-entries", file: "coordinator/state/codec.go", suite: inState.only("OnlyFromItsLevelOn"), quick: true,
		is: "if level < PackLevel || len(entry) > maxUnpacked {", becomes: "if len(entry) > maxUnpacked {",
	},
	{
		name: "what-grows-is-packed", file: "coordinator/packing/packing.go", suite: inPacking,
		is: "err != nil || p.out.Len() >= len(plain) {", becomes: "err != nil {",
	},
	{
		name: "a-bomb-is-unpacked", file: "coordinator/packing/packing.go", suite: inPacking,
		is: "if length > uint64(most) || ", becomes: "if ",
	},
	{
		name: "a-small-bomb-takes-memory", file: "coordinator/packing/packing.go", suite: inPacking,
		is: " || length > mostOfAByte*uint64(len(data)) {", becomes: " {",
	},
	{
		name: "the-state-unpacks-a-bomb", file: "coordinator/state/codec.go", suite: inState.only("BombInTheLog"),
		is: "packing.Unpack(data, maxUnpacked)", becomes: "packing.Unpack(data, 1<<30)",
	},
	{
		name: "a-packed-entry-may-go-on", file: "coordinator/packing/packing.go", suite: inPacking,
		is: "case more > 0:", becomes: "case more > 1:",
	},
	{
		name: "the-packed-words-change", file: "coordinator/packing/words.go", suite: inState.only("Golden"), quick: true,
		is: `"holder","epoch","operation","last_node","started_at"`, becomes: `"epoch","holder","operation","last_node","started_at"`,
	},
	{
		name: "a-part-of-another-revision-is-left-out", file: "coordinator/state/lean.go", suite: inState.only("WriteTheDocumentAgain"),
		is: "revision == 0 || expectedIn(t.expect, table, id) != revision {", becomes: "revision == 0 {",
	},
	{
		name: "a-field-that-is-cleared-stays", file: "coordinator/state/lean.go", suite: inState.only("LeftOutOfTheLog"),
		is: "if reflect.DeepEqual(is.Interface(),", becomes: "if is.IsZero() || reflect.DeepEqual(is.Interface(),",
	},
	{
		name: "nothing-is-left-out", file: "coordinator/state/lean.go", suite: inState.only("WriteTheDocumentAgain"),
		is: "if !saves {", becomes: "if saves {",
	},
	{
		name: "older-members-get-parts", file: "coordinator/state/lean.go", suite: inState.only("WriteTheDocumentAgain"),
		is: "if x.FeatureLevel() < PackLevel || ", becomes: "if ",
	},
	{
		name: "a-part-of-nothing-is-stored", file: "coordinator/state/lean.go", suite: inState.only("PartOfWhatIsNotThere"),
		is: "case !whole:", becomes: "case !whole && partial.Table == \"\":",
	},
	{
		name: "the-leader-writes-documents-again", file: "coordinator/consensus/propose.go", suite: inConsensus.only("WritesLittle"),
		is: "readable.Lean(snapshot).Written()", becomes: "readable.Written()",
	},
	{
		name: "the-leader-packs-nothing", file: "coordinator/consensus/group.go", suite: inConsensus.only("WritesLittle"),
		is: "state.Entry(commands, level)", becomes: "state.Group(commands)",
	},
}
