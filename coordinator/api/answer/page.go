package answer

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/rpc"
)

const (
	// DefaultList is how many things a list of what has happened has when nobody says.
	DefaultList = 50
	// MaxList is how many things a page has at most. A list of what there is has as many when nobody says.
	MaxList = 500
)

// asksForPage is a request for a page of a list.
type asksForPage interface {
	GetLimit() int32
	GetPageToken() string
}

// Page is which page of a list somebody asks for: at most limit things, from the one after the key on. A page begins at a
// key and not at a number, so that what is made or deleted between two pages makes nothing else be missed or come twice.
type Page struct {
	Limit int
	After string // empty: from the beginning
}

// PageOf reads a request for a page. Fallback is how many things it has when the request does not say.
func PageOf(request asksForPage, fallback int) (Page, error) {
	limit, err := Limited(request.GetLimit(), fallback, MaxList)
	if err != nil {
		return Page{}, refusal.Invalid("", "leave it out, or give a number above 0", err)
	}
	after, err := base64.RawURLEncoding.DecodeString(request.GetPageToken())
	if err != nil {
		return Page{}, refusal.New(rpc.Invalid, "", "give the next_page_token of the page before, or none to begin anew",
			"the page token %q is none", request.GetPageToken())
	}
	return Page{Limit: limit, After: string(after)}, nil
}

// Orders of a list.
const (
	Ascending  = 1
	Descending = -1
)

// Cut takes a page out of a list that is in order by key, and gives the token of the next one; empty: there is none.
func Cut[T any](all []T, page Page, order int, key func(T) string) (part []T, next string) {
	if page.After != "" {
		at, found := slices.BinarySearchFunc(all, page.After, func(one T, after string) int { return order * cmp.Compare(key(one), after) })
		if found {
			at++
		}
		all = all[at:]
	}
	if len(all) <= page.Limit {
		return all, ""
	}
	return all[:page.Limit], TokenOf(key(all[page.Limit-1]))
}

// TokenOf is the token of a page that begins after a key.
func TokenOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// KeyOf joins what a list is ordered by, the first thing first. Names have no NUL.
func KeyOf(parts ...string) string { return strings.Join(parts, "\x00") }

// ageKey is by when something began, and by ID what began at the same time.
func ageKey(at time.Time, id string) string {
	return KeyOf(fmt.Sprintf("%020d.%09d", uint64(at.Unix())^1<<63, at.Nanosecond()), id)
}

// OperationKey is what operations are ordered by: their age.
func OperationKey(op operation.Operation) string { return ageKey(op.CreatedAt, op.ID) }

// PlanKey is what plans are ordered by: their age.
func PlanKey(plan model.Plan) string { return ageKey(plan.CreatedAt, plan.ID) }
