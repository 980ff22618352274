package console_test

import (
	"context"
	"errors"
	"flag"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/console"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

var keep = flag.String("keep", "", "folder where each screen is kept as a file, to look at")

// desk knows two cookies: good is alice's, and looks is one that may only look.
type desk struct {
	api    berthv1connect.BerthServiceClient
	closed []string
	ended  atomic.Bool // all sessions
}

func (d *desk) Open(_ context.Context, link, _, _ string) (string, time.Time, error) {
	if link != "s1.fresh" {
		return "", time.Time{}, rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{
			Code: rpc.Denied, NextStep: "run 'berth console' again",
		}, "this link was used, or has ended")
	}
	return "good", time.Now().Add(time.Hour), nil
}

func (d *desk) Visitor(cookie, _ string) (console.Visitor, bool) {
	if cookie != "good" && cookie != "looks" || d.ended.Load() {
		return console.Visitor{}, false
	}
	return console.Visitor{Operator: "alice", ReadOnly: cookie == "looks", Until: time.Now().Add(time.Hour), API: d.api}, true
}

func (d *desk) Close(_ context.Context, cookie, _ string) error {
	d.closed = append(d.closed, cookie)
	return nil
}

// hall is a console in front of a fake.
type hall struct {
	*testing.T

	fake    *clitest.Fake
	desk    *desk
	handler http.Handler
}

func newHall(t *testing.T) *hall {
	t.Helper()
	fake := clitest.Steady()
	server := httptest.NewServer(fake.Handler())
	t.Cleanup(server.Close)
	d := &desk{api: berthv1connect.NewBerthServiceClient(server.Client(), server.URL)}
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	return &hall{T: t, fake: fake, desk: d, handler: console.New(console.Config{
		Desk: d, Now: now, Log: hclog.NewNullLogger(),
	}).Handler()}
}

// ask sends one request of a browser that has a cookie, if it is not empty. What has fields is a form.
func (h *hall) ask(method, path, cookie string, fields url.Values, header ...string) (*http.Response, string) {
	h.Helper()
	r := httptest.NewRequest(method, "https://coord1:7423"+path, strings.NewReader(fields.Encode()))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "__Host-berth", Value: cookie})
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	answer := w.Result()
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		h.Fatal(err)
	}
	return answer, string(body)
}

// screens are all pages, each with something that it shows of the fake.
var screens = map[string]string{
	"/": "node3", "/nodes": "1 to 3 of 3", "/nodes/node1": "web1", "/vms": "db1", "/vms?state=running": "web1",
	"/vms?vm=web1": "Where it has been", "/vms/web1": "Keys in force",
	"/vms/web1/migrate": "Nothing is moved yet", "/moves": "Live migrations", "/operations/op1": "Phase", "/groups": "Wants",
	"/capacity": "Memory of a VM", "/capacity?memory=4G&vcpus=2": "node3", "/capacity?memory=4G&add=2&like=node1&large=512G": "node1&#43;2",
	"/plans": "Kind", "/plans/p1": "Moves", "/nodes/node1/plan": "Nothing is moved yet", "/events": "Time (UTC)",
	"/decisions/d1": "Each node against each rule", "/vms/web1/week": "The most is 4 CPUs, on Fri 14:00 (2026-11-20).",
	"/nodes/node1/week": "The most is 25 %, on Fri 14:00 (2026-11-20).",
	"/vms/web1/day":     "The most is 2.95 CPUs, at 11:59.", "/nodes/node1/day": "59 of 60 minutes are known",
}

var actions = []string{
	"/vms/web1/start", "/vms/web1/stop", "/vms/web1/reboot", "/vms/web1/migrate", "/operations/op1/cancel", "/plans/p1/apply",
	"/plans/p1/discard", "/plans/p1/cancel", "/nodes/node1/drain", "/nodes/node1/undrain",
}

func TestEachScreenShowsWhatTheAPISaysAndTheCommandThatDoes(t *testing.T) {
	h := newHall(t)
	for path, shows := range screens {
		answer, body := h.ask(http.MethodGet, path, "good", nil)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, shows) {
			t.Errorf("%s: %d, and it does not show %q:\n%s", path, answer.StatusCode, shows, body)
		}
		if !strings.Contains(body, "The same on the command line: <code>berth ") {
			t.Errorf("%s does not say which command tells the same", path)
		}
		scriptless := regexp.MustCompile(`<form class="search" hidden data-scripted.*</form>`).ReplaceAllString(body, "")
		fields := regexp.MustCompile(`<input (?:type="search"|name=)|<select`)
		if strings.Contains(body, "http-equiv=\"refresh\"") && fields.MatchString(scriptless) {
			t.Errorf("%s is read again while somebody fills a form in", path)
		}
		if *keep != "" {
			name := strings.NewReplacer("/", "_", "?", "_", "=", "_", "&", "_").Replace(path) + ".html"
			if err := os.WriteFile(filepath.Join(*keep, name), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What somebody has cancelled is not shown as a failure.
func TestCancelledIsNotShownAsFailed(t *testing.T) {
	h := newHall(t)
	op := clitest.CannedOperation("migrate", clitest.Failed)
	op.Cancelled = true
	h.fake.OnHistory = func(*berthv1.ListHistoryRequest) (*berthv1.ListHistoryResponse, error) {
		return &berthv1.ListHistoryResponse{SchemaVersion: "1", Entries: []*berthv1.HistoryEntry{
			{Index: 1, What: &berthv1.HistoryEntry_Operation{Operation: op}},
		}}, nil
	}
	h.fake.OnGetOp = func(*berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error) {
		return &berthv1.GetOperationResponse{SchemaVersion: "1", Operation: op}, nil
	}
	h.fake.OnGetVM = func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error) {
		return &berthv1.GetVMResponse{SchemaVersion: "1", Vm: &berthv1.VM{Name: "web1"}, Operation: op}, nil
	}
	for _, path := range []string{"/operations/op1", "/events?of=operations", "/vms/web1"} {
		answer, body := h.ask(http.MethodGet, path, "good", nil)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, "cancelled") || strings.Contains(body, "failed") {
			t.Errorf("%s: %d\n%s", path, answer.StatusCode, body)
		}
	}
}

func TestNothingIsShownBeforeLogin(t *testing.T) {
	h := newHall(t)
	for path := range screens {
		for _, cookie := range []string{"", "other"} {
			answer, body := h.ask(http.MethodGet, path, cookie, nil)
			if answer.StatusCode != http.StatusUnauthorized || strings.Contains(body, "node1") || strings.Contains(body, "web1") {
				t.Errorf("%s with cookie %q: %d\n%s", path, cookie, answer.StatusCode, body)
			}
		}
	}
	for path := range screens {
		if answer, body := h.ask(http.MethodGet, "/live"+path, "", nil); answer.StatusCode == http.StatusOK || strings.Contains(body, "node1") {
			t.Errorf("the feed of %s: %d", path, answer.StatusCode)
		}
	}
	for _, path := range actions {
		if answer, _ := h.ask(http.MethodPost, path, "", nil); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	for _, path := range []string{"/nothing", "/vms/", "/static/", "/static/other.css", "/login/"} {
		if answer, body := h.ask(http.MethodGet, path, "", nil); answer.StatusCode == http.StatusOK || strings.Contains(body, "node1") {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}

// ownScript is the only script that a page may name.
const ownScript = `<script type="module" src="/static/live.js"></script>`

// Every answer keeps other sites and scripts out, the refusals too.
func TestHeadersOfEveryAnswer(t *testing.T) {
	h := newHall(t)
	for _, path := range []string{"/", "/nothing", "/static/console.css", "/static/live.js", "/login/s1.fresh"} {
		for _, cookie := range []string{"", "good"} {
			answer, body := h.ask(http.MethodGet, path, cookie, nil)
			policy := answer.Header.Get("Content-Security-Policy")
			for _, part := range []string{
				"default-src 'self'", "script-src 'self';", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'",
			} {
				if !strings.Contains(policy, part) {
					t.Errorf("%s: the policy %q lacks %s", path, policy, part)
				}
			}
			if !strings.Contains(answer.Header.Get("Strict-Transport-Security"), "max-age=") ||
				answer.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", path, answer.Header)
			}
			if regexp.MustCompile(`(?i)<script|\sstyle=|<style|\son[a-z]+=`).MatchString(strings.ReplaceAll(body, ownScript, "")) {
				t.Errorf("%s has a script or style that the policy forbids:\n%s", path, body)
			}
		}
	}
}

func TestALinkLogsInOnceAndALogoutEndsTheSession(t *testing.T) {
	h := newHall(t)
	answer, body := h.ask(http.MethodGet, "/login/s1.fresh", "", nil)
	if answer.StatusCode != http.StatusOK || len(answer.Cookies()) > 0 || !strings.Contains(body, `value="s1.fresh"`) {
		t.Errorf("looking at a link uses it: %d, %v", answer.StatusCode, answer.Cookies())
	}
	answer, _ = h.ask(http.MethodPost, "/login", "", url.Values{"link": {"s1.fresh"}})
	cookies := answer.Cookies()
	if answer.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("got %d, %v", answer.StatusCode, cookies)
	}
	if c := cookies[0]; c.Name != "__Host-berth" || c.Value != "good" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" ||
		c.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %+v", c)
	}
	answer, body = h.ask(http.MethodPost, "/login", "", url.Values{"link": {"s1.used"}})
	if answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) > 0 || !strings.Contains(body, "was used, or has ended") {
		t.Errorf("a used link: %d\n%s", answer.StatusCode, body)
	}
	answer, _ = h.ask(http.MethodPost, "/logout", "good", nil)
	if len(h.desk.closed) != 1 || answer.Cookies()[0].MaxAge >= 0 {
		t.Errorf("the session goes on: %v", h.desk.closed)
	}
}

func TestAChangeComesFromAPageOfTheConsoleOnly(t *testing.T) {
	h := newHall(t)
	for _, path := range append(actions, "/login", "/logout") {
		for _, from := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
		} {
			answer, _ := h.ask(http.MethodPost, path, "good", url.Values{"link": {"s1.fresh"}}, from...)
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s from %v: %d", path, from, answer.StatusCode)
			}
		}
		if answer, _ := h.ask(http.MethodGet, path, "good", nil); answer.StatusCode == http.StatusSeeOther {
			t.Errorf("%s is done by a link", path)
		}
	}
	if stops := clitest.Asked[berthv1.StopVMRequest](h.fake); len(stops) > 0 || len(h.desk.closed) > 0 {
		t.Errorf("the API was asked: %v", stops)
	}
}

func TestAReadOnlySessionHasNoActions(t *testing.T) {
	h := newHall(t)
	for path := range screens {
		_, body := h.ask(http.MethodGet, path, "looks", nil)
		rest := strings.ReplaceAll(body, `method="post" action="/logout"`, "")
		if strings.Contains(rest, `method="post"`) {
			t.Errorf("%s offers to change something:\n%s", path, body)
		}
	}
	for _, path := range actions {
		if answer, body := h.ask(http.MethodPost, path, "looks", nil); answer.StatusCode != http.StatusForbidden ||
			!strings.Contains(body, "read-only") {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	if stops := clitest.Asked[berthv1.StopVMRequest](h.fake); len(stops) > 0 {
		t.Errorf("the API was asked: %v", stops)
	}
}

// A form that is sent twice asks for the same thing once, and leads to where that is seen.
func TestActionsAskTheAPI(t *testing.T) {
	h := newHall(t)
	for range 2 {
		answer, body := h.ask(http.MethodPost, "/vms/web1/stop", "good", url.Values{"request": {"R1"}})
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/vms/web1" {
			t.Fatalf("got %d to %q\n%s", answer.StatusCode, answer.Header.Get("Location"), body)
		}
	}
	stops := clitest.Asked[berthv1.StopVMRequest](h.fake)
	if len(stops) != 2 || stops[0].GetVm() != "web1" || stops[0].GetRequestId() == "" || stops[0].GetRequestId() != stops[1].GetRequestId() {
		t.Errorf("the API was asked %v", stops)
	}
	_, page := h.ask(http.MethodGet, "/vms/web1", "good", nil)
	tokens := regexp.MustCompile(`name="request" value="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(tokens) == 0 || len(tokens) > 1 && tokens[0][1] == tokens[1][1] {
		t.Errorf("forms of one page have the tokens %v", tokens)
	}
}

// What the API refuses is said with the next step, and a large form is not read.
func TestARefusalSaysTheNextStep(t *testing.T) {
	h := newHall(t)
	h.desk.api = refusing{h.desk.api}
	answer, body := h.ask(http.MethodPost, "/vms/web1/stop", "good", nil, "Referer", "https://coord1:7423/vms/web1")
	if answer.StatusCode != http.StatusConflict || !strings.Contains(body, "it migrates") || !strings.Contains(body, "wait for it") ||
		!strings.Contains(body, `href="/vms/web1"`) {
		t.Errorf("got %d\n%s", answer.StatusCode, body)
	}
	answer, _ = h.ask(http.MethodPost, "/vms/web1/stop", "good", url.Values{"request": {strings.Repeat("x", 1<<20)}})
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a form of a mebibyte: %d", answer.StatusCode)
	}
}

// What nobody can show for now is asked for again by the page itself; what is refused for good is not.
func TestAPageWithoutALeaderComesByItself(t *testing.T) {
	h := newHall(t)
	h.desk.api = leaderless{h.desk.api}
	answer, body := h.ask(http.MethodGet, "/groups", "good", nil)
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("without a leader: %d\n%s", answer.StatusCode, body)
	}
	if answer, body := h.ask(http.MethodGet, "/nothing", "good", nil); strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("a page that never was: %d\n%s", answer.StatusCode, body)
	}
}

type leaderless struct {
	berthv1connect.BerthServiceClient
}

func (leaderless) ListGroups(
	context.Context, *connect.Request[berthv1.ListGroupsRequest],
) (*connect.Response[berthv1.ListGroupsResponse], error) {
	return nil, connect.NewError(connect.CodeUnavailable, errors.New("the coordinators have no leader"))
}

type refusing struct {
	berthv1connect.BerthServiceClient
}

func (refusing) StopVM(context.Context, *connect.Request[berthv1.StopVMRequest]) (*connect.Response[berthv1.StopVMResponse], error) {
	detail := &berthv1.ErrorDetail{Code: rpc.Busy, NextStep: "wait for it"}
	return nil, rpc.Errorf(connect.CodeFailedPrecondition, detail, "%w", errors.New("it migrates"))
}

// A VM may be called what it likes: on a page that is text.
func TestHostileNamesStayText(t *testing.T) {
	const script = `"><script>alert(1)</script>`
	h := newHall(t)
	name := "x" + script
	h.fake.Taint = func(answer any) {
		switch a := answer.(type) {
		case *berthv1.ListVMsResponse:
			for _, vm := range a.GetVms() {
				vm.Name, vm.Condition, vm.Node = name, script, name
			}
		case *berthv1.GetVMResponse:
			a.Vm.Name, a.Vm.Condition, a.Vm.Description, a.Vm.Node = name, script, script, name
		case *berthv1.ListHistoryResponse:
			for _, entry := range a.GetEntries() {
				if event := entry.GetEvent(); event != nil {
					event.Subject, event.Message, event.Caller = "vm/"+name, script, script
				}
			}
		case *berthv1.ProfileResponse:
			a.Vm, a.Warnings = name, []string{script}
		case *berthv1.StatusResponse:
			a.Problems = append(a.GetProblems(), script)
		}
	}
	for _, path := range []string{"/", "/vms", "/vms/web1", "/vms/web1/week", "/vms/web1/day", "/events", "/vms/" + url.PathEscape(name)} {
		_, body := h.ask(http.MethodGet, path, "good", nil)
		rest := strings.ToLower(strings.ReplaceAll(body, ownScript, ""))
		if strings.Contains(rest, "<script") || !strings.Contains(body, html.EscapeString("<script>")) {
			t.Errorf("%s lets a name be more than text:\n%s", path, body)
		}
	}
}

// A week is a table with a figure in each cell. An hour that is not known has none, and is not shaded.
func TestAWeekIsATableOfFigures(t *testing.T) {
	h := newHall(t)
	_, body := h.ask(http.MethodGet, "/vms/web1/week", "good", nil)
	for part, want := range map[string]int{
		`<td class="shade8">4.0</td>`: 2, `<td class="shade0">0</td>`: 156 - 50, `<td class="unknown">?</td>`: 3*12 + 24,
		"<table": 3, "<tr": 3 * 8,
		"node node3 does not tell what it has measured": 1, "156 of 168 hours of the week are known": 1,
	} {
		if got := strings.Count(body, part); got != want {
			t.Errorf("%s is there %d times, want %d", part, got, want)
		}
	}
	h.fake.OnProfile = func(r *berthv1.ProfileRequest) (*berthv1.ProfileResponse, error) {
		return &berthv1.ProfileResponse{Node: r.GetNode()}, nil
	}
	_, body = h.ask(http.MethodGet, "/nodes/node1/week", "good", nil)
	if !strings.Contains(body, "0 of 168") || strings.Contains(body, "<table") {
		t.Errorf("of a node that has measured nothing yet:\n%s", body)
	}
}

// What is asked of the API, and the command that tells the same, are what the form says.
func TestRoomIsAskedAsTheFormSays(t *testing.T) {
	h := newHall(t)
	_, body := h.ask(http.MethodGet, "/capacity?memory=4G&vcpus=2&cluster=west&add=2&like=node1&large=512G", "looks", nil)
	const command = "berth capacity --memory 4G --vcpus 2 --cluster west --add-nodes 2:node1 --add-memory 512G"
	for _, part := range []string{command, "<strong>34 more fit</strong>", "without the added nodes 12", "node1&#43;1 <span", "no labels"} {
		if !strings.Contains(body, part) {
			t.Errorf("it does not say %q:\n%s", part, body)
		}
	}
	asked := clitest.Asked[berthv1.CapacityRequest](h.fake)
	if len(asked) != 1 || asked[0].GetMemoryBytes() != 4<<30 || asked[0].GetVcpus() != 2 || asked[0].GetCluster() != "west" ||
		asked[0].GetAddNodes() != 2 || asked[0].GetAddLike() != "node1" || asked[0].GetAddMemoryBytes() != 512<<30 {
		t.Errorf("asked was %v", asked)
	}
	for _, bad := range []string{"memory=x", "memory=4G&vcpus=x", "memory=4G&add=x", "memory=4G&add=-1", "memory=4G&add=1&large=x"} {
		if answer, body := h.ask(http.MethodGet, "/capacity?"+bad, "good", nil); answer.StatusCode != http.StatusBadRequest ||
			!strings.Contains(body, "write 4G") {
			t.Errorf("%s: %d", bad, answer.StatusCode)
		}
	}
}

// The last hour and day are a line with a gap where nothing is known, and the same as a table.
func TestTheLastHourAndDayAreLinesAndTables(t *testing.T) {
	h := newHall(t)
	_, body := h.ask(http.MethodGet, "/vms/web1/day", "looks", nil)
	for part, want := range map[string]int{
		"<svg": 2 + 3, "<polyline": 2*2 + 3, "<tr": 1 + 60 + 1 + 24, "Nothing of it is known.": 1, // the delay of minutes
		"59 of 60 minutes are known": 1, "24 of 24 hours are known": 1,
		`<th scope="row">2026-11-21 11:43</th><td class="number">unknown</td><td class="number">unknown</td><td class="number">unknown</td>`: 1,
		`<th scope="row">2026-11-21 11:44</th><td class="number">2.2</td>`:                                                                   1,
		"berth vm profile web1 --last hour": 1, "node node3 does not tell what it has measured": 1,
	} {
		if got := strings.Count(body, part); got != want {
			t.Errorf("%s is there %d times, want %d", part, got, want)
		}
	}
	h.fake.OnProfile = func(r *berthv1.ProfileRequest) (*berthv1.ProfileResponse, error) {
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		return &berthv1.ProfileResponse{Node: r.GetNode(), Minutes: []*berthv1.ProfileHour{
			{BeganAt: timestamppb.New(now.Add(-30 * time.Minute)), CpuRatio: new(0.0)},
		}}, nil
	}
	_, body = h.ask(http.MethodGet, "/nodes/node1/day", "good", nil)
	if !strings.Contains(body, `class="alone" d="M305.0 100.0h.01"`) || strings.Contains(body, "NaN") ||
		!strings.Contains(body, "The most is 0 %") || !strings.Contains(body, "0 of 24 hours are known") {
		t.Errorf("of one minute:\n%s", body)
	}
}

func TestWhatIsNotKnownIsNotZero(t *testing.T) {
	h := newHall(t)
	h.fake.Taint = func(answer any) {
		if a, is := answer.(*berthv1.ListNodesResponse); is {
			for _, node := range a.GetNodes() {
				node.Telemetry, node.Ledgers, node.Inventory, node.TelemetryAgeSeconds = nil, nil, nil, nil
			}
		}
	}
	_, body := h.ask(http.MethodGet, "/", "good", nil)
	if !strings.Contains(body, "used unknown, promised unknown of unknown, physical unknown") || strings.Contains(body, "used 0") {
		t.Errorf("got\n%s", body)
	}
}
