// Package renewal keeps certificates good: it has them renewed before they end, over the connections that they prove, and follows the
// list of authorities that the cluster trusts. The key stays, so nothing that is open is cut off.
package renewal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/shared/config"
	"berth/shared/pause"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Answer is what a coordinator says to who asks for a renewal.
type Answer struct {
	Certificate []byte // PEM; empty if none was asked for
	Trusted     []byte // the authorities that the cluster trusts, PEM; empty: not told
	Authority   string // that signs now; empty: not told
}

// Question is what the coordinators are asked and told.
type Question struct {
	Request []byte   // for a certificate, PEM; empty: only what is trusted is asked for
	Trusts  []string // IDs of the authorities that are trusted here by now
}

// Ask brings a question to the coordinators. The error is ErrUnknown if they cannot renew.
type Ask func(ctx context.Context, question Question) (Answer, error)

// ErrUnknown reports coordinators of a release that renews nothing.
var ErrUnknown = errors.New("the coordinators do not renew certificates yet: update them")

// Refused makes ErrUnknown of the refusal of a procedure that a coordinator does not know. One of an earlier release says that the caller
// may not call it: nobody may call there what it does not know.
func Refused(err error, procedure string) error {
	unknown := connect.CodeOf(err) == connect.CodeUnimplemented ||
		connect.CodeOf(err) == connect.CodePermissionDenied && rpc.Detail(err).GetSubject() == procedure
	if err != nil && unknown {
		return ErrUnknown
	}
	return err
}

// When certificates are looked at.
const (
	lookEvery   = time.Hour
	firstLook   = time.Minute // at most
	firstPause  = time.Minute // after a failure
	longestWait = lookEvery
	spread      = 30 * time.Second // of holders who hear of another authority at once
)

// Once asks what is trusted, and renews the certificate in the files if its time has come or if another authority signs now. Everything
// is written atomically: whoever reads the files finds the old certificate or the new one, and the same key.
func Once(ctx context.Context, files pki.Files, now time.Time, ask Ask) (renewed bool, err error) {
	pair, err := pki.LoadPair(files)
	if err != nil {
		return false, err
	}
	if !pair.Due("", now) {
		answer, err := learn(ctx, pair, files, ask)
		if err != nil {
			return false, err
		}
		if !pair.Due(answer.Authority, now) {
			return false, nil
		}
	}
	if err := renew(ctx, pair, files, ask); err != nil {
		return false, err
	}
	// It is seen in use with the next question, and written down.
	_, err = learn(ctx, pair, files, ask)
	return true, err
}

// learn asks what is trusted until the files have it, and the coordinators know that they do.
func learn(ctx context.Context, pair pki.Pair, files pki.Files, ask Ask) (answer Answer, err error) {
	for range 2 {
		before, err := trusts(files)
		if err != nil {
			return answer, err
		}
		if answer, err = ask(ctx, Question{Trusts: before}); err != nil {
			return answer, err
		}
		if err := trust(pair, files, answer.Trusted); err != nil {
			return answer, err
		}
		if after, err := trusts(files); err != nil || slices.Equal(before, after) {
			return answer, err
		}
	}
	return answer, nil
}

// trusts are the IDs of the authorities in the files.
func trusts(files pki.Files) ([]string, error) {
	text, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, err
	}
	return pki.AuthorityIDs(text)
}

// Stale tells that the files are behind what coordinators say of the authorities that are trusted, the one that signs first.
func Stale(files pki.Files, authorities []string) bool {
	pair, err := pki.LoadPair(files)
	if err != nil || len(authorities) == 0 {
		return false
	}
	here, err := trusts(files)
	return err == nil && (!slices.Equal(here, authorities) || pki.AuthorityOf(pair.Certificate) != authorities[0])
}

func renew(ctx context.Context, pair pki.Pair, files pki.Files, ask Ask) error {
	request, err := pair.Request()
	if err != nil {
		return err
	}
	before, err := trusts(files)
	if err != nil {
		return err
	}
	answer, err := ask(ctx, Question{Request: request, Trusts: before})
	if err != nil {
		return err
	}
	if err := pair.Check(answer.Certificate, answer.Trusted); err != nil {
		return err
	}
	// The list goes first: it has both authorities while one follows the other.
	if err := trust(pair, files, answer.Trusted); err != nil {
		return err
	}
	return write(files.Certificate, answer.Certificate)
}

// trust writes down who is trusted, if that is new.
func trust(pair pki.Pair, files pki.Files, trusted []byte) error {
	if len(trusted) == 0 {
		return nil
	}
	before, err := os.ReadFile(files.CA)
	if err == nil && bytes.Equal(before, trusted) {
		return nil
	}
	if err := pair.CheckTrusted(trusted); err != nil {
		return err
	}
	return write(files.CA, trusted)
}

// write replaces a file and keeps its mode.
func write(path string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return config.WriteFile(path, data, info.Mode().Perm())
}

// Keep renews the certificate in the files for as long as the context lasts. Looks are spread, and after a failure it waits longer each
// time. Now and again it asks what is trusted, and soon after each word on news.
func Keep(ctx context.Context, files pki.Files, ask Ask, news <-chan struct{}, log hclog.Logger) {
	wait, again := rand.N(firstLook), firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-news:
			if !pause.For(ctx, rand.N(spread)) {
				return
			}
		}
		renewed, err := Once(ctx, files, time.Now(), ask)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			Complain(files, time.Now(), err, log)
			wait, again = again+rand.N(again), min(2*again, longestWait)
			continue
		case renewed:
			log.Info("the certificate is renewed", "until", until(files))
		}
		wait, again = lookEvery/2+rand.N(lookEvery/2), firstPause
	}
}

// Complain logs why a certificate could not be renewed: as an error once little of its life is left.
func Complain(files pki.Files, now time.Time, err error, log hclog.Logger) {
	pair, unread := pki.LoadPair(files)
	switch {
	case unread == nil && pki.Late(pair.Certificate, now):
		log.Error("the certificate could not be renewed, and it ends soon", "ends", until(files), "reason", err)
	case errors.Is(err, ErrUnknown):
		log.Debug("the certificate is not renewed", "reason", err)
	default:
		log.Warn("the certificate could not be renewed; it is tried again", "ends", until(files), "reason", err)
	}
}

func until(files pki.Files) string {
	pair, err := pki.LoadPair(files)
	if err != nil {
		return fmt.Sprintf("not known: %v", err)
	}
	return pair.Certificate.NotAfter.UTC().Format(time.RFC3339)
}
