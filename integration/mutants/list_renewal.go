package main

var (
	inRenewal = suite{pkg: "./shared/renewal"}
	inPKI     = suite{pkg: "./shared/pki"}

	inHostKeys = suite{pkg: "./integration/hostkeys"}

	inAuthorities = suite{pkg: "./coordinator/authorities"}
)

// renewalMutants are planted bugs in how certificates renew themselves, and in who may have them renewed.
var renewalMutants = []mutant{
	{
		name: "an-authority-is-retired-too-early", file: "coordinator/authorities/rotation.go", suite: inAuthorities,
		is: "outgoing != nil && len(waits) == 0 &&", becomes: "outgoing != nil &&",
	},
	{
		name: "a-retired-authority-is-still-trusted", file: "coordinator/authorities/rotation.go", suite: inAuthorities,
		is: "list.become(outgoing, Retired, at)", becomes: "list.become(outgoing, Outgoing, at)",
	},
	{
		name: "an-authority-signs-before-all-trust-it", file: "coordinator/authorities/rotation.go", suite: inAuthorities,
		is: "case announced != nil && len(waits) == 0:", becomes: "case announced != nil:",
	},
	{
		name: "a-host-drops-an-authority-that-others-show", file: "coordinator/authorities/hypervisors.go", suite: inHostKeys,
		is: "		return use.By != newest.ID\n", becomes: "		return false\n",
	},
	{
		name: "a-host-shows-a-certificate-before-all-trust-it", file: "coordinator/authorities/hypervisors.go", suite: inHostKeys,
		is: "	return use.Trusts != newest.ID\n", becomes: "	return identity.Kind == model.IdentityCoordinator && use.Trusts != newest.ID\n",
	},
	{
		name: "a-host-tells-what-libvirt-has-not-taken-up", file: "agent/hostpki/renewal.go", suite: inHostKeys,
		is: "if err != nil || r.Written {", becomes: "if _ = r; err != nil {",
	},
	{
		name: "the-authority-before-signs-for-hosts", file: "coordinator/keyring/keyring.go", suite: suite{pkg: "./coordinator/keyring"},
		is: "	signer = r.Held(is.ID)\n", becomes: "	signer = r.Issuing(purpose)\n",
	},
	{
		name: "an-older-list-says-whom-hosts-trust", file: "coordinator/authorities/list.go", suite: suite{pkg: "./coordinator/authorities"},
		is: "if own == nil || own.State == Announced ||", becomes: "if own == nil ||",
	},
	{
		name: "anybody-endorses-an-authority", file: "shared/pki/tls.go", suite: inPKI.only("WhoPins"),
		is: "other.IsCA && other.CheckSignatureFrom(authority) == nil", becomes: "other.IsCA",
	},
	{
		name: "nobody-proves-the-next-authority", file: "shared/pki/tls.go", suite: inPKI.only("WhoWasAway"),
		is: "				if len(m.trusted) > 1 {\n", becomes: "				if len(m.trusted) < 1 {\n",
	},
	{
		name: "a-certificate-for-years-holds-an-authority", file: "coordinator/authorities/rotation.go", suite: inAuthorities,
		is: "issuing == nil || issuing.ID != who.Authority", becomes: "issuing != nil",
	},
	{
		name: "a-backup-has-another-authority-sign", file: "coordinator/authorities/progress.go", suite: inAuthorities,
		is: "return own == nil || own.State == Announced", becomes: "return own == nil",
	},
	{
		name: "a-backup-hides-a-trusted-authority", file: "coordinator/authorities/progress.go", suite: inAuthorities,
		is: "		return len(files) > 1\n", becomes: "		return false\n",
	},
	{
		name: "a-restart-that-failed-is-forgotten", file: "agent/hostpki/hostpki.go", suite: suite{pkg: "./agent/hostpki"},
		is: "		return r.Restart, nil\n", becomes: "		return false, nil\n",
	},
	{
		name: "another's-key-is-renewed", file: "coordinator/api/members/renew.go", suite: inAPI.only("OwnKeyOnly"),
		is: "	if key != who.Key {", becomes: "	if key == \"\" {",
	},
	{
		name: "an-open-stream-ends-with-its-certificate", file: "coordinator/identities/judge.go", suite: inIdentities,
		is: "(!known || !renewed(&identity, who, at))", becomes: "true",
	},
	{
		name: "an-ended-certificate-counts-while-its-key-is-known", file: "coordinator/identities/judge.go", suite: inIdentities,
		is: "return !at.After(key.ValidUntil)", becomes: "return true",
	},
	{
		name: "an-older-certificate-takes-the-place", file: "coordinator/identities/record.go", suite: inIdentities,
		is: "who.Authority != \"\" && !who.Until.Before(key.ValidUntil)", becomes: "who.Authority != \"\"",
	},
	{
		name: "another-machine-takes-a-node's-place", file: "coordinator/api/members/enrol.go", suite: inAPI.only("HasEndedComesBack"),
		is:      "if other.HostUUID == node.HostUUID && other.MachineID == node.MachineID && lapsed(",
		becomes: "if lapsed(",
	},
	{
		name: "a-node-is-replaced-while-its-certificate-is-good", file: "coordinator/api/members/renew.go",
		suite: inAPI.only("HasEndedComesBack"),
		is:    "until.IsZero() || p.At.Before(until)", becomes: "until.IsZero()",
	},
	{
		name: "what-is-no-renewal-is-written", file: "shared/renewal/renewal.go", suite: inRenewal,
		is:      "	if err := pair.Check(answer.Certificate, answer.Trusted); err != nil {\n		return err\n	}\n",
		becomes: "",
	},
	{
		name: "a-failure-is-not-repeated", file: "shared/renewal/renewal.go", suite: inRenewal,
		is: "wait, again = again+rand.N(again), min(2*again, longestWait)\n			continue", becomes: "_ = again\n			return",
	},
	{
		name: "an-ended-coordinator-does-not-sign-itself", file: "coordinator/daemon/renew.go", suite: inDaemon.only("OffForMonths"),
		is:      "	if !pair.Due(authority.ID(), now) {",
		becomes: "	if !pair.Due(authority.ID(), now) || now.After(pair.Certificate.NotAfter) {",
	},
	{
		name: "a-new-authority-makes-nothing-due", file: "shared/pki/renewal.go", suite: inPKI.only("IsDue"),
		is: " || authority != \"\" && authority != AuthorityOf(p.Certificate)", becomes: "",
	},
}
