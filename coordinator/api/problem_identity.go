package api

import (
	"fmt"
	"strings"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
)

const (
	// certificateEnds is how long before a certificate ends somebody is told.
	certificateEnds = 10 * 24 * time.Hour
	// mostNamed bounds the identities that one line names.
	mostNamed = 10
)

// identityProblems says whose certificates end soon, and who came back with a backup and was not looked at.
func (p problems) identityProblems() []string {
	var unconfirmed, shut, ending []string
	for _, identity := range p.Identities() {
		subject := identities.Subject(&identity)
		_, node := p.Node(identity.ID)
		switch until := identity.ValidUntil(); {
		case !identity.Live():
			if node {
				shut = append(shut, identity.Name)
			}
			continue
		case identity.Unconfirmed != "":
			unconfirmed = append(unconfirmed, subject)
		case until.IsZero() || until.Sub(p.At) > certificateEnds:
		case until.Before(p.At) && identity.Kind == model.IdentityOperator: // nobody waits for him
		default:
			ending = append(ending, fmt.Sprintf("the last certificate of %s ends at %s", subject, until.UTC().Format(time.RFC3339)))
		}
	}
	var lines []string
	if len(shut) > 0 {
		lines = append(lines, fmt.Sprintf("revoked, but still on record as nodes: %s; nothing is heard of their guests: "+
			"remove them, or let them join anew", few(shut)))
	}
	if len(unconfirmed) > 0 {
		lines = append(lines, fmt.Sprintf("came back with a backup and may have been revoked since: %s; "+
			"see 'berth identity list', then confirm or revoke each", few(unconfirmed)))
	}
	return append(lines, ending[:min(len(ending), mostNamed)]...)
}

// few names the first of many.
func few(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
