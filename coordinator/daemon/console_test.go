package daemon

import (
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// withConsole is a new cluster of one coordinator with a console at an address.
func withConsole(t *testing.T, address string) *machine {
	t.Helper()
	m := newMachine(t, "c1")
	c := m.load()
	c.Listen.Console = address
	m.check(config.Write(m.config, c, 0o644))
	m.init()
	m.run()
	m.status("", led)
	return m
}

// link asks for a link until the operator is on record, which the first second of a cluster brings.
func (m *machine) link() (answer *berthv1.OfferSessionResponse, err error) {
	m.t.Helper()
	m.status("", func(*berthv1.StatusResponse) bool {
		var response *connect.Response[berthv1.OfferSessionResponse]
		response, err = m.operator("").OfferSession(m.t.Context(), connect.NewRequest(&berthv1.OfferSessionRequest{}))
		if err == nil {
			answer = response.Msg
		}
		return err == nil || !strings.Contains(err.Error(), "not on record")
	})
	return answer, err
}

// A browser that trusts the cluster's authority gets from the link to the map, without a certificate of its own.
func TestTheConsoleLetsABrowserIn(t *testing.T) {
	address := freeAddress(t)
	m := withConsole(t, address)
	offered, err := m.link()
	m.check(err)
	at, link, _ := strings.Cut(offered.GetAddress(), "/login/")
	certificate, err := os.ReadFile(place{m.data}.tls().Certificate)
	m.check(err)
	if own, err := pki.Fingerprint(certificate); err != nil || offered.GetFingerprint() != own || at != "https://"+address {
		t.Fatalf("the link is %v, and the certificate has %s, %v", offered, own, err)
	}
	authority, err := os.ReadFile(place{m.data}.tls().CA)
	m.check(err)
	fingerprint, err := pki.Fingerprint(authority)
	m.check(err)
	browser := rpc.NewHTTPClient(pki.PinnedClientConfig(fingerprint))
	defer browser.CloseIdleConnections()
	ask := func(method, path string, form url.Values, cookie *http.Cookie) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(form.Encode()))
		m.check(err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if cookie != nil {
			r.AddCookie(cookie)
		}
		answer, err := browser.Do(r)
		m.check(err)
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		m.check(err)
		return answer, string(body)
	}
	if answer, body := ask(http.MethodGet, "/", nil, nil); answer.StatusCode != http.StatusUnauthorized || strings.Contains(body, "c1") {
		t.Errorf("without a session: %d\n%s", answer.StatusCode, body)
	}
	answer, body := ask(http.MethodPost, "/login", url.Values{"link": {link}}, nil)
	if len(answer.Cookies()) != 1 {
		t.Fatalf("the login gives %d\n%s", answer.StatusCode, body)
	}
	cookie := answer.Cookies()[0]
	if answer, body := ask(http.MethodGet, "/", nil, cookie); answer.StatusCode != http.StatusOK || !strings.Contains(body, "admin") {
		t.Errorf("with a session: %d\n%s", answer.StatusCode, body)
	}
	// Many strangers behind the same proxy close each other's connections, and not that of somebody who is logged in.
	for range visitors.Address + 8 {
		stranger, err := net.Dial("tcp", address) //nolint:noctx // it connects to this process
		m.check(err)
		defer func() { _ = stranger.Close() }()
	}
	m.status("", func(*berthv1.StatusResponse) bool { return strings.Contains(m.log.String(), "too many connections") })
	reused := false
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }})
	again, err := http.NewRequestWithContext(traced, http.MethodGet, at+"/", nil)
	m.check(err)
	again.AddCookie(cookie)
	shown, err := browser.Do(again)
	m.check(err)
	if m.check(shown.Body.Close()); !reused || shown.StatusCode != http.StatusOK {
		t.Errorf("behind many strangers: %d, by the connection of before: %t", shown.StatusCode, reused)
	}
	if answer, _ := ask(http.MethodPost, "/logout", nil, cookie); answer.StatusCode != http.StatusOK {
		t.Errorf("the logout gives %d", answer.StatusCode)
	}
	if answer, _ := ask(http.MethodGet, "/", nil, cookie); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: %d", answer.StatusCode)
	}
}

// Guests need no console: where its port is taken everything else works, and who asks for a link is told.
func TestAConsoleWhosePortIsTakenKeepsNobodyFromWork(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	m := withConsole(t, other.Addr().String())
	_, err = m.link()
	if rpc.Detail(err).GetCode() != rpc.Unavailable || !strings.Contains(rpc.Detail(err).GetNextStep(), "listen.console") {
		t.Errorf("a link to it: %v", err)
	}
	if !strings.Contains(m.log.String(), "the console does not listen") {
		t.Error("the log does not say so")
	}
}
