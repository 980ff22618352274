package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 5, time.UTC)

// collector takes spans as one of OpenTelemetry does.
type collector struct {
	*httptest.Server

	mu     sync.Mutex
	codes  []int // of the next answers; then 200
	tokens []string
	bodies [][]byte
	spans  []sentSpan
	taken  chan struct{}
}

func newCollector(t *testing.T, codes ...int) *collector {
	t.Helper()
	c := &collector{codes: codes, taken: make(chan struct{}, 100)}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v, %v", r.Method, r.URL, r.Header, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tokens = append(c.tokens, r.Header.Get("Authorization"))
		c.bodies = append(c.bodies, body)
		if len(c.codes) > 0 {
			code := c.codes[0]
			c.codes = c.codes[1:]
			w.WriteHeader(code)
			return
		}
		var got request
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
			return
		}
		for _, from := range got.ResourceSpans {
			for _, scope := range from.ScopeSpans {
				for _, span := range scope.Spans { // what is sent twice is the same
					if !slices.ContainsFunc(c.spans, func(s sentSpan) bool { return s.TraceID == span.TraceID && s.SpanID == span.SpanID }) {
						c.spans = append(c.spans, span)
					}
				}
			}
		}
		c.taken <- struct{}{}
	}))
	t.Cleanup(c.Close)
	return c
}

// config is what speaks to the collector.
func (c *collector) config(t *testing.T) Config {
	t.Helper()
	folder := t.TempDir()
	made := Config{Endpoint: c.URL, CAFile: filepath.Join(folder, "ca.pem"), TokenFile: filepath.Join(folder, "token")}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})
	if err := errors.Join(os.WriteFile(made.CAFile, text, 0o600), os.WriteFile(made.TokenFile, []byte("secret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := made.Complete(); err != nil {
		t.Fatal(err)
	}
	return made
}

func spans(n int) []Span {
	all := make([]Span, n)
	for i := range all {
		all[i] = Span{Operation: "op", Name: "phase", Part: fmt.Sprint(i), Begun: noon, Ended: noon.Add(time.Second)}
	}
	return all
}

func exporter(t *testing.T, c Config) (*Exporter, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	e, err := New(c, "berth-test", "c1", hclog.New(&hclog.LoggerOptions{Output: log}))
	if err != nil {
		t.Fatal(err)
	}
	return e, log
}

// A collector gets what OTLP says, by TLS and with the token. Parts point at the whole, by IDs that two programs make alike.
func TestACollectorGetsSpans(t *testing.T) {
	c := newCollector(t)
	e, _ := exporter(t, c.config(t))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	e.Add(
		Span{
			Operation: "op1", Kind: "start", Begun: noon, Ended: noon.Add(time.Second),
			About: map[string]string{"berth.vm": "web<1>", "none": ""},
		},
		Span{Operation: "op1", Name: "copying", Begun: noon, Ended: noon.Add(-time.Second), Failed: "no room"},
		Span{Operation: "op2", Name: "copying", Begun: noon, Ended: noon},
	)
	<-c.taken
	e.Add(Span{Operation: "op3", Kind: "last", Begun: noon, Ended: noon})
	stop()
	<-ended // with what was left
	if len(c.spans) != 4 || c.tokens[0] != "Bearer secret" {
		t.Fatalf("%d spans, %v", len(c.spans), c.tokens)
	}
	whole, part, other := c.spans[0], c.spans[1], c.spans[2]
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(whole.TraceID) || !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(part.SpanID) {
		t.Errorf("IDs %q and %q", whole.TraceID, part.SpanID)
	}
	if whole.TraceID != TraceID("op1") || part.TraceID != whole.TraceID || part.ParentID != whole.SpanID || whole.ParentID != "" ||
		other.TraceID == whole.TraceID || other.SpanID == part.SpanID {
		t.Errorf("they do not belong together:\n%+v\n%+v\n%+v", whole, part, other)
	}
	if whole.Name != "start" || whole.Begun != fmt.Sprint(noon.UnixNano()) || whole.Ended != fmt.Sprint(noon.UnixNano()+1e9) ||
		whole.Status != nil || len(whole.Attributes) != 1 || whole.Attributes[0].Value.Text != "web<1>" {
		t.Errorf("the whole: %+v", whole)
	}
	if part.Status == nil || part.Status.Code != failedCode || part.Status.Message != "no room" || part.Ended != part.Begun {
		t.Errorf("the part: %+v", part)
	}
	if first := string(c.bodies[0]); !strings.Contains(first, `{"key":"service.name","value":{"stringValue":"berth-test"}}`) {
		t.Errorf("the service is not named: %s", first)
	}
}

// What a collector does not take now is sent again, and what it refuses for good is not. Of too many the oldest go.
func TestACollectorThatDoesNotTakeThem(t *testing.T) {
	c := newCollector(t, http.StatusServiceUnavailable, http.StatusUnauthorized)
	e, log := exporter(t, c.config(t))
	e.Add(spans(2)...)
	for range 2 {
		if err := e.drain(t.Context()); err == nil || len(c.spans) > 0 {
			t.Fatalf("%v, %d spans", err, len(c.spans))
		}
	}
	if err := e.drain(t.Context()); err != nil || len(c.spans) != 2 {
		t.Errorf("%v, %d spans", err, len(c.spans))
	}
	c.codes = []int{http.StatusBadRequest}
	e.Add(spans(1)...)
	if err := e.drain(t.Context()); err != nil || len(c.spans) != 2 || len(e.waiting) != 0 {
		t.Errorf("of a refusal: %v, %d spans, %d wait", err, len(c.spans), len(e.waiting))
	}
	if !strings.Contains(log.String(), "does not take spans") || !strings.Contains(log.String(), "key traces") {
		t.Errorf("the log says %s", log)
	}
	e.Add(spans(mostWaiting + 3)...)
	if len(e.waiting) != mostWaiting || e.waiting[0].Part != "3" {
		t.Errorf("%d wait, from %s", len(e.waiting), e.waiting[0].Part)
	}
	c.spans = nil
	if err := e.drain(t.Context()); err != nil || len(c.spans) != mostWaiting || !strings.Contains(log.String(), "spans were dropped") {
		t.Errorf("%v, %d spans, and the log says %s", err, len(c.spans), log)
	}
	stranger := newCollector(t)
	trusting := c.config(t)
	trusting.Endpoint, trusting.CAFile = stranger.URL, filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(trusting.CAFile, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(trusting, "x", "y", hclog.NewNullLogger())
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), trusting.CAFile) {
		t.Errorf("without an authority: %v", err)
	}
}

func TestWhatTheConfigurationMaySayOfTraces(t *testing.T) {
	for _, c := range []struct {
		is   Config
		want string // endpoint, or a part of the error
		bad  bool
	}{
		{Config{}, "", false},
		{Config{Endpoint: "https://c:4318"}, "https://c:4318/v1/traces", false},
		{Config{Endpoint: "https://c/", TokenFile: "/t", CAFile: "/c"}, "https://c/v1/traces", false},
		{Config{Endpoint: "https://c/otlp/v1/traces"}, "https://c/otlp/v1/traces", false},
		{Config{Endpoint: "http://127.0.0.1:4318"}, "http://127.0.0.1:4318/v1/traces", false},
		{Config{Endpoint: "http://localhost:4318"}, "http://localhost:4318/v1/traces", false},
		{Config{Endpoint: "http://c:4318"}, "in the clear", true},
		{Config{Endpoint: "c:4318"}, `"c:4318" is no address like https://collector:4318`, true},
		{Config{Endpoint: "https://u:p@c"}, "is no address like", true},
		{Config{Endpoint: "https://c", TokenFile: "t"}, "key traces.token_file: \"t\": want an absolute path", true},
		{Config{CAFile: "/c"}, "key traces.ca_file: there is no collector", true},
	} {
		got := c.is
		err := got.Complete()
		if c.bad != errors.Is(err, ErrConfig) || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.Endpoint != c.want {
			t.Errorf("%+v: %+v, %v, want %s", c.is, got, err, c.want)
		}
	}
}

// The environment says where to, as to every program of OpenTelemetry, and may say that nothing is sent.
func TestTheEnvironmentNamesACollector(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string // endpoint; empty: off
	}{
		"nothing":         {nil, ""},
		"for all signals": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:4318"}, "https://c:4318/v1/traces"},
		"below a path":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c/otlp/"}, "https://c/otlp/v1/traces"},
		"for traces": {map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://d/x",
		}, "https://d/x"},
		"off":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_SDK_DISABLED": "true"}, ""},
		"no exporter": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_TRACES_EXPORTER": "none"}, ""},
	} {
		got, err := FromEnvironment(func(name string) string { return c.env[name] })
		if err != nil || got.Endpoint != c.want || got.On() != (c.want != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, env := range []map[string]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://elsewhere:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_HEADERS": "what"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE": "here.pem"},
	} {
		if got, err := FromEnvironment(func(name string) string { return env[name] }); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %+v, %v", env, got, err)
		}
	}
}

// A program that ends sends what it has at once, with the headers that its environment names.
func TestAProgramThatEndsFlushes(t *testing.T) {
	c := newCollector(t)
	config := c.config(t)
	env := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": config.CAFile,
		"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20mine, x-tenant=a",
	}
	read, err := FromEnvironment(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	e, _ := exporter(t, read)
	e.Add(Span{Operation: "op1", Name: "berth vm start", Calls: true, Begun: noon, Ended: noon.Add(time.Second)},
		Span{Operation: "op1", Kind: "start", Called: true, Begun: noon, Ended: noon})
	e.Flush(t.Context())
	if len(c.spans) != 2 || c.spans[0].ParentID != "" || c.spans[1].ParentID != c.spans[0].SpanID || c.tokens[0] != "Bearer mine" {
		t.Errorf("it got %+v with %q", c.spans, c.tokens)
	}
}

func TestMarked(t *testing.T) {
	if one := Marked("r1"); !IsMarked(one) || Marked(one) != one || IsMarked("r1") {
		t.Errorf("%q", one)
	}
}
