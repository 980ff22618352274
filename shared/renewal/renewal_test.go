package renewal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

var who = pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "hv1", ClusterID: "c1"}

// site is an authority, and a holder's files.
type site struct {
	*testing.T
	authority *pki.Authority // that signs now
	trusted   []byte
	files     pki.Files
	asked     []time.Time // with a request
	trusts    []string    // that it said at last
	fails     error
}

func newSite(t *testing.T, life time.Duration) *site {
	t.Helper()
	s := &site{T: t, authority: authority(t)}
	s.trusted = s.authority.CertificatePEM()
	dir := t.TempDir()
	s.files = pki.Files{CA: filepath.Join(dir, "ca"), Certificate: filepath.Join(dir, "certificate"), Key: filepath.Join(dir, "key")}
	request, key, err := pki.NewRequest("hv1")
	s.check(err)
	certificate, err := s.authority.Sign(request, who, nil, time.Now(), life)
	s.check(err)
	for path, data := range map[string][]byte{s.files.CA: s.trusted, s.files.Certificate: certificate, s.files.Key: key} {
		s.check(os.WriteFile(path, data, 0o600))
	}
	return s
}

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) ask(_ context.Context, question Question) (Answer, error) {
	request := question.Request
	s.trusts = question.Trusts
	if s.fails != nil {
		s.asked = append(s.asked, time.Now())
		return Answer{}, s.fails
	}
	answer := Answer{Trusted: s.trusted, Authority: s.authority.ID()}
	if len(request) == 0 {
		return answer, nil
	}
	s.asked = append(s.asked, time.Now())
	var err error
	answer.Certificate, err = s.authority.Sign(request, who, nil, time.Now(), pki.CertificateLife)
	return answer, err
}

func (s *site) pair() pki.Pair {
	s.Helper()
	pair, err := pki.LoadPair(s.files)
	s.check(err)
	return pair
}

// A year goes by. The certificate is good on every day, and the key is the same.
func TestACertificateIsRenewedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, life := range []time.Duration{pki.CertificateLife, pki.UnrenewedLife} { // the latter of an earlier release
			s := newSite(t, life)
			key := pki.KeyHash(s.pair().Certificate)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				Keep(ctx, s.files, s.ask, nil, hclog.NewNullLogger())
			}()
			for range 365 {
				time.Sleep(24 * time.Hour)
				if pair := s.pair(); time.Until(pair.Certificate.NotAfter) < 9*24*time.Hour || pki.KeyHash(pair.Certificate) != key {
					t.Fatalf("after %s it is good until %s", time.Now(), pair.Certificate.NotAfter)
				}
			}
			cancel()
			<-done
			if n := len(s.asked); n < 18 || n > 22 {
				t.Errorf("it was renewed %d times in a year", n)
			}
			if left := time.Until(s.pair().Certificate.NotAfter); left > pki.CertificateLife {
				t.Errorf("one of an earlier release is still good for %s", left)
			}
		}
	})
}

// What fails is tried again, not too often. Once little is left, it is an error in the log. Then it works again.
func TestAFailureIsRepeatedAndAnErrorInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, pki.CertificateLife)
		s.fails = errors.New("nobody is there")
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Keep(ctx, s.files, s.ask, nil, hclog.New(&hclog.LoggerOptions{Output: &log}))
		}()
		time.Sleep(19 * 24 * time.Hour)
		synctest.Wait()
		if strings.Contains(log.String(), "[ERROR]") || !strings.Contains(log.String(), "tried again") {
			t.Errorf("after 19 days the log has %.300s", log.String())
		}
		time.Sleep(3 * 24 * time.Hour)
		synctest.Wait()
		if !strings.Contains(log.String(), "ends soon") {
			t.Error("after 22 days the log has no error")
		}
		if n := len(s.asked); n < 22*12 || n > 22*24+10 {
			t.Errorf("it was tried %d times in 22 days", n)
		}
		s.fails = nil
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if left := time.Until(s.pair().Certificate.NotAfter); left < 29*24*time.Hour {
			t.Errorf("it is there again, and the certificate is good for %s", left)
		}
		cancel()
		<-done
	})
}

// When another authority signs, everybody trusts both, and has a certificate of the new one within the hour. Then the old one goes.
func TestTheNextAuthorityIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, pki.CertificateLife)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Keep(ctx, s.files, s.ask, nil, hclog.NewNullLogger())
		}()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		next := authority(t)
		s.trusted = append(s.trusted, next.CertificatePEM()...)
		time.Sleep(lookEvery + time.Minute)
		synctest.Wait()
		if text, err := os.ReadFile(s.files.CA); err != nil || !bytes.Equal(text, s.trusted) || len(s.asked) != 0 {
			t.Errorf("it trusts %s, %v, and was renewed %d times", text, err, len(s.asked))
		}
		s.authority = next
		time.Sleep(lookEvery + time.Minute)
		synctest.Wait()
		if got := pki.AuthorityOf(s.pair().Certificate); got != next.ID() {
			t.Errorf("its certificate is of %s, want %s", got, next.ID())
		}
		s.trusted = next.CertificatePEM()
		time.Sleep(lookEvery + time.Minute)
		synctest.Wait()
		if text, err := os.ReadFile(s.files.CA); err != nil || !bytes.Equal(text, s.trusted) {
			t.Errorf("it trusts %s, %v", text, err)
		}
		cancel()
		<-done
	})
}

// An answer that is no renewal changes nothing.
func TestWhatIsNoRenewalIsNotWritten(t *testing.T) {
	s := newSite(t, pki.CertificateLife)
	before := map[string]string{}
	for _, path := range []string{s.files.CA, s.files.Certificate, s.files.Key} {
		text, err := os.ReadFile(path)
		s.check(err)
		before[path] = string(text)
	}
	foreign := authority(t)
	for what, ask := range map[string]Ask{
		"nothing": func(context.Context, Question) (Answer, error) { return Answer{}, nil },
		"a foreign authority's": func(_ context.Context, question Question) (Answer, error) {
			certificate, err := foreign.Sign(question.Request, who, nil, time.Now(), time.Hour)
			return Answer{Certificate: certificate, Trusted: s.trusted}, err
		},
		"another's": func(_ context.Context, question Question) (Answer, error) {
			other := who
			other.ID = "n2"
			certificate, err := s.authority.Sign(question.Request, other, nil, time.Now(), time.Hour)
			return Answer{Certificate: certificate, Trusted: s.trusted}, err
		},
	} {
		if _, err := Once(t.Context(), s.files, time.Now().Add(pki.CertificateLife*3/4), ask); !errors.Is(err, pki.ErrRenewal) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Once(t.Context(), s.files, time.Now(), func(context.Context, Question) (Answer, error) {
		return Answer{Trusted: foreign.CertificatePEM(), Authority: s.authority.ID()}, nil
	}); !errors.Is(err, pki.ErrRenewal) {
		t.Errorf("a list without the own authority: %v", err)
	}
	for path, was := range before {
		if text, err := os.ReadFile(path); err != nil || string(text) != was {
			t.Errorf("%s has become %s, %v", path, text, err)
		}
	}
}

// A coordinator of an earlier release refuses a procedure that it does not know to everybody; that is no refusal of this caller.
func TestAnEarlierReleaseIsNoRefusal(t *testing.T) {
	denied := func(subject string) error {
		return rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{Code: rpc.Denied, Subject: subject}, "no")
	}
	for _, err := range []error{connect.NewError(connect.CodeUnimplemented, nil), denied("/Renew")} {
		if got := Refused(err, "/Renew"); !errors.Is(got, ErrUnknown) {
			t.Errorf("%v is %v", err, got)
		}
	}
	if got := Refused(denied("node/hv1"), "/Renew"); errors.Is(got, ErrUnknown) {
		t.Error("who was revoked is told that the coordinators do not renew yet")
	}
	if got := Refused(nil, "/Renew"); got != nil {
		t.Errorf("success is %v", got)
	}
}

// Who hears of another authority trusts it, says so, and has a certificate by it once it signs. Then the one before goes.
func TestAnotherAuthorityIsTrustedBeforeItSigns(t *testing.T) {
	s := newSite(t, pki.CertificateLife)
	first, next := s.authority, authority(t)
	if Stale(s.files, []string{first.ID()}) {
		t.Error("what is here is stale")
	}
	for _, is := range []struct {
		trusted []*pki.Authority
		signs   *pki.Authority
	}{{[]*pki.Authority{first, next}, first}, {[]*pki.Authority{next, first}, next}, {[]*pki.Authority{next}, next}} {
		s.authority, s.trusted = is.signs, nil
		var ids []string
		for _, one := range is.trusted {
			s.trusted, ids = append(s.trusted, one.CertificatePEM()...), append(ids, one.ID())
		}
		if !Stale(s.files, ids) {
			t.Errorf("%v is not news", ids)
		}
		if _, err := Once(t.Context(), s.files, time.Now(), s.ask); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.trusts, ids) || Stale(s.files, ids) || pki.AuthorityOf(s.pair().Certificate) != is.signs.ID() {
			t.Errorf("it says that it trusts %v, and is certified by %s; want %v", s.trusts, pki.AuthorityOf(s.pair().Certificate), ids)
		}
	}
}
