package console_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// bereft is a coordinator that has lost its leader: it knows what the fake tells, as of 40 seconds ago.
type bereft struct {
	berthv1connect.BerthServiceClient

	known *berthv1.LastKnown
}

func lost[A any]() (*connect.Response[A], error) {
	return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader}, "the coordinators have no leader")
}

func (b bereft) Status(ctx context.Context, r *connect.Request[berthv1.StatusRequest]) (*connect.Response[berthv1.StatusResponse], error) {
	if !r.Msg.GetStale() {
		return lost[berthv1.StatusResponse]()
	}
	answer, err := b.BerthServiceClient.Status(ctx, r)
	if err == nil {
		answer.Msg.Stale, answer.Msg.Leader, answer.Msg.LastKnown = true, "", b.known
		answer.Msg.HeardSeconds = new(b.known.GetAgeSeconds())
		answer.Msg.Problems = []string{"the coordinators have no leader"}
	}
	return answer, err
}

func (bereft) ListNodes(context.Context, *connect.Request[berthv1.ListNodesRequest]) (*connect.Response[berthv1.ListNodesResponse], error) {
	return lost[berthv1.ListNodesResponse]()
}

func (b bereft) LastKnownNodes(
	ctx context.Context, r *connect.Request[berthv1.ListNodesRequest],
) (*connect.Response[berthv1.ListNodesResponse], error) {
	answer, err := b.BerthServiceClient.ListNodes(ctx, r)
	if err == nil {
		answer.Msg.LastKnown = b.known
		if b.known.GetAt() == nil {
			answer.Msg.Nodes = nil
		}
	}
	return answer, err
}

func (bereft) GetNode(context.Context, *connect.Request[berthv1.GetNodeRequest]) (*connect.Response[berthv1.GetNodeResponse], error) {
	return lost[berthv1.GetNodeResponse]()
}

func (bereft) ListVMs(context.Context, *connect.Request[berthv1.ListVMsRequest]) (*connect.Response[berthv1.ListVMsResponse], error) {
	return lost[berthv1.ListVMsResponse]()
}

func (b bereft) LastKnownVMs(
	ctx context.Context, r *connect.Request[berthv1.ListVMsRequest],
) (*connect.Response[berthv1.ListVMsResponse], error) {
	answer, err := b.BerthServiceClient.ListVMs(ctx, r)
	if err == nil {
		answer.Msg.LastKnown = b.known
		if b.known.GetAt() == nil {
			answer.Msg.Vms = nil
		}
	}
	return answer, err
}

func (bereft) GetVM(context.Context, *connect.Request[berthv1.GetVMRequest]) (*connect.Response[berthv1.GetVMResponse], error) {
	return lost[berthv1.GetVMResponse]()
}

func (bereft) ListResources(
	context.Context, *connect.Request[berthv1.ListResourcesRequest],
) (*connect.Response[berthv1.ListResourcesResponse], error) {
	return lost[berthv1.ListResourcesResponse]()
}

// Without a quorum the pages show what was last known, and as of when that was. Nothing of it is taken for the present, and nobody is
// offered what cannot be done.
func TestWithoutAQuorumPagesShowWhatWasLastKnown(t *testing.T) {
	h := newHall(t)
	at := time.Date(2026, 11, 21, 11, 59, 20, 0, time.UTC)
	h.desk.api = bereft{h.desk.api, &berthv1.LastKnown{AnsweredBy: "coord2", At: timestamppb.New(at), AgeSeconds: 40}}
	const dated = "As of 2026-11-21 11:59:20, 40 s ago: there is no quorum, and this is what coord2 last knew."
	for path, shows := range map[string][]string{
		"/": {
			"node3", "<dd>unknown, of 3 (2 up 40 s ago)</dd>", " running 40 s ago)</dd>", "not at work: there is no leader", "<dd>none</dd>",
		},
		"/nodes/node1": {"Node node1", "web1"},
		"/vms":         {"web1", "db1"},
		"/vms/web1":    {"VM web1", "only a leader tells"},
	} {
		answer, body := h.ask(http.MethodGet, path, "good", nil)
		if *keep != "" {
			name := "past" + strings.ReplaceAll(path, "/", "_") + ".html"
			if err := os.WriteFile(filepath.Join(*keep, name), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range append(shows, dated, `As of <span id="at">2026-11-21 11:59:20</span>`) {
			if answer.StatusCode != http.StatusOK || !strings.Contains(body, text) {
				t.Errorf("%s: %d, and it does not show %q:\n%s", path, answer.StatusCode, text, body)
			}
		}
		if strings.Contains(strings.ReplaceAll(body, `action="/logout"`, ""), `method="post"`) && strings.Contains(body, `name="request"`) {
			t.Errorf("%s offers what cannot be done:\n%s", path, body)
		}
	}
	for path, code := range map[string]int{"/nodes/other": http.StatusNotFound, "/vms/other": http.StatusNotFound} {
		if answer, body := h.ask(http.MethodGet, path, "good", nil); answer.StatusCode != code {
			t.Errorf("%s: %d\n%s", path, answer.StatusCode, body)
		}
	}
}

// A coordinator that knows nothing yet does not say that there is nothing.
func TestACoordinatorThatKnowsNothingSaysSo(t *testing.T) {
	h := newHall(t)
	h.desk.api = bereft{h.desk.api, &berthv1.LastKnown{AnsweredBy: "coord2", RecordsOnly: true}}
	for path, shows := range map[string]string{"/": "Which nodes there are is unknown.", "/vms": "Which VMs there are is unknown."} {
		answer, body := h.ask(http.MethodGet, path, "good", nil)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, shows) || !strings.Contains(body, "coord2 began without a leader") ||
			strings.Contains(body, "<dd>0 of 0</dd>") {
			t.Errorf("%s: %d, and it does not show %q:\n%s", path, answer.StatusCode, shows, body)
		}
	}
}
