// Package session is what a browser has instead of a certificate: an operator asks for a link, the link opens one session, and the
// session speaks with the operator's rights until it ends. Records keep hashes only, so nobody who reads them can speak for an operator.
package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"
)

// Bounds of links and sessions.
const (
	LinkLife    = time.Minute
	Life        = 12 * time.Hour // of an open session
	MostOfOne   = 20             // of one operator, links included
	Most        = 500            // of all together, so that records stay few
	secretBytes = 32
	maxBrowser  = 200 // bytes
)

// Session is the replicated record of a link and of what it has opened.
type Session struct {
	ID       string    `json:"id"`
	Operator string    `json:"operator"`   // ID of the identity that asked for it
	Key      string    `json:"key"`        // hash of the key that it asked with: who loses that loses this
	Role     Role      `json:"role"`       // what may be done in it
	Link     string    `json:"link"`       // hash of the link's secret
	Secret   string    `json:"secret"`     // hash of the cookie's secret; empty: nobody has used the link
	From     string    `json:"from"`       // address of the browser
	Browser  string    `json:"browser"`    // what it says that it is, for people
	Until    time.Time `json:"until"`      // end of the link, and of the session once it is open
	Offered  time.Time `json:"offered_at"` // when it was asked for
	Opened   time.Time `json:"opened_at,omitzero"`
	Revision uint64    `json:"revision"`
}

// Role says what may be done in a session.
type Role string

// The roles.
const (
	Operate Role = "operator"  // all that the operator may
	Look    Role = "read-only" // nothing is changed
)

// Open tells that the link was used.
func (s *Session) Open() bool { return s.Secret != "" }

// Good tells that the link or the session has not ended.
func (s *Session) Good(at time.Time) bool { return at.Before(s.Until) }

// Use is the session that a link opens, with the hash of the secret of its cookie.
func (s Session) Use(secret, from, browser string, at time.Time) Session {
	s.Secret, s.From, s.Browser = secret, from, strings.ToValidUTF8(browser[:min(len(browser), maxBrowser)], "")
	s.Opened, s.Until = at, at.Add(Life)
	return s
}

// Draw makes what proves a link or a session from random bytes: the text to give away, and the hash that is kept.
func Draw(id string, random func([]byte)) (text, hash string) {
	raw := make([]byte, secretBytes)
	random(raw)
	secret := base64.RawURLEncoding.EncodeToString(raw)
	return id + "." + secret, Hash(secret)
}

// Parse takes the text of a link or a cookie apart.
func Parse(text string) (id, hash string, whole bool) {
	id, secret, whole := strings.Cut(text, ".")
	if raw, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(raw) != secretBytes || id == "" {
		return "", "", false
	}
	return id, Hash(secret), whole
}

// Hash is what is kept of a secret. It is drawn from all that there are, so it needs no salt.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Same compares hashes in a time that does not tell where they differ.
func Same(a, b string) bool { return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
