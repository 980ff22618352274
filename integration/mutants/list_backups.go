package main

// backupMutants are planted bugs in what keeps backups and a terminal from being steered by others.
var backupMutants = []mutant{
	{
		name: "sums-of-backups-are-not-compared", file: "coordinator/seal/seal.go", suite: suite{pkg: "./coordinator/seal"},
		is:      "if r.key != nil && !hmac.Equal(head[5:], frameSum(r.key, r.number, head[:5], data)) {",
		becomes: "if r.key != nil && len(head) == 0 {",
	},
	{
		name: "parts-of-backups-change-places", file: "coordinator/seal/seal.go", suite: suite{pkg: "./coordinator/seal"},
		is: "sum.Write(binary.BigEndian.AppendUint64(nil, number))", becomes: "_ = number",
	},
	{
		name: "what-follows-a-backup-is-passed-over", file: "coordinator/seal/seal.go", suite: suite{pkg: "./coordinator/seal"},
		is: "	case n > 0:\n", becomes: "	case n > 1:\n",
	},
	{
		name: "a-backup-without-a-seal-is-taken", file: "coordinator/seal/seal.go", suite: suite{pkg: "./coordinator/api"}.only("Tampered"),
		is: "case unproved && errors.Is(err, ErrUnsealed):", becomes: "case errors.Is(err, ErrUnsealed):",
	},
	{
		name: "a-revoked-token-is-kept", file: "coordinator/api/members/token.go", suite: suite{pkg: "./coordinator/api"}.only("EnrolAgent"),
		is: "Delete: []state.Record{{Table: state.Tokens, ID: revoked.Hash}},", becomes: "Tokens: []model.Token{revoked},",
	},
	{
		name: "completions-are-offered-as-they-come", file: "coordinator/cli/term/complete.go",
		suite: suite{pkg: "./coordinator/cli"}.only("NoCompletion"),
		is:    "if Clean(name) != name || strings.", becomes: "if name == \"\" && strings.",
	},
	{
		name: "json-steers-the-terminal", file: "coordinator/cli/term/text.go", suite: suite{pkg: "./coordinator/cli"}.only("NoTextOfOthers"),
		is: "if !bytes.ContainsFunc(text, steers) {", becomes: "if len(text) > 0 || !bytes.ContainsFunc(text, steers) {",
	},
}
