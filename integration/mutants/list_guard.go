package main

// guardMutants break the guard of what is put onto hosts.
var guardMutants = []mutant{
	{
		name: "the-guard-lets-unknown-elements-through", file: "shared/domxml/guard/judge.go", suite: suite{pkg: "./shared/domxml/guard"},
		is: "case at.Space != \"\" || !known:", becomes: "case at.Space != \"\" || !known && len(path) < 0:",
	},
	{
		name: "the-guard-reads-no-path-twice", file: "shared/domxml/guard/permitted.go", suite: suite{pkg: "./shared/domxml/guard"},
		is: "if !path.IsAbs(file) || path.Clean(file) != file || !printable(file) {", becomes: "if !path.IsAbs(file) || !printable(file) {",
	},
	{
		name: "an-attribute-twice-is-read", file: "shared/domxml/read.go", suite: suite{pkg: "./shared/domxml/guard"},
		is:      "if slices.ContainsFunc(token.Attr[:i], func(b xml.Attr) bool { return a.Name == b.Name }) {",
		becomes: "if slices.ContainsFunc(token.Attr[:0], func(b xml.Attr) bool { return a.Name == b.Name && i < 0 }) {",
	},
	{
		name: "one-node-makes-a-folder-known", file: "coordinator/admission/admission.go", suite: suite{pkg: "./coordinator/admission"},
		is: `case folder != "" && folder != one.Path || one.Path == "":`, becomes: `case one.Path == "":`,
	},
	{
		name: "a-new-site-permits-everything", file: "coordinator/admission/admission.go", suite: suite{pkg: "./coordinator/admission"},
		is: `if !said && records.Meta(model.MetaGuarded) == "" {`, becomes: `if !said {`,
	},
	{
		name: "a-document-is-edited-past-the-guard", file: "coordinator/api/guests/document.go", suite: inAPI.only("HoweverItComes"),
		is:      "if err := p.AdmitVM(ctx, &after, &before); err != nil {",
		becomes: "if err := p.AdmitVM(ctx, &after, &after.Spec); err != nil {",
	},
	{
		name: "permissions-of-a-cluster-are-everybodys", file: "coordinator/api/answer/admit.go", suite: inAPI.only("DoesNotPutOntoAHost"),
		is:      "held, _ := guard.Split(p.Held(ctx))\n\tpermitted.Permissions",
		becomes: "held := guard.Permissions()\n\tpermitted.Permissions",
	},
	{
		name: "an-operator-gives-what-it-does-not-have", file: "coordinator/api/answer/admit.go", suite: inAPI.only("GivesWhatItDoesNotHave"),
		is: "lacks := admission.Without(given, p.Held(ctx))\n\tif len(lacks) == 0 {", becomes: "lacks := given\n\tif len(lacks) < 99 {",
	},
	{
		name: "a-token-outlives-its-makers-permission", file: "coordinator/api/members/permit.go", suite: inAPI.only("WhatItsTokenGives"),
		is:      "guard.None), admission.Held(&maker))",
		becomes: "guard.None), guard.All+admission.Held(&maker)[:0])",
	},
	{
		name: "an-operator-is-let-in-with-everything", file: "coordinator/api/members/permit.go", suite: inAPI.only("WhatItsTokenGives"),
		is: "cmp.Or(token.Permit, guard.None), admission", becomes: "cmp.Or(token.Permit, guard.All), admission",
	},
	{
		name: "a-backup-brings-permissions-back", file: "coordinator/admission/held.go", suite: suite{pkg: "./coordinator/returning"},
		is: `if identity.Unconfirmed != "" {`, becomes: `if identity.Unconfirmed == "?" {`,
	},
	{
		name: "anybody-confirms-who-came-back", file: "coordinator/api/members/permit.go", suite: inAPI.only("OutOfABackup"),
		is:      "if lacks := admission.Without(gives, p.Held(ctx)); len(lacks) > 0 {",
		becomes: "if lacks := admission.Without(gives, p.Held(ctx)); len(lacks) > 99 {",
	},
	{
		name: "a-token-outlives-its-maker", file: "coordinator/api/members/enrol.go", suite: inAPI.only("NoTokenOfItsOwn"),
		is:      "if err := makerCounts(p, &command, &token); err != nil {",
		becomes: "if err := makerCounts(p, &command, &token); err != nil && token.Uses < 0 {",
	},
	{
		name: "folders-are-nobodys-permission", file: "coordinator/admission/held.go", suite: suite{pkg: "./coordinator/admission"},
		is: "if widens && ", becomes: "if !widens && ",
	},
	{
		name: "an-adoption-asks-for-no-permission", file: "coordinator/control/adoption/describe.go", suite: inControl.only("NobodyAdopts"),
		is: "found := admission.New(bound, all)", becomes: "found := admission.New(all, bound)",
	},
	{
		name: "what-needs-a-permission-binds-nothing", file: "coordinator/binding/binding.go", suite: suite{pkg: "./coordinator/binding"},
		is: `if lacks != "" {`, becomes: `if lacks == "?" {`,
	},
	{
		name: "drift-past-the-guard-is-not-asked-about", file: "coordinator/drift/drift.go", suite: suite{pkg: "./coordinator/drift"},
		is: `if lacks := vm.Asks(&edit, cluster); lacks != "" {`, becomes: `if lacks := vm.Asks(&edit, cluster); lacks == "?" {`,
	},
}
