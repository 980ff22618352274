package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"berth/shared/exposition"
	"berth/shared/exposition/expositiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var things = exposition.Family{Name: "berth_things", Help: "Things that are there", Type: exposition.Gauge, Labels: []string{"thing"}}

func server(c Config) *Server {
	return &Server{
		Config: c, Log: hclog.NewNullLogger(),
		Collect: func(p *exposition.Page) { p.Sample(&things, 7, "a") },
		Also: map[string]http.Handler{"/also": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "also")
		})},
	}
}

func TestWhatTheConfigurationMaySay(t *testing.T) {
	for _, c := range []struct {
		is   Config
		want string // address, or a part of the error
		bad  bool
	}{
		{Config{}, "127.0.0.1:7424", false},
		{Config{Listen: Off}, "off", false},
		{Config{Listen: "[::1]:9000"}, "[::1]:9000", false},
		{Config{Listen: "localhost:9000"}, "localhost:9000", false},
		{Config{Listen: ":7424", TokenFile: "/etc/berth/metrics.token"}, ":7424", false},
		{Config{Listen: ":7424"}, `key metrics.listen: ":7424" is reached from other machines`, true},
		{Config{Listen: "10.0.0.1:7424"}, "give token_file as well, or listen on 127.0.0.1:7424", true},
		{Config{Listen: "node1:7424"}, "reached from other machines", true},
		{Config{Listen: "7424"}, "is not HOST:PORT or off", true},
		{Config{Listen: "127.0.0.1:0"}, "has no port from 1 to 65535", true},
		{Config{TokenFile: "token"}, "key metrics.token_file: \"token\": want an absolute path", true},
	} {
		got := c.is
		err := got.Complete(PortCoordinator)
		if c.bad != errors.Is(err, ErrConfig) || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.Listen != c.want {
			t.Errorf("%+v: %+v, %v, want %s", c.is, got, err, c.want)
		}
	}
	for listen, want := range map[string]int{
		"127.0.0.1:1": 0, "[::1]:1": 0, "localhost:1": 0, "off": 0, ":1": 1, "0.0.0.0:2": 2, "10.0.0.1:3": 3,
	} {
		if got := (&Config{Listen: listen}).Port(); got != want {
			t.Errorf("%s is read at port %d, want %d", listen, got, want)
		}
	}
}

func TestTargetsAreWhatPrometheusReads(t *testing.T) {
	got, err := Discovery([]Target{CoordinatorTarget("c1:7424", "c1"), AgentTarget("[2001:db8::1]:7425", "a\"b", "east")})
	const want = `[
  {
    "targets": [
      "c1:7424"
    ],
    "labels": {
      "coordinator": "c1",
      "role": "coordinator"
    }
  },
  {
    "targets": [
      "[2001:db8::1]:7425"
    ],
    "labels": {
      "cluster": "east",
      "node": "a\"b",
      "role": "agent"
    }
  }
]
`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	if none, err := Discovery(nil); err != nil || string(none) != "[]\n" {
		t.Errorf("of none: %v, %s", err, none)
	}
}

func TestAPageIsClean(t *testing.T) {
	for _, large := range []bool{false, true} {
		s := server(Config{})
		s.Large = large
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept-Encoding", "gzip")
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, request)
		var text io.Reader = answer.Body
		if large {
			unpacked, err := gzip.NewReader(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			text = unpacked
		}
		page, err := io.ReadAll(text)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "berth_things{thing=\"a\"} 7\n") || answer.Header().Get("Content-Type") != exposition.ContentType {
			t.Errorf("large %v: %v\n%s", large, answer.Header(), page)
		}
		for _, family := range Families() {
			if !strings.Contains(string(page), "\n# TYPE "+family.Name+" ") {
				t.Errorf("%s is missing", family.Name)
			}
		}
		expositiontest.Lint(t, page)
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	for line, want := range map[string]int{
		"GET /also": 200, "GET /metrics": 200, "HEAD /metrics": 200, "POST /metrics": 405, "GET /": 404, "GET /metrics/x": 404,
	} {
		method, path, _ := strings.Cut(line, " ")
		answer := httptest.NewRecorder()
		server(Config{}).Handler().ServeHTTP(answer, httptest.NewRequest(method, path, nil))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", line, answer.Code, want)
		}
	}
}

// The token is wanted on every path, and a new one counts at once. Without its file nobody reads anything.
func TestATokenIsWanted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	s := server(Config{TokenFile: file})
	ask := func(path, authorization string) int {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, request)
		return answer.Code
	}
	if got := ask("/metrics", "Bearer first"); got != http.StatusServiceUnavailable {
		t.Errorf("without a file: %d", got)
	}
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for shown, want := range map[string]int{
			"Bearer " + token: 200, "": 401, "Bearer ": 401, "Bearer other": 401, "Bearer " + token + "x": 401, "Basic " + token: 401, token: 401,
		} {
			for _, path := range []string{"/metrics", "/also"} {
				if got := ask(path, shown); got != want {
					t.Errorf("%s with %q: %d, want %d", path, shown, got, want)
				}
			}
		}
	}
}

func TestOnlyAFewReadAtATime(t *testing.T) {
	s := server(Config{})
	begun, end := make(chan struct{}, 2*atOnce), make(chan struct{})
	var came atomic.Int64
	s.Collect = func(*exposition.Page) {
		begun <- struct{}{}
		if came.Add(1) <= atOnce {
			<-end
		}
	}
	handler := s.Handler()
	ask := func() int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return answer.Code
	}
	var readers sync.WaitGroup
	for range atOnce {
		readers.Go(func() {
			if got := ask(); got != http.StatusOK {
				t.Errorf("one of the first: %d", got)
			}
		})
		<-begun
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", got)
	}
	close(end)
	readers.Wait()
	if got := ask(); got != http.StatusOK {
		t.Errorf("afterwards: %d", got)
	}
}

// A port that is taken leaves the program as it is, and says what to do.
func TestItServesUntilItIsStopped(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	var log bytes.Buffer
	s := server(Config{Listen: address})
	s.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
	s.Run(t.Context())
	if !strings.Contains(log.String(), "address already in use") || !strings.Contains(log.String(), "change the key metrics") {
		t.Errorf("the log says %s", log.String())
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	s.Log = hclog.NewNullLogger()
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			continue // it does not listen yet
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Error(answer.Status)
		}
		break
	}
	stop()
	<-ended
	(&Server{Config: Config{Listen: Off}}).Run(t.Context())
}
