// Package console shows a cluster in a browser. It sees the API as messages only, as the command line does, and each of its pages says
// which command tells the same. It needs no JavaScript: pages are made here, and every action is a form. Where there is some, pages that
// are open become what they would be by now.
package console

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/shared/gen/berth/v1/berthv1connect"
)

// Desk knows who is behind a cookie, and makes cookies of links.
type Desk interface {
	// Open uses a link, and gives the text of a cookie and when that ends.
	Open(ctx context.Context, link, address, browser string) (cookie string, until time.Time, err error)
	// Visitor is who has shown a cookie. False: nobody who counts now.
	Visitor(cookie, address string) (Visitor, bool)
	// Close ends the session of a cookie.
	Close(ctx context.Context, cookie, address string) error
}

// Visitor is somebody who is logged in.
type Visitor struct {
	Operator string // name
	ReadOnly bool
	Until    time.Time
	API      berthv1connect.BerthServiceClient // with the operator's rights
}

// Config is what a console stands on.
type Config struct {
	Desk Desk
	Now  func() time.Time
	Log  hclog.Logger
}

// Console answers browsers. It is safe for concurrent use.
type Console struct {
	Config

	feeds feeds
}

// New makes a Console.
func New(config Config) *Console { return &Console{Config: config} }

// Bounds of what a browser may send, and of how long a page may take.
const (
	maxBody   = 16 << 10
	pageLimit = 15 * time.Second
)

// Handler serves the console's port.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /static/console.css", serveFile)
	mux.HandleFunc("GET /static/live.js", serveFile)
	mux.HandleFunc("GET /login/{link}", c.showLink)
	mux.HandleFunc("POST /login", c.login)
	mux.HandleFunc("POST /logout", c.logout)
	for path, screen := range map[string]screen{
		"/{$}":             showMap,
		"/nodes":           listNodes,
		"/nodes/{node}":    showNode,
		"/vms":             listGuests,
		"/vms/{vm}":        showGuest,
		"/moves":           showMoves,
		"/operations/{id}": showOperation,
		"/groups":          showGroups,
		"/plans":           listPlans,
		"/plans/{id}":      showPlan,
		"/events":          showEvents,
	} {
		mux.Handle("GET "+path, c.visited(screen, true))
		mux.Handle("GET "+livePath+path, c.followed(screen))
	}
	// What somebody is about to do, what never changes, and what nodes are asked for each time stays as it was read.
	for path, screen := range map[string]screen{
		"/vms/{vm}/migrate":  previewMigration,
		"/nodes/{node}/plan": previewDrain,
		"/vms/{vm}/week":     weekOfGuest,
		"/nodes/{node}/week": weekOfNode,
		"/vms/{vm}/day":      latelyOfGuest,
		"/nodes/{node}/day":  latelyOfNode,
		"/decisions/{id}":    showDecision,
		"/capacity":          showRoom,
		"/":                  notFound,
	} {
		mux.Handle("GET "+path, c.visited(screen, false))
	}
	for pattern, action := range map[string]action{
		"POST /vms/{vm}/start":         startGuest,
		"POST /vms/{vm}/stop":          stopGuest,
		"POST /vms/{vm}/reboot":        rebootGuest,
		"POST /vms/{vm}/migrate":       migrateGuest,
		"POST /operations/{id}/cancel": cancelOperation,
		"POST /plans/{id}/apply":       applyPlan,
		"POST /plans/{id}/discard":     discardPlan,
		"POST /plans/{id}/cancel":      cancelPlan,
		"POST /nodes/{node}/drain":     drainNode,
		"POST /nodes/{node}/undrain":   undrainNode,
	} {
		mux.Handle(pattern, c.acted(action))
	}
	return guarded(http.MaxBytesHandler(http.NewCrossOriginProtection().Handler(mux), maxBody))
}

// guarded adds what keeps other sites, and what a VM is called, from having a say on a page.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy",
			"default-src 'self'; script-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		header.Set("Strict-Transport-Security", "max-age=31536000")
		header.Set("X-Frame-Options", "DENY")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
