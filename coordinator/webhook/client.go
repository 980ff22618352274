package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/shared/buildinfo"
)

// Bounds of one try.
const (
	tryPatience = 10 * time.Second
	maxAnswer   = 4 << 10 // bytes of an answer that are read; no more is needed to use the connection again
	maxHeaders  = 16 << 10
	inFlight    = 4 // deliveries to one receiver at the same time
)

// client speaks to one receiver.
type client struct {
	url    string
	secret []byte
	http   *http.Client
}

// newClient makes a client. A connection that is fresh for each try suits virtual time, in which nobody may wait for the network.
func newClient(w *Webhook, secret []byte, fresh bool) *client {
	dialer := &net.Dialer{Timeout: tryPatience}
	if !w.Local {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return allowed(address) }
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if w.CA != "" {
		trust.RootCAs = x509.NewCertPool()
		trust.RootCAs.AppendCertsFromPEM([]byte(w.CA))
	}
	return &client{url: w.URL, secret: secret, http: &http.Client{
		Transport: &http.Transport{ // no proxy: what is refused would be reached through it
			DialContext: dialer.DialContext, TLSClientConfig: trust, ForceAttemptHTTP2: !fresh, DisableKeepAlives: fresh,
			TLSHandshakeTimeout: tryPatience, ResponseHeaderTimeout: tryPatience, IdleConnTimeout: 30 * time.Second,
			MaxConnsPerHost: inFlight, MaxIdleConnsPerHost: inFlight, MaxResponseHeaderBytes: maxHeaders, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// post makes one try. Only an answer of the 200s means that it was taken.
func (c *client) post(ctx context.Context, id string, at time.Time, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "berth/"+buildinfo.Version())
	request.Header.Set(headerID, id)
	request.Header.Set(headerTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(headerSignature, sign(c.secret, id, at, body))
	answer, err := c.http.Do(request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("it did not answer within %v", tryPatience)
		}
		if outer := new(url.Error); errors.As(err, &outer) {
			return outer.Err // without the URL, which people see next to it
		}
		return err
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch answer.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		return fmt.Errorf("it answered %s, and redirections are not followed: give the address that it names", answer.Status)
	default:
		return fmt.Errorf("it answered %s: %s", answer.Status, firstLine(said))
	}
}

// firstLine is what an answer says, for people.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if len(line) > 120 {
		line = line[:120] + "..."
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line), "?")
}

// errAddress refuses an address at which no receiver should be.
var errAddress = errors.New("is of the coordinator's own machine or link, or one that clouds keep for their metadata: " +
	"'berth webhook add NAME URL --allow-local' allows that")

// Addresses that clouds keep for metadata and credentials, beside those of the link.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("192.0.0.192/32"),
}

// translated has IPv4 addresses in its last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// allowed judges the address that a name has come to, just before it is connected to.
func allowed(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s is no address: %w", address, err)
	}
	ip := at.Addr().Unmap().WithZone("")
	if translated.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	refused := ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast()
	for _, one := range metadata {
		refused = refused || one.Contains(ip)
	}
	if refused {
		return fmt.Errorf("%s %w", at.Addr(), errAddress)
	}
	return nil
}
