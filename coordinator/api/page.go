package api

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/shared/rpc"
)

const (
	// defaultList is how many things a list of what has happened has when nobody says.
	defaultList = 50
	// maxList is how many things a page has at most. A list of what there is has as many when nobody says.
	maxList = 500
)

// asksForPage is a request for a page of a list.
type asksForPage interface {
	GetLimit() int32
	GetPageToken() string
}

// extent is which page of a list somebody asks for: at most limit things, from the one after the key on. A page begins at a
// key and not at a number, so that what is made or deleted between two pages makes nothing else be missed or come twice.
type extent struct {
	limit int
	after string // empty: from the beginning
}

// extentOf reads a request for a page. Fallback is how many things it has when the request does not say.
func extentOf(request asksForPage, fallback int) (extent, error) {
	limit, err := limited(request.GetLimit(), fallback, maxList)
	if err != nil {
		return extent{}, invalid("", "leave it out, or give a number above 0", err)
	}
	after, err := base64.RawURLEncoding.DecodeString(request.GetPageToken())
	if err != nil {
		return extent{}, refusal(rpc.Invalid, "", "give the next_page_token of the page before, or none to begin anew",
			"the page token %q is none", request.GetPageToken())
	}
	return extent{limit: limit, after: string(after)}, nil
}

// Orders of a list.
const (
	ascending  = 1
	descending = -1
)

// cut takes a page out of a list that is in order by key, and gives the token of the next one; empty: there is none.
func cut[T any](all []T, page extent, order int, key func(T) string) (part []T, next string) {
	if page.after != "" {
		at, found := slices.BinarySearchFunc(all, page.after, func(one T, after string) int { return order * cmp.Compare(key(one), after) })
		if found {
			at++
		}
		all = all[at:]
	}
	if len(all) <= page.limit {
		return all, ""
	}
	return all[:page.limit], tokenOf(key(all[page.limit-1]))
}

func tokenOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// keyOf joins what a list is ordered by, the first thing first. Names have no NUL.
func keyOf(parts ...string) string { return strings.Join(parts, "\x00") }

// ageKey is by when something began, and by ID what began at the same time.
func ageKey(at time.Time, id string) string {
	return keyOf(fmt.Sprintf("%020d.%09d", uint64(at.Unix())^1<<63, at.Nanosecond()), id)
}

func operationKey(op operation.Operation) string { return ageKey(op.CreatedAt, op.ID) }
func planKey(plan cluster.Plan) string           { return ageKey(plan.CreatedAt, plan.ID) }
