package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"berth/shared/config"
)

// Bounds of what waits for the collector, and of one request.
const (
	mostWaiting = 4096 // spans; of more, the oldest are dropped
	mostSent    = 256  // in one request
	sendEvery   = time.Second
	tryAgain    = 10 * time.Second
	patience    = 10 * time.Second
	farewell    = 2 * time.Second // for the last request
	mostAnswer  = 4 << 10         // bytes that are read of an answer
)

// Exporter sends spans to a collector. A collector that does not answer holds up nothing but spans. It is safe for concurrent use.
type Exporter struct {
	config            Config
	service, instance string
	log               hclog.Logger
	client            *http.Client

	mu      sync.Mutex
	waiting []Span
	dropped int
	failed  rate.Sometimes // of the log
}

// New makes an exporter for a service, and an instance of it by its name. An error is about the configuration.
func New(c Config, service, instance string, log hclog.Logger) (*Exporter, error) {
	trusted, err := c.trust()
	if err != nil {
		return nil, err
	}
	return &Exporter{
		config: c, service: service, instance: instance, log: log, failed: rate.Sometimes{Interval: time.Minute},
		client: &http.Client{Timeout: patience, Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: trusted, ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
			IdleConnTimeout: time.Minute, TLSHandshakeTimeout: patience,
		}},
	}, nil
}

// Start makes an exporter as New does; nil: traces are off, or cannot be sent, and then the log says why. A collector is no reason for a
// program not to run.
func Start(c Config, service, instance string, log hclog.Logger) *Exporter {
	if !c.On() {
		return nil
	}
	exporter, err := New(c, service, instance, log)
	if err != nil {
		log.Error("no traces are sent; everything else goes on", "error", err, "next_step",
			"change the key traces of the configuration, and restart")
		return nil
	}
	return exporter
}

// Add sends spans soon. It does not wait.
func (e *Exporter) Add(spans ...Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, spans...)
	if over := len(e.waiting) - mostWaiting; over > 0 {
		e.waiting, e.dropped = append([]Span(nil), e.waiting[over:]...), e.dropped+over
	}
}

// Run sends until the context ends, and then once more what is left.
func (e *Exporter) Run(ctx context.Context) {
	defer e.client.CloseIdleConnections()
	wait := sendEvery
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			defer cancel()
			_ = e.drain(last) // nobody waits for it
			return
		case <-time.After(wait):
		}
		if wait = sendEvery; e.drain(ctx) != nil {
			wait = tryAgain
		}
	}
}

// Flush sends what waits, within a moment or not at all. It is for a program that ends.
func (e *Exporter) Flush(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // it is the farewell of one that runs
	e.Run(ctx)
}

// drain sends all that waits. What a collector does not take now waits on; what it never will is dropped.
func (e *Exporter) drain(ctx context.Context) error {
	for {
		e.mu.Lock()
		some := append([]Span(nil), e.waiting[:min(len(e.waiting), mostSent)]...)
		dropped := e.dropped
		e.waiting, e.dropped = e.waiting[len(some):], 0
		e.mu.Unlock()
		if dropped > 0 {
			e.log.Warn("spans were dropped, because the collector did not take them in time", "spans", dropped)
		}
		if len(some) == 0 {
			return nil
		}
		err := e.send(ctx, some)
		if err == nil {
			continue
		}
		e.failed.Do(func() {
			e.log.Warn("the collector of traces does not take spans; all else goes on", "error", err, "next_step",
				"see the log of the collector, and the key traces of the configuration")
		})
		if errors.Is(err, errNever) {
			continue
		}
		e.mu.Lock()
		e.waiting = append(some, e.waiting...)
		e.mu.Unlock()
		e.Add() // what is too much goes
		return err
	}
}

// errNever reports what is not sent again.
var errNever = errors.New("it refuses them")

func (e *Exporter) send(ctx context.Context, spans []Span) error {
	body, err := message(e.service, e.instance, spans)
	if err != nil {
		return fmt.Errorf("%w: %w", errNever, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range e.config.headers {
		request.Header.Set(name, value)
	}
	if e.config.TokenFile != "" {
		token, err := config.Secret("@"+e.config.TokenFile, nil)
		if err != nil {
			return fmt.Errorf("%w.token_file: %w", ErrConfig, err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	said, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch code := answer.StatusCode; {
	case code < 300:
		return nil
	case code == http.StatusBadRequest || code == http.StatusRequestEntityTooLarge || code == http.StatusUnsupportedMediaType:
		return fmt.Errorf("%w: %s: %.200q", errNever, answer.Status, said)
	default:
		return fmt.Errorf("%s: %.200q", answer.Status, said)
	}
}
