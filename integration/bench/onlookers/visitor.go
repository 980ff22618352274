package onlookers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"regexp"
	"strings"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// visitor is a browser with a session of the leader's console.
type visitor struct {
	*http.Client
	at string // https://HOST:PORT
}

// login uses a link to the console.
func (s *site) login(ctx context.Context) (*visitor, error) {
	answer, err := s.leader.API.OfferSession(ctx, connect.NewRequest(&berthv1.OfferSessionRequest{}))
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(answer.Msg.GetAddress())
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := (&visitor{Client: &http.Client{Jar: jar}, at: "https://" + s.leader.Listen.Console}).from(0)
	form := url.Values{"link": {path.Base(address.Path)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, v.at+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	page, err := v.Do(request)
	if err != nil {
		return nil, err
	}
	_, err = drained(page)
	return v, err
}

// from is the same session by another connection, from one of 250 addresses of this machine.
func (v *visitor) from(number int) *visitor {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+number%250))}}
	return &visitor{at: v.at, Client: &http.Client{Jar: v.Jar, Transport: &http.Transport{
		DialContext:       dialer.DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // it is this program's own cluster, on loopback
		ForceAttemptHTTP2: true,
	}}}
}

func (v *visitor) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.at+path, nil)
	if err != nil {
		return nil, err
	}
	return v.Do(request)
}

// read is a page or a file.
func (v *visitor) read(ctx context.Context, path string) ([]byte, error) {
	answer, err := v.get(ctx, path)
	if err != nil {
		return nil, err
	}
	return drained(answer)
}

var errClosed = errors.New("the console closes a feed")

// follow reads a feed until the context ends, as an open page does, and tells once that something has come.
func (v *visitor) follow(ctx context.Context, path string, shown chan<- struct{}) error {
	answer, err := v.get(ctx, path)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("follow %s: %s", path, answer.Status)
	}
	lines := bufio.NewReaderSize(answer.Body, 64<<10)
	for told := false; ; {
		line, err := lines.ReadSlice('\n')
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w, after it has shown something: %t: %w", errClosed, told, err)
		case !told && bytes.HasPrefix(line, []byte("data: ")):
			told = true
			shown <- struct{}{}
		}
	}
}

var (
	scripts    = regexp.MustCompile(`<script[^>]* src="([^"]+)"`)
	imports    = regexp.MustCompile(`(?m)^import [^"']*["']([^"']+)["']`)
	errScripts = errors.New("the page names no script")
)

// scripts loads what a page names of JavaScript, and what that names, and tells how large all of it is when it is packed.
func (v *visitor) scripts(ctx context.Context, of string) (count int, size float64, err error) {
	page, err := v.read(ctx, of)
	if err != nil {
		return 0, 0, err
	}
	seen, left := map[string]bool{}, []string{}
	find := func(text []byte, kind *regexp.Regexp, from string) {
		for _, found := range kind.FindAllSubmatch(text, -1) {
			at := string(found[1])
			if !path.IsAbs(at) {
				at = path.Join(path.Dir(from), at)
			}
			if !seen[at] {
				seen[at], left = true, append(left, at)
			}
		}
	}
	for find(page, scripts, of); len(left) > 0; {
		next := left[0]
		left = left[1:]
		script, err := v.read(ctx, next)
		if err != nil {
			return 0, 0, err
		}
		find(script, imports, next)
		var packed bytes.Buffer
		into := gzip.NewWriter(&packed)
		if _, err := into.Write(script); err != nil {
			return 0, 0, err
		}
		if err := into.Close(); err != nil {
			return 0, 0, err
		}
		size += float64(packed.Len())
	}
	if len(seen) == 0 {
		return 0, 0, errScripts
	}
	return len(seen), size, nil
}
