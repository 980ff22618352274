package scrape

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"berth/shared/exposition"
)

// What a reader may take of the program.
const (
	atOnce      = 3  // pages in work; another reader is told to come again
	connections = 32 // open ones; another is closed at once

	headerTimeout = 5 * time.Second
	pageTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	mostHeader    = 16 << 10
)

// Server serves one program's figures.
type Server struct {
	Config  Config
	Collect func(page *exposition.Page)
	// Also are other paths of the same listener, by path; nil: none.
	Also map[string]http.Handler
	// Large tells that pages have megabytes: they are compressed for a reader that takes that.
	Large bool
	Log   hclog.Logger

	open    atomic.Int64
	working atomic.Int64
	faults  rate.Sometimes // of the log, for a file that cannot be read
	refused rate.Sometimes // of the log, for readers that show something wrong
}

// Run serves until the context ends. Figures are no reason for a program not to run: what is in the way is logged, and Run returns.
func (s *Server) Run(ctx context.Context) {
	if s.Config.Listen == Off {
		return
	}
	s.faults.Interval, s.refused.Interval = time.Minute, time.Minute
	if err := s.serve(ctx); err != nil {
		s.Log.Error("figures for Prometheus are not served; everything else is", "error", err,
			"next_step", "change the key metrics of the configuration, and restart")
	}
}

func (s *Server) serve(ctx context.Context) error {
	secure, err := s.secure()
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", s.Config.Listen)
	if err != nil {
		return fmt.Errorf("%w.listen: %w", ErrConfig, err)
	}
	if at, is := listener.Addr().(*net.TCPAddr); is && s.Config.open() && !at.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("%w.listen: %q is %s, which other machines reach: give token_file as well", ErrConfig, s.Config.Listen,
			at.IP), listener.Close())
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: pageTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader, ConnState: s.count,
		ErrorLog: s.Log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	s.Log.Info("figures for Prometheus are served", "address", listener.Addr(), "tls", secure != nil)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// count closes connections beyond the bound: they would take the program's files.
func (s *Server) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if s.open.Add(1) > connections {
			_ = conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	default:
	}
}

// Handler answers readers.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	for path, handler := range s.Also {
		mux.Handle("GET "+path, handler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch refused, fault := s.Config.admits(r, time.Now()); {
		case fault != nil:
			s.faults.Do(func() { s.Log.Error("nobody can read figures", "error", fault) })
			http.Error(w, "what this listener knows readers by cannot be read: its log says why", http.StatusServiceUnavailable)
			return
		case refused != nil:
			s.refused.Do(func() { s.Log.Info("a reader of figures is refused", "from", r.RemoteAddr, "reason", refused) })
			w.Header().Set("WWW-Authenticate", `Bearer realm="berth"`)
			http.Error(w, refused.Error(), http.StatusUnauthorized)
			return
		}
		if s.working.Add(1) > atOnce {
			s.working.Add(-1)
			w.Header().Set("Retry-After", "1")
			http.Error(w, "others are reading: come again", http.StatusServiceUnavailable)
			return
		}
		defer s.working.Add(-1)
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", exposition.ContentType)
	var to io.Writer = w
	if s.Large && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one that there is
		defer packed.Close()
		to = packed
	}
	page := exposition.NewPage(to)
	s.Collect(page)
	writeProcess(page)
	if err := page.Flush(); err != nil {
		s.Log.Debug("a reader went away", "from", r.RemoteAddr, "error", err)
	}
}
