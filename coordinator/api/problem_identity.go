package api

import (
	"fmt"
	"time"

	"berth/coordinator/authorities"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/shared/units"
)

const (
	// certificateEnds is how long before a certificate ends somebody is told: it should have been renewed before, so something is wrong.
	certificateEnds = 9 * 24 * time.Hour
	// mostNamed bounds the identities that one line names.
	mostNamed = 10
)

// identityProblems says whose certificates end soon, and who came back with a backup and was not looked at.
func (p problems) identityProblems() []string {
	var unconfirmed, shut, ending []string
	var operators time.Time // end of the last certificate of all operators
	for _, identity := range p.Identities() {
		subject := identities.Subject(&identity)
		_, node := p.Node(identity.ID)
		until := identity.ValidUntil()
		if identity.Kind == model.IdentityOperator && identity.Live() && until.After(operators) {
			operators = until
		}
		switch {
		case !identity.Live():
			if node {
				shut = append(shut, identity.Name)
			}
			continue
		case identity.Unconfirmed != "":
			unconfirmed = append(unconfirmed, subject)
		case until.IsZero() || until.Sub(p.At) > certificateEnds:
		case identity.Kind == model.IdentityOperator: // it is renewed when he calls, and nobody waits for him
		case until.Before(p.At) && identity.Kind == model.IdentityNode:
			ending = append(ending, fmt.Sprintf("the certificate of %s ended at %s: 'berth token add --for agent --name %s' makes a token, "+
				"and 'berth-agent join --force HOST TOKEN' there gets another with it", subject, until.UTC().Format(time.RFC3339), identity.Name))
		default:
			ending = append(ending, fmt.Sprintf("the certificate of %s should have been renewed and ends at %s: see what its log says of it",
				subject, until.UTC().Format(time.RFC3339)))
		}
	}
	if !operators.IsZero() && operators.Sub(p.At) <= certificateEnds {
		ending = append(ending, fmt.Sprintf("the last certificate of any operator ends at %s: a call of each renews it, "+
			"and 'berth coordinator login' on a coordinator makes another operator", operators.UTC().Format(time.RFC3339)))
	}
	var lines []string
	if len(shut) > 0 {
		lines = append(lines, fmt.Sprintf("revoked, but still on record as nodes: %s; nothing is heard of their guests: "+
			"remove them, or let them join anew", units.Some(shut, mostNamed, ", ")))
	}
	if len(unconfirmed) > 0 {
		lines = append(lines, fmt.Sprintf("came back with a backup and may have been revoked since: %s; "+
			"see 'berth identity list', then confirm or revoke each", units.Some(unconfirmed, mostNamed, ", ")))
	}
	return append(lines, ending[:min(len(ending), mostNamed)]...)
}

// authorityProblems says which authorities end before long.
func (s *queryCalls) authorityProblems(at time.Time) []string {
	var lines []string
	for _, end := range authorities.Ends(s.Authority(), s.Hypervisors.All()) {
		if end.Soon(at) {
			lines = append(lines, end.String())
		}
	}
	return lines
}

// firstToEnd is the coordinator or node whose certificate ends first. False: no end is known.
func (p problems) firstToEnd() (first model.Identity, known bool) {
	for _, identity := range p.Identities() {
		until := identity.ValidUntil()
		if !identity.Live() || identity.Kind == model.IdentityOperator || until.IsZero() {
			continue
		}
		if !known || until.Before(first.ValidUntil()) {
			first, known = identity, true
		}
	}
	return first, known
}
