package webhook

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAddressesOfTheMachineTheLinkAndOfMetadataAreRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1:443": false, "[::1]:443": false, "169.254.169.254:80": false, "[fe80::1%eth0]:443": false, "[fd00:ec2::254]:80": false,
		"[::ffff:169.254.169.254]:80": false, "[64:ff9b::a9fe:a9fe]:80": false, "0.0.0.0:1": false, "224.0.0.1:1": false,
		"100.100.100.200:80": false, "192.0.0.192:80": false, "10.0.0.1:443": true, "192.0.2.7:443": true, "[2001:db8::1]:443": true,
	} {
		if err := allowed(address); (err == nil) != want || err != nil && !errors.Is(err, errAddress) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAReceiverOnTheMachineItselfIsReachedOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	hook := r.hook()
	hook.Local = false
	c := newClient(hook, secret, true)
	if err := c.post(t.Context(), "msg_1", time.Now(), []byte(`{"id":"msg_1"}`)); !errors.Is(err, errAddress) {
		t.Errorf("%v", err)
	}
	hook.Local, hook.CA = true, ""
	if err := newClient(hook, secret, true).post(t.Context(), "msg_1", time.Now(), nil); err == nil {
		t.Error("a certificate by a strange authority was trusted")
	}
	if _, tries := r.got(); tries != 0 {
		t.Errorf("%d tries came through", tries)
	}
	hook = r.hook()
	r.say(func(message) int { return http.StatusTemporaryRedirect })
	err := newClient(hook, secret, true).post(t.Context(), "msg_1", time.Now(), []byte(`{"id":"msg_1"}`))
	if err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("%v", err)
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hook Webhook
		say  string
	}{
		{Webhook{Name: "a", URL: "https://example.com/x", Kinds: []string{"vm.*"}}, ""},
		{Webhook{Name: "a", URL: "http://example.com/x", HTTP: true}, ""},
		{Webhook{Name: "a", URL: "http://example.com/x"}, "allow http"},
		{Webhook{Name: "a", URL: "ftp://example.com/x"}, "want https"},
		{Webhook{Name: "a", URL: "example.com"}, "no URL"},
		{Webhook{Name: "a", URL: "https://ann:pw@example.com"}, "password"},
		{Webhook{Name: "a", URL: "https://example.com/#x"}, "fragment"},
		{Webhook{Name: "a b", URL: "https://example.com/"}, "name"},
		{Webhook{Name: "a", URL: "https://example.com/", Kinds: []string{"[a"}}, "no pattern"},
		{Webhook{Name: "a", URL: "https://example.com/", CA: "x"}, "no certificate"},
	} {
		err := c.hook.Check()
		if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v, want %q", c.hook, err, c.say)
		}
	}
	if _, err := ParseSecret("whsec_c2hvcnQ="); err == nil {
		t.Error("a short secret was taken")
	}
	if got, err := ParseSecret(SecretText(secret)); err != nil || string(got) != string(secret) {
		t.Errorf("%q, %v", got, err)
	}
}
