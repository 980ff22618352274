package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

// A token comes from wherever somebody has pasted it. One that is taken says the same when it is written down again.
func FuzzToken(f *testing.F) {
	f.Add("")
	whole, _, err := NewToken(PurposeAgent, strings.Repeat("0a", sha256.Size))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		again, err := ParseToken(strings.Join([]string{tokenVersion, token.Purpose, token.Secret, token.CAFingerprint}, "."))
		if err != nil || again != token {
			t.Errorf("%q is %+v, and again %+v, %v", text, token, again, err)
		}
	})
}

// A certificate is a stranger's until it is verified, and who it names is read from it.
func FuzzIdentity(f *testing.F) {
	authority, err := NewAuthority("c1", time.Now())
	if err != nil {
		f.Fatal(err)
	}
	request, _, err := NewRequest("n1")
	if err != nil {
		f.Fatal(err)
	}
	who := Identity{Role: RoleAgent, ID: "n1", Name: "n1", ClusterID: "c1"}
	signed, err := authority.Sign(request, who, []string{"127.0.0.1"}, time.Now(), time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add(authority.CertificatePEM())
	certificate, err := CertificateIn(signed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(certificate.Raw)
	f.Fuzz(func(t *testing.T, data []byte) {
		certificate, err := x509.ParseCertificate(data)
		if err != nil {
			if certificate, err = CertificateIn(data); err != nil {
				return
			}
		}
		if who, err := IdentityOf(certificate); err == nil {
			if err := who.check(); err != nil {
				t.Errorf("%+v: %v", who, err)
			}
		}
	})
}
