package webhook

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"berth/coordinator/model"
)

// Bounds of what people declare.
const (
	maxURL      = 2048
	maxKinds    = 32
	maxKind     = 64
	maxCA       = 32 << 10
	leastSecret = 24
	mostSecret  = 64
)

// SecretPrefix begins a secret as people and receivers have it.
const SecretPrefix = "whsec_"

// SecretText is a secret as people and receivers have it.
func SecretText(secret []byte) string {
	return SecretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseSecret reads it.
func ParseSecret(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(text), SecretPrefix))
	if err != nil || len(secret) < leastSecret || len(secret) > mostSecret {
		return nil, fmt.Errorf("the secret is not %s and the base64 of %d to %d bytes: 'openssl rand -base64 32' makes one",
			SecretPrefix, leastSecret, mostSecret)
	}
	return secret, nil
}

// Check judges what somebody declares, but for the secret.
func (w *Webhook) Check() error {
	if err := model.ValidateName("webhook", w.Name); err != nil {
		return err
	}
	if err := w.checkURL(); err != nil {
		return err
	}
	if len(w.Kinds) > maxKinds {
		return fmt.Errorf("%d kinds are more than %d: use patterns such as vm.*", len(w.Kinds), maxKinds)
	}
	for _, kind := range w.Kinds {
		if _, err := path.Match(kind, ""); err != nil || kind == "" || len(kind) > maxKind || strings.ContainsAny(kind, "/ \x00") {
			return fmt.Errorf("the kind %q is no pattern of kinds: want one such as vm.started, vm.* or operation.*", kind)
		}
	}
	switch {
	case w.CA == "":
	case len(w.CA) > maxCA:
		return fmt.Errorf("the certificates of the receiver's authority have %d bytes, more than %d", len(w.CA), maxCA)
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(w.CA)):
		return errors.New("there is no certificate in what is given as the receiver's authority: want PEM")
	}
	return nil
}

func (w *Webhook) checkURL() error {
	parsed, err := url.Parse(w.URL)
	switch {
	case err != nil || parsed.Host == "" || parsed.Hostname() == "" || len(w.URL) > maxURL:
		return fmt.Errorf("%q is no URL: want https://HOST/PATH", w.URL)
	case parsed.User != nil:
		return errors.New("the URL has a name or a password: everybody who may list webhooks would read it; the signature proves who sends")
	case parsed.Fragment != "":
		return fmt.Errorf("the URL has a fragment (#%s), which no receiver is sent", parsed.Fragment)
	case parsed.Scheme == "https" || parsed.Scheme == "http" && w.HTTP:
		return nil
	case parsed.Scheme == "http":
		return errors.New("the URL begins with http, so that everybody on the way can read what happens: use https, or allow http")
	default:
		return fmt.Errorf("the URL begins with %s: want https", parsed.Scheme)
	}
}

// Wants tells whether the receiver is to be told of something of a kind.
func (w *Webhook) Wants(kind string) bool {
	for _, pattern := range w.Kinds {
		if matches, err := path.Match(pattern, kind); err == nil && matches {
			return true
		}
	}
	return len(w.Kinds) == 0
}
