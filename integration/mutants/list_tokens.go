package main

// tokenMutants are about who is let in: how often a token is good, for whom, and that nothing of it stands on a command line.
var tokenMutants = []mutant{
	{
		name: "token-for-any-number-of-uses", file: "coordinator/model/token.go", suite: inModel.only("Token"),
		is: "if len(t.Used) < t.Uses {", becomes: "if true || len(t.Used) < t.Uses {",
	},
	{
		name: "used-up-token-is-good", file: "coordinator/api/members/enrol.go", suite: inAPI.only("Enrol"),
		is: "case token.Left() == 0:", becomes: "case false:",
	},
	{
		name: "token-for-any-name", file: "coordinator/api/members/enrol.go", suite: inAPI.only("Enrol"),
		is: "case !token.Fits(name):", becomes: "case false && !token.Fits(name):",
	},
	{
		name: "token-of-an-earlier-release-is-good-again", file: "coordinator/model/token.go", suite: inModel.only("Token"),
		is: "if t.UsedBy != \"\" {\n\t\treturn 0\n\t}", becomes: "if false {\n\t\treturn 0\n\t}",
	},
	{
		name: "join-adds-a-node-of-another-cluster", file: "coordinator/cli/node/add.go",
		suite: suite{pkg: "./coordinator/cli/node"}.only("Add"),
		is:    "if is.Cluster != j.cluster {", becomes: "if false && is.Cluster != j.cluster {",
	},
}
