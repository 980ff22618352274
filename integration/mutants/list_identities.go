package main

// identityMutants are planted bugs in whose certificates count.
var identityMutants = []mutant{
	{
		name: "a-forged-key-counts", file: "coordinator/identities/judge.go", suite: inIdentities,
		is: "		return Unknown // whoever can sign may name anybody", becomes: "		return Recorded",
	},
	{
		name: "a-revoked-identity-counts", file: "coordinator/identities/judge.go", suite: inIdentities,
		is: "	case !identity.Live():\n		return revoked(x, identity)\n", becomes: "",
	},
	{
		name: "a-key-is-good-for-another-role", file: "coordinator/identities/judge.go", suite: inIdentities,
		is: "identity.ID != who.ID || identity.Role != string(who.Role)", becomes: "identity.ID != who.ID",
	},
	{
		name: "operators-without-a-record-count-for-ever", file: "coordinator/identities/judge.go", suite: inIdentities,
		is: "known || at.Before(from)", becomes: "known || !from.IsZero()",
	},
	{
		name: "a-backup-brings-back-who-was-revoked", file: "coordinator/returning/returning.go",
		suite: suite{pkg: "./coordinator/returning"},
		is:    "			now[identity.ID] = is\n", becomes: "			now[identity.ID] = identity\n",
	},
	{
		name: "a-revocation-is-taken-back", file: "coordinator/state/check.go", suite: inState.only("Revocation"),
		is: "exists && !before.Live() && identity.Live():", becomes: "exists && !before.Live() && identity.Live() && len(identity.Keys) == 0:",
	},
	{
		name: "a-lonely-member-lets-strangers-in", file: "coordinator/consensus/membership.go", suite: inConsensus.only("Stranger"),
		is:      "	if err := c.recognise(who); err != nil {\n		c.told",
		becomes: "	if err := c.recognise(who); err != nil && c.raft.Load().Leader() != \"\" {\n		c.told",
	},
	{
		name: "who-joins-follows-anybody", file: "coordinator/consensus/membership.go", suite: inConsensus.only("Invited"),
		is: "	return len(c.cfg.Invited) == 0 || ", becomes: "	return true || ",
	},
}
