package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/console"
	berthv1 "berth/shared/gen/berth/v1"
)

// patience is how long something may take to come. It is no promise.
const patience = 2 * time.Minute

// stream is one browser that follows a page.
type stream struct {
	*testing.T

	lines   *bufio.Scanner
	event   string
	content string // as it is by now
	patches int
}

// told is what a feed says. Content is there as well where it is told by what has changed of it.
type told struct {
	Content     *string
	At, Trouble string
	Patch       []struct {
		At, Drop int
		Lines    string
	}
}

// serve lets browsers follow pages of the hall.
func (h *hall) serve() *httptest.Server {
	h.Helper()
	server := httptest.NewServer(h.handler)
	h.Cleanup(server.Close)
	return server
}

// follow opens the feed of a page.
func (h *hall) follow(server *httptest.Server, path, cookie string, header ...string) *stream {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	h.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live"+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "__Host-berth", Value: cookie})
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = answer.Body.Close() })
	if answer.Uncompressed == (len(header) > 0) {
		h.Errorf("%s, asked for with %v, is packed: %t", path, header, answer.Uncompressed)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		h.Fatalf("%s: %s, %v", path, answer.Status, answer.Header)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	return &stream{T: h.T, lines: lines}
}

// next is the next thing that is said.
func (s *stream) next() (said told) {
	s.Helper()
	for s.lines.Scan() {
		if event, is := strings.CutPrefix(s.lines.Text(), "event: "); is {
			s.event = event
			return told{}
		}
		if data, is := strings.CutPrefix(s.lines.Text(), "data: "); is {
			if err := json.Unmarshal([]byte(data), &said); err != nil {
				s.Fatalf("%v: %s", err, data)
			}
			if said.Patch != nil {
				said.Content, s.patches = s.patched(&said), s.patches+1
			}
			if said.Content != nil {
				s.content = *said.Content
			}
			return said
		}
	}
	s.Fatalf("the feed has ended: %v", s.lines.Err())
	return said
}

// patched is the content after what has changed of it.
func (s *stream) patched(said *told) *string {
	before, after, from := slices.Collect(strings.Lines(s.content)), "", 0
	for _, one := range said.Patch {
		after, from = after+strings.Join(before[from:one.At], "")+one.Lines, one.At+one.Drop
	}
	after += strings.Join(before[from:], "")
	return &after
}

// until reads until it is told what is wanted.
func (s *stream) until(wanted func(told) bool) told {
	s.Helper()
	for {
		if said := s.next(); wanted(said) {
			return said
		}
	}
}

func has(text string) func(told) bool {
	return func(said told) bool { return said.Content != nil && strings.Contains(*said.Content, text) }
}

// renamed lets the fake call node3 otherwise from a moment on.
func renamed(h *hall) *atomic.Bool {
	var on atomic.Bool
	h.fake.Taint = func(answer any) {
		if a, is := answer.(*berthv1.ListNodesResponse); is && on.Load() {
			for _, node := range a.GetNodes() {
				node.Name += "-anew"
			}
		}
	}
	return &on
}

// A page that is open has its content once, and again when that has changed. In between it is told as of when it holds.
func TestAFeedTellsWhatHasChanged(t *testing.T) {
	h := newHall(t)
	anew := renamed(h)
	s := h.follow(h.serve(), "/", "good")
	first := s.until(func(said told) bool { return said.Content != nil })
	if !strings.Contains(*first.Content, "node3") || strings.Contains(*first.Content, "<header") || first.At == "" {
		t.Errorf("the first content is\n%s", *first.Content)
	}
	for range 3 {
		if said := s.next(); said.Content != nil || said.At == "" || said.Trouble != "" {
			t.Errorf("nothing has changed, and it is told %v", said)
		}
	}
	anew.Store(true)
	s.until(has("node3-anew"))
	s.patchedAlone(h)
}

// patchedAlone checks that a stream was told its last content by what has changed, and that this is the content of the page.
func (s *stream) patchedAlone(h *hall) {
	s.Helper()
	_, page := h.ask(http.MethodGet, "/", "good", nil)
	if s.patches != 1 || !strings.Contains(page, s.content) {
		s.Errorf("after %d patches it has\n%s\nand the page is\n%s", s.patches, s.content, page)
	}
}

// A program that does not unpack gets the same as it is.
func TestAFeedIsPackedForWhoUnpacks(t *testing.T) {
	h := newHall(t)
	anew := renamed(h)
	server := h.serve()
	packed, plain := h.follow(server, "/", "good"), h.follow(server, "/", "good", "Accept-Encoding", "identity")
	for _, s := range []*stream{packed, plain} {
		s.until(has("node3"))
	}
	anew.Store(true)
	for _, s := range []*stream{packed, plain} {
		s.until(has("node3-anew"))
		s.patchedAlone(h)
	}
}

// Tokens of forms are others each time a page is made, and do not count as a change.
func TestTokensAreNoChange(t *testing.T) {
	h := newHall(t)
	s := h.follow(h.serve(), "/vms/web1", "good")
	first := s.until(func(said told) bool { return said.Content != nil })
	if !strings.Contains(*first.Content, `name="request"`) {
		t.Fatalf("the page has no form:\n%s", *first.Content)
	}
	for range 3 {
		if said := s.next(); said.Content != nil {
			t.Errorf("nothing has changed, and it is told\n%s", *said.Content)
		}
	}
}

func TestAFeedOfWhoMayLookOffersNothing(t *testing.T) {
	h := newHall(t)
	server := h.serve()
	h.follow(server, "/vms/web1", "good").until(has(`method="post"`))
	looks := h.follow(server, "/vms/web1", "looks").until(func(said told) bool { return said.Content != nil })
	if strings.Contains(*looks.Content, `method="post"`) {
		t.Errorf("it offers to change something:\n%s", *looks.Content)
	}
}

// While nobody can read the cluster, the page stays and says so. When somebody can, it goes on.
func TestAFeedOutlivesTheLeader(t *testing.T) {
	h := newHall(t)
	var gone atomic.Bool
	h.desk.api = fickle{leaderless{h.desk.api}, &gone}
	s := h.follow(h.serve(), "/groups", "good")
	s.until(func(said told) bool { return said.Content != nil })
	gone.Store(true)
	troubled := s.until(func(said told) bool { return said.Trouble != "" })
	if troubled.Content != nil || !strings.Contains(troubled.Trouble, "no leader") {
		t.Errorf("without a leader it is told %v", troubled)
	}
	gone.Store(false)
	s.until(func(said told) bool { return said.Trouble == "" && said.At != "" })
}

// fickle has a leader at times.
type fickle struct {
	leaderless
	gone *atomic.Bool
}

func (f fickle) ListGroups(
	ctx context.Context, r *connect.Request[berthv1.ListGroupsRequest],
) (*connect.Response[berthv1.ListGroupsResponse], error) {
	if f.gone.Load() {
		return f.leaderless.ListGroups(ctx, r)
	}
	return f.BerthServiceClient.ListGroups(ctx, r)
}

func TestAFeedEndsWithItsSession(t *testing.T) {
	h := newHall(t)
	s := h.follow(h.serve(), "/", "good")
	s.until(func(said told) bool { return said.Content != nil })
	h.desk.ended.Store(true)
	s.until(func(told) bool { return s.event == "over" })
	if s.lines.Scan(); s.lines.Scan() && strings.HasPrefix(s.lines.Text(), "data") {
		t.Errorf("it goes on: %s", s.lines.Text())
	}
}

// Two hundred consoles cost what one does: the page is read once a second at most, whoever looks.
func TestManyConsolesCostAsOne(t *testing.T) {
	h := newHall(t)
	anew := renamed(h)
	server := h.serve()
	began := time.Now()
	streams := make([]*stream, 200)
	for i := range streams {
		streams[i] = h.follow(server, "/", "good")
	}
	for _, s := range streams {
		s.until(has("node3"))
	}
	anew.Store(true)
	for _, s := range streams {
		s.until(has("node3-anew"))
	}
	asked := len(clitest.Asked[berthv1.ListNodesRequest](h.fake))
	if most := int(time.Since(began)/console.Pace) + 2; asked > most {
		t.Errorf("the nodes were asked for %d times in %s", asked, time.Since(began))
	}
}

// Who opens a page has it made once: his feed begins with what he has read. Later it is made anew.
func TestAFeedBeginsWithWhatWasRead(t *testing.T) {
	h := newHall(t)
	anew := renamed(h)
	server := h.serve()
	_, page := h.ask(http.MethodGet, "/", "good", nil)
	anew.Store(true) // what is made from now on is told apart
	s := h.follow(server, "/", "good")
	first := s.until(func(said told) bool { return said.Content != nil })
	if has("node3-anew")(first) || !strings.Contains(page, *first.Content) || first.At == "" {
		t.Errorf("the feed begins with\n%s\nwhere the page was\n%s", *first.Content, page)
	}
	s.until(has("node3-anew"))
	// It is for who follows next, and not for somebody with other rights or another page.
	h.ask(http.MethodGet, "/", "good", nil)
	anew.Store(false)
	for path, cookie := range map[string]string{"/?x=1": "good", "/": "looks"} {
		other := h.follow(server, path, cookie).until(func(said told) bool { return said.Content != nil })
		if has("node3-anew")(other) {
			t.Errorf("%s of %s begins with what was read elsewhere:\n%s", path, cookie, *other.Content)
		}
	}
}
