package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/scrape"
)

// leader is one with two nodes a page.
type leader struct {
	nodes []*berthv1.Node
	asked int
	err   error
}

func members() []*berthv1.Member {
	return []*berthv1.Member{{Name: "c1", MetricsAddress: "10.0.0.1:7424"}, {Name: "c2"}}
}

func (l *leader) ListMembers(
	context.Context, *connect.Request[berthv1.ListMembersRequest],
) (*connect.Response[berthv1.ListMembersResponse], error) {
	l.asked++
	return connect.NewResponse(&berthv1.ListMembersResponse{Members: members()}), l.err
}

func (l *leader) ListNodes(
	_ context.Context, request *connect.Request[berthv1.ListNodesRequest],
) (*connect.Response[berthv1.ListNodesResponse], error) {
	from := 0
	if token := request.Msg.GetPageToken(); token != "" {
		if _, err := fmt.Sscan(token, &from); err != nil {
			return nil, err
		}
	}
	answer := &berthv1.ListNodesResponse{Nodes: l.nodes[from:min(from+2, len(l.nodes))]}
	if from+2 < len(l.nodes) {
		answer.NextPageToken = fmt.Sprint(from + 2)
	}
	return connect.NewResponse(answer), nil
}

func node(name, address, release string) *berthv1.Node {
	return &berthv1.Node{Id: "id-" + name, Name: name, MetricsAddress: address, AgentRelease: release}
}

func text(found []scrape.Target) string {
	var lines []string
	for _, one := range found {
		lines = append(lines, one.Targets[0]+"="+one.Labels["node"]+one.Labels["coordinator"]+one.Labels["cluster"])
	}
	return strings.Join(lines, " ")
}

func TestAFollowerAsksTheLeader(t *testing.T) {
	var book Book
	now := time.Unix(1000, 0)
	if _, _, told := book.Known(); told {
		t.Error("it knows something that nobody has told")
	}
	if _, err := book.Ask(t.Context(), nil, now); !errors.Is(err, ErrUnknown) {
		t.Errorf("without a leader: %v", err)
	}
	l := &leader{nodes: []*berthv1.Node{node("n1", "n1:7425", "1"), node("n2", "", "1"), node("n3", "n3:7425", "1")}}
	const want = "10.0.0.1:7424=c1 n1:7425=n1default n3:7425=n3default"
	for range 3 {
		if found, err := book.Ask(t.Context(), l, now); err != nil || text(found) != want {
			t.Errorf("%s, %v", text(found), err)
		}
	}
	if l.asked != 1 {
		t.Errorf("the leader was asked %d times at once", l.asked)
	}
	members, nodes, told := book.Known()
	if !told || members["c1"] != "10.0.0.1:7424" || nodes["id-n3"] != "n3:7425" || nodes["id-n2"] != "" {
		t.Errorf("it knows %v and %v, %t", members, nodes, told)
	}
	// A leader that was there a moment ago and fails takes no target away, and neither does one that has not heard all agents yet.
	now = now.Add(time.Minute)
	for _, one := range []Leader{nil, &leader{err: errors.New("gone")}} {
		if found, err := book.Ask(t.Context(), one, now); err != nil || text(found) != want {
			t.Errorf("%s, %v", text(found), err)
		}
	}
	l = &leader{nodes: []*berthv1.Node{node("n1", "", ""), node("n3", "", "1"), node("n4", "n4:1", "1")}}
	if found, err := book.Ask(t.Context(), l, now); err != nil || text(found) != "10.0.0.1:7424=c1 n1:7425=n1default n4:1=n4default" {
		t.Errorf("%s, %v", text(found), err)
	}
	// A node of the same name that is another one does not inherit.
	l.nodes = []*berthv1.Node{{Id: "other", Name: "n1"}}
	if found, err := book.Ask(t.Context(), l, now.Add(time.Minute)); err != nil || text(found) != "10.0.0.1:7424=c1" {
		t.Errorf("%s, %v", text(found), err)
	}
}

// Who leads now keeps what was known of agents that it has not heard yet, and who led before asks the one that leads now.
func TestTheLeaderTells(t *testing.T) {
	var book Book
	l := &leader{nodes: []*berthv1.Node{node("n1", "n1:7425", "1")}}
	now := time.Unix(1000, 0)
	if _, err := book.Ask(t.Context(), l, now); err != nil {
		t.Fatal(err)
	}
	told := []*berthv1.Node{node("n2", "n2:7425", "1"), node("n1", "", "")}
	if found := book.Tell(members(), told); text(found) != "10.0.0.1:7424=c1 n1:7425=n1default n2:7425=n2default" {
		t.Error(text(found))
	}
	if _, err := book.Ask(t.Context(), l, now); err != nil || l.asked != 2 {
		t.Errorf("asked %d times, %v", l.asked, err)
	}
}
