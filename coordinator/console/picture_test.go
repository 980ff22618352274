package console_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// crowded gives the cluster of the fake many nodes. Every hundredth one, from the first on, is not reached, and the one behind it tells
// nothing.
func (h *hall) crowded(nodes int) {
	h.fake.OnListNodes = func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		answer := &berthv1.ListNodesResponse{SchemaVersion: "1"}
		for i := range nodes {
			node := &berthv1.Node{
				Id: fmt.Sprintf("id%d", i), Name: fmt.Sprintf("n%05d", i), Cluster: "big", State: berthv1.NodeState_NODE_STATE_UP,
				Telemetry: &berthv1.NodeTelemetry{MemoryTotalBytes: new(int64(200)), MemoryAvailableBytes: new(int64(150))},
				Ledgers:   &berthv1.NodeLedgers{PromisedUsedBytes: 100, PromisedLimitBytes: 200},
			}
			switch i % 100 {
			case 0:
				node.State = berthv1.NodeState_NODE_STATE_UNREACHABLE
			case 1:
				node.Telemetry, node.Ledgers = nil, nil
			}
			answer.Nodes = append(answer.Nodes, node)
		}
		return answer, nil
	}
}

// A map of many nodes has a few things for the browser to draw, however many there are, and a table of those with problems.
func TestAMapOfManyNodesIsAPicture(t *testing.T) {
	h := newHall(t)
	h.crowded(10_000)
	_, body := h.ask(http.MethodGet, "/", "good", nil)
	if tags := strings.Count(body, "<"); tags > 6000 || len(body) > 600_000 {
		t.Errorf("it has %d tags in %d bytes", tags, len(body))
	}
	for _, part := range []string{
		`<li data-key="/nodes?cluster=big&amp;from=n00100"><a href="/nodes?cluster=big&amp;from=n00100">n00100 to n00199</a>`,
		`<tr data-key="id0" class="trouble">`, `<tr data-key="id9900" class="trouble">`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("%s is not there", part)
		}
	}
	for _, part := range []string{
		"<small>100 nodes, 1 with problems, 1 of unknown use</small>", `class="trouble"`, "M5 20v4\"",
		"M5 20v-20M25 20v-20M35", // physical, and nothing of the one that tells nothing
		"M3 20v-10M23 20v-10M33", // promised
		"M7 20v-5M27 20v-5M37",   // used
	} {
		if got := strings.Count(body, part); got != 100 {
			t.Errorf("%s is there %d times, want 100", part, got)
		}
	}
	if strings.Contains(body, "more with problems") {
		t.Error("it leaves nodes with problems out")
	}
	h.crowded(30_000)
	_, body = h.ask(http.MethodGet, "/", "good", nil)
	if strings.Count(body, `class="trouble"`) != 200 ||
		!strings.Contains(body, `<a href="/nodes?cluster=big&amp;troubled=yes">100 more with problems</a>`) {
		t.Errorf("of 300 nodes with problems %d are shown", strings.Count(body, `class="trouble"`))
	}
}

// The list of nodes has each of them once, page by page, by name.
func TestTheListOfNodesHasAllPageByPage(t *testing.T) {
	h := newHall(t)
	h.crowded(250)
	row, next := regexp.MustCompile(`<th scope="row"><a href="/nodes/([^"]*)"`), regexp.MustCompile(`<a href="([^"]*)">Next page`)
	read := func(path string) (names []string) {
		for path != "" {
			answer, body := h.ask(http.MethodGet, path, "looks", nil)
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d\n%s", path, answer.StatusCode, body)
			}
			for _, found := range row.FindAllStringSubmatch(body, -1) {
				names = append(names, found[1])
			}
			if back := strings.Contains(body, "First page"); back != strings.Contains(path, "from=") {
				t.Errorf("%s has a way back: %t", path, back)
			}
			path = ""
			if found := next.FindStringSubmatch(body); found != nil {
				path = strings.ReplaceAll(found[1], "&amp;", "&")
			}
		}
		return names
	}
	for path, want := range map[string]int{
		"/nodes": 250, "/nodes?cluster=big&name=n001": 100, "/nodes?troubled=yes": 3, "/nodes?cluster=other": 0, "/nodes?cluster=-": 0,
	} {
		names := read(path)
		for i := 1; i < len(names); i++ {
			if names[i-1] >= names[i] {
				t.Errorf("%s: %s stands before %s", path, names[i-1], names[i])
			}
		}
		if len(names) != want {
			t.Errorf("%s lists %d nodes, want %d", path, len(names), want)
		}
	}
	if names := read("/nodes?" + url.Values{"from": {"n00200"}}.Encode()); len(names) != 50 || names[0] != "n00200" {
		t.Errorf("from the 200th on there are %v", names)
	}
}

// Pages and files are packed for a browser that unpacks, and are the same then.
func TestPagesArePackedForWhoUnpacks(t *testing.T) {
	h := newHall(t)
	for _, path := range []string{"/", "/vms", "/nothing", "/static/console.css", "/static/live.js"} {
		as, plain := h.ask(http.MethodGet, path, "good", nil, "Accept-Encoding", "gzip;q=0")
		answer, packed := h.ask(http.MethodGet, path, "good", nil, "Accept-Encoding", "br, gzip")
		if as.Header.Get("Content-Encoding") != "" || answer.Header.Get("Content-Encoding") != "gzip" || answer.StatusCode != as.StatusCode ||
			answer.Header.Get("Content-Type") != as.Header.Get("Content-Type") || answer.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %d, %v, and packed %d, %v", path, as.StatusCode, as.Header, answer.StatusCode, answer.Header)
		}
		unpacker, err := gzip.NewReader(strings.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacker)
		if err != nil || string(text) != plain || len(packed) >= len(plain) {
			t.Errorf("%s: %v, %d bytes of %d\n%s\nand plain\n%s", path, err, len(packed), len(plain), text, plain)
		}
	}
}
